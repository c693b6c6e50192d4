// The documentation for readers and programs: /docs, the pages below it, /llms.txt and /llms-full.txt.

import swagger from 'swagger-ui-dist/package.json' with { type: 'json' }
import { ApiError } from '../base/errors.ts'
import type { Outgoing } from '../http/outgoing.ts'
import type { Page } from '../http/pages.ts'
import { listed, llmsFullText, llmsText, type Section } from './llms.ts'
import { answerWith, type Kind, type Served, served } from './served.ts'

/** This origin alone, and nothing that is written into the page. The only images are the library's, in `data:` URLs. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  'img-src data:',
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const html: Kind = {
  content_type: 'text/html; charset=utf-8',
  headers: { 'content-security-policy': policy },
}
const markdown: Kind = { content_type: 'text/markdown; charset=utf-8' }
const plain: Kind = { content_type: 'text/plain; charset=utf-8' }
const script: Kind = { content_type: 'text/javascript; charset=utf-8' }
const style: Kind = { content_type: 'text/css; charset=utf-8' }
const png: Kind = { content_type: 'image/png' }
const svg: Kind = { content_type: 'image/svg+xml' }

const library = `swagger-ui-${swagger.version}`

type Content = string | Uint8Array<ArrayBuffer>
type Made = () => Content | Promise<Content>

/** `public_url` is called at the first request for a text that names it. */
export function docsPages(public_url: () => string): Page[] {
  const keep = keeper()
  const kept: Record<string, [kind: Kind, make: Made]> = {
    '/docs': [html, async () => referencePage(listed(await documents()))],
    '/docs/reference.js': [script, async () => (await assets()).own_script()],
    '/docs/reference.css': [style, async () => (await assets()).own_style()],
    [`/docs/${library}.js`]: [{ ...script, immutable: true }, async () => (await assets()).library_script()],
    [`/docs/${library}.css`]: [{ ...style, immutable: true }, async () => (await assets()).library_style()],
    '/docs/images/approve.png': [png, async () => (await assets()).approve()],
    '/docs/images/concepts.svg': [svg, async () => (await assets()).concepts()],
    '/docs/images/overview.png': [png, async () => (await assets()).overview()],
    '/llms.txt': [plain, async () => llmsText(await documents(), public_url())],
    '/llms-full.txt': [plain, async () => llmsFullText(await documents(), public_url())],
  }
  const answer = async (path: string, request: Request): Promise<Outgoing> => {
    const [kind, make] = Object.hasOwn(kept, path) ? kept[path]! : [markdown, await document(path)]
    return answerWith(await keep(path, kind, make), request.headers)
  }
  const fixed = (path: string): Page => ({
    path,
    methods: ['GET'],
    answer: (request) => answer(path, request),
  })
  return [
    fixed('/docs'),
    fixed('/llms.txt'),
    fixed('/llms-full.txt'),
    {
      path: '/docs/:file',
      methods: ['GET'],
      answer: (request) => answer(`/docs/${(request.params as { file: string }).file}`, request),
    },
    {
      path: '/docs/:folder/:file',
      methods: ['GET'],
      answer: (request) => {
        const { folder, file } = request.params as { folder: string; file: string }
        return answer(`/docs/${folder}/${file}`, request)
      },
    },
    {
      path: '/docs/',
      methods: ['GET'],
      // Relative, for services whose address has a path of its own.
      answer: () => new Response(null, { status: 308, headers: { location: '../docs' } }),
    },
  ]
}

/** Throws ROUTE_NOT_FOUND. */
async function document(path: string): Promise<Made> {
  const texts = await documents()
  const file = path.slice('/docs/'.length)
  if (!Object.hasOwn(texts, file)) throw new ApiError('ROUTE_NOT_FOUND')
  return () => texts[file]!
}

const documents = async () => (await import('./documents.ts')).documents()
const assets = async () => (await import('./assets.ts')).assets

/** Each path is made once, at the first request for it. */
function keeper() {
  const made = new Map<string, Promise<Served>>()
  return (path: string, kind: Kind, make: Made): Promise<Served> => {
    const known = made.get(path)
    if (known) return known
    const making = Promise.try(make).then((content) => served(content, kind))
    made.set(path, making)
    making.catch(() => made.delete(path))
    return making
  }
}

/** Its links are relative, as for `location` above. */
function referencePage(sections: Section[]): string {
  const links = (pages: Section['pages']) =>
    pages.map(({ title, file }) => `<a href="docs/${file}">${Bun.escapeHTML(title)}</a>`).join('\n')
  const rows = sections.map(
    ({ title, pages }) => `<dt>${Bun.escapeHTML(title)}</dt>\n<dd>${links(pages)}</dd>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Waystation API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/${library}.css">
<link rel="stylesheet" href="docs/reference.css">
<script src="docs/${library}.js" defer></script>
<script src="docs/reference.js" type="module"></script>
</head>
<body>
<header class="pages">
<h1>Waystation API</h1>
<dl>
${rows.join('\n')}
<dt>For programs</dt>
<dd><a href="openapi.json">openapi.json</a>
<a href="llms.txt">llms.txt</a>
<a href="llms-full.txt">llms-full.txt</a></dd>
</dl>
</header>
<main id="reference"><noscript>The reference needs JavaScript; the pages above do not.</noscript></main>
</body>
</html>
`
}
