// The documentation for readers and programs: the rendered pages at /docs, their Markdown beside them, the API reference,
// /llms.txt and /llms-full.txt.

import swagger from 'swagger-ui-dist/package.json' with { type: 'json' }
import { ApiError } from '../base/errors.ts'
import { Turns } from '../base/event-loop.ts'
import { limit } from '../base/limit.ts'
import { localUrl } from '../http/internal-calls.ts'
import type { Outgoing } from '../http/outgoing.ts'
import type { Page } from '../http/pages.ts'
import { console_policy, docsFiles } from './console.ts'
import { addressOf, fileAt } from './docs-html/links.ts'
import type { Site } from './docs-html/site.ts'
import { llmsFullText, llmsText } from './llms.ts'
import { reference_policy, referencePage } from './reference-page.ts'
import { answerWith, type Kind, type Served, served, weightOf } from './served.ts'

const html: Kind = {
  content_type: 'text/html; charset=utf-8',
  headers: { 'content-security-policy': console_policy },
}
const reference: Kind = { ...html, headers: { 'content-security-policy': reference_policy } }
const markdown: Kind = { content_type: 'text/markdown; charset=utf-8' }
const plain: Kind = { content_type: 'text/plain; charset=utf-8' }
const script: Kind = { content_type: 'text/javascript; charset=utf-8' }
const style: Kind = { content_type: 'text/css; charset=utf-8' }
const json: Kind = { content_type: 'application/json; charset=utf-8' }
const images: Record<string, Kind> = {
  png: { content_type: 'image/png' },
  svg: { content_type: 'image/svg+xml' },
}

const missing_levels_max = limit(
  'http.missing_page_levels',
  16,
  'levels',
  'Bounds memory: for an unknown address below /docs, a browser gets a page whose links lead back through each of its levels. For a deeper one it gets the answer that programs get.',
)

/** One page is rendered, or read for the search, in a turn of the event loop: other requests are served in between. */
const turns = new Turns(1)

const library = `swagger-ui-${swagger.version}`

type Content = string | Uint8Array<ArrayBuffer>

/** A file that is made at the first request for it. */
interface Item {
  /** Names it among those that were made. */
  name: string
  kind: Kind
  make(): Content | Promise<Content>
}

/** `public_url` is called at the first request for a text that names it. */
export function docsPages(public_url: () => string): Page[] {
  const keep = keeper()
  const found = finder(public_url)
  const answer = async (request: Request): Promise<Outgoing> => {
    const path = new URL(localUrl(request)).pathname
    const item = await found(path, request.headers)
    if (item) return answerWith(await keep(item), request.headers)
    // As the API answers, unless a person reads it.
    const is_read = weightOf('text/html', request.headers.get('accept')) > 0
    if (!is_read || path.split('/').length - 1 > missing_levels_max) throw new ApiError('ROUTE_NOT_FOUND')
    const page = (await pages()).missingPage(await siteOf(public_url), path)
    const headers = { ...html.headers, 'content-type': html.content_type, vary: 'Accept' }
    return new Response(page, { status: 404, headers })
  }
  return [
    ...['/docs', '/docs/*', '/examples/*', '/llms.txt', '/llms-full.txt'].map(
      (path): Page => ({ path, methods: ['GET'], answer }),
    ),
    {
      path: '/docs/',
      methods: ['GET'],
      // Relative, for services whose address has a path of its own.
      answer: () => new Response(null, { status: 308, headers: { location: '../docs' } }),
    },
  ]
}

/** Finds what stands at a path, or null. */
function finder(public_url: () => string) {
  const fixed: Record<string, Omit<Item, 'name'>> = {
    '/docs/reference': { kind: reference, make: () => referencePage(library) },
    '/docs/reference.js': { kind: script, make: async () => (await assets()).own_script() },
    '/docs/reference.css': { kind: style, make: async () => (await assets()).own_style() },
    [`/docs/${library}.js`]: {
      kind: { ...script, immutable: true },
      make: async () => (await assets()).library_script(),
    },
    [`/docs/${library}.css`]: {
      kind: { ...style, immutable: true },
      make: async () => (await assets()).library_style(),
    },
    '/docs/search.json': {
      kind: json,
      make: async () => (await pages()).searchIndex(await siteOf(public_url), () => turns.next()),
    },
    '/llms.txt': { kind: plain, make: async () => llmsText(await documents(), public_url()) },
    '/llms-full.txt': { kind: plain, make: async () => llmsFullText(await documents(), public_url()) },
  }
  return async (path: string, headers: Headers): Promise<Item | null> =>
    Object.hasOwn(fixed, path)
      ? { name: path, ...fixed[path]! }
      : ((await documentAt(path)) ?? (await pageAt(path, headers, public_url)) ?? (await besideAt(path)))
}

/** The Markdown of a page, byte for byte. */
async function documentAt(path: string): Promise<Item | null> {
  const texts = await documents()
  const file = path.slice('/docs/'.length)
  const is_document = path.startsWith('/docs/') && Object.hasOwn(texts, file)
  return is_document ? { name: path, kind: markdown, make: () => texts[file]! } : null
}

/** A rendered page; its Markdown to a client that names this type and does not rather take HTML. */
async function pageAt(path: string, headers: Headers, public_url: () => string): Promise<Item | null> {
  const texts = await documents()
  const file = fileAt(path)
  if (file === null || !Object.hasOwn(texts, file) || addressOf(file) !== path) return null
  const accepted = headers.get('accept')
  const weight = weightOf('text/markdown', accepted)
  if (weight > 0 && weight >= weightOf('text/html', accepted)) {
    return { name: `${path} as Markdown`, kind: { ...markdown, negotiated: true }, make: () => texts[file]! }
  }
  return {
    name: path,
    kind: { ...html, negotiated: true },
    make: async () => {
      const [{ renderedPage }, site] = [await pages(), await siteOf(public_url)]
      await turns.next()
      return renderedPage(site, file)
    },
  }
}

/** An image or an example that pages link to. */
async function besideAt(path: string): Promise<Item | null> {
  const make = (await import('./beside.ts')).fileBeside(path)
  return make && { name: path, kind: images[path.split('.').at(-1)!] ?? plain, make }
}

async function siteOf(public_url: () => string): Promise<Site> {
  return { documents: await documents(), files: await docsFiles(), public_url: public_url() }
}

const documents = async () => (await import('./documents.ts')).documents
const assets = async () => (await import('./assets.ts')).assets
const pages = () => import('./docs-html/site.ts')

/** Each file is made once, at the first request for it. */
function keeper() {
  const made = new Map<string, Promise<Served>>()
  return ({ name, kind, make }: Item): Promise<Served> => {
    const known = made.get(name)
    if (known) return known
    const making = Promise.try(make).then((content) => served(content, kind))
    made.set(name, making)
    making.catch(() => made.delete(name))
    return making
  }
}
