// The console at /console and the approval page at /approve/…: their shells and files, and the files of the rendered
// documentation. The two read what they show from the API, in the browser, with the key of the person who looks.

import type { BunRequest } from 'bun'
import type { Plans } from '../contract/dependencies.ts'
import { localUrl } from '../http/internal-calls.ts'
import { type Outgoing, outgoing } from '../http/outgoing.ts'
import type { Page, Visit } from '../http/pages.ts'
import { type BuiltFile, buildConsole } from './console-build.ts'
import { takesGzip } from './served.ts'

/** Everything is from here, and nothing is made of text: no inline code, no markup, no form that is sent anywhere. */
export const console_policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'", // the icon of the tab
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const shell_headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': console_policy,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}

const types: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/** The plans that a sign-up may name, with their limits. */
export interface SignUpOffer {
  default_plan: string
  plans: Plans
}

export interface ConsoleFacts {
  /** Without a slash at its end. */
  public_url: () => string
  /** Null while sign-up is closed. */
  sign_up: SignUpOffer | null
  /** The time of the service can be moved. */
  test_clock: boolean
}

/** A page that the console's frame is not around brings its own shell. */
type Entry = 'console' | 'approve' | 'docs'
type Shell = Exclude<Entry, 'docs'>

const titles: Record<Shell, string> = { console: 'Waystation', approve: 'Approval · Waystation' }

interface Asset {
  type: string
  plain: Uint8Array<ArrayBuffer>
  gzip: Uint8Array<ArrayBuffer>
}

interface Built {
  assets: Map<string, Asset>
  /** The names of an entry's files. */
  nameOf(entry: Entry | 'icon', extension: string): string
}

let embedded: readonly BuiltFile[] | null = null
let built: Promise<Built> | null = null

/** An executable without sources brings the files along: see scripts/build-console.ts. Before the first request. */
export function embedConsole(files: readonly BuiltFile[]): void {
  embedded = files
  built = null
}

export function consolePages(facts: ConsoleFacts): Page[] {
  const shell = (entry: Shell) => async () =>
    new Response(shellOf(entry, await load(), facts), { headers: shell_headers })
  return [
    { path: '/console', methods: ['GET'], answer: shell('console') },
    { path: '/console/*', methods: ['GET'], answer: shell('console') },
    { path: '/approve/:checkpoint_id', methods: ['GET'], answer: shell('approve') },
    { path: '/assets/:file', methods: ['GET'], answer: answerAsset },
  ]
}

/** The names of the documentation's files under /assets/. */
export async function docsFiles(): Promise<{ style: string; script: string; icon: string }> {
  const { nameOf } = await load()
  return { style: nameOf('docs', 'css'), script: nameOf('docs', 'js'), icon: nameOf('icon', 'svg') }
}

async function answerAsset(request: BunRequest, { api }: Visit): Promise<Outgoing> {
  const { assets, nameOf } = await load()
  const { file } = request.params as { file: string }
  // During a rolling update the shell may come from a node of another version: it gets the file of this one.
  const [, entry, extension] = /^(console|approve|docs)-\w+\.(js|css)$/.exec(file) ?? []
  const asset = assets.get(file) ?? (entry && assets.get(nameOf(entry as Entry, extension!)))
  // As any path that names nothing.
  if (!asset) return api(new Request(localUrl(request), { method: request.method }))
  const zipped = takesGzip(request.headers.get('accept-encoding'))
  const headers = {
    'content-type': asset.type,
    'cache-control': assets.has(file) ? 'public, max-age=31536000, immutable' : 'no-store',
    'cross-origin-resource-policy': 'same-origin',
    vary: 'accept-encoding',
    ...(zipped ? { 'content-encoding': 'gzip' } : {}),
  }
  return outgoing(200, headers, zipped ? asset.gzip : asset.plain)
}

/** Once; a build that failed is tried again by the next request. */
function load(): Promise<Built> {
  built ??= (async () => packed(embedded ?? (await buildConsole())))().catch((error) => {
    built = null
    throw error
  })
  return built
}

function packed(files: readonly BuiltFile[]): Built {
  const all = [...files, { name: `icon-${Bun.hash(icon).toString(36)}.svg`, text: icon }]
  const assets = new Map(
    all.map(({ name, text }) => {
      const plain = new TextEncoder().encode(text)
      const type = types[name.split('.').at(-1)!] ?? 'application/octet-stream'
      return [name, { type, plain, gzip: Bun.gzipSync(plain, { level: 9 }) }]
    }),
  )
  return {
    assets,
    nameOf: (entry, extension) =>
      all.find(({ name }) => name.startsWith(`${entry}-`) && name.endsWith(`.${extension}`))!.name,
  }
}

/** `base` is the path of PUBLIC_URL, for a service that does not stand at the root of its host. */
function shellOf(entry: Shell, { nameOf }: Built, { public_url, sign_up, test_clock }: ConsoleFacts): string {
  const base = Bun.escapeHTML(new URL(public_url()).pathname.replace(/\/$/, ''))
  const asset = (of: Shell | 'icon', extension: string) => `${base}/assets/${nameOf(of, extension)}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="base" content="${base}">${entry === 'console' && sign_up ? `\n${signUpMeta(sign_up)}` : ''}${entry === 'console' && test_clock ? '\n<meta name="test-clock" content="">' : ''}
<title>${titles[entry]}</title>
<link rel="icon" type="image/svg+xml" href="${asset('icon', 'svg')}">
<link rel="stylesheet" href="${asset(entry, 'css')}">
<script defer src="${asset(entry, 'js')}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The same can be done with the API: see docs/checkpoints.md.</noscript>
</body>
</html>
`
}

/** The facts that the sign-in page needs to offer a new tenant. */
function signUpMeta(offer: SignUpOffer): string {
  return `<meta name="sign-up" content="${Bun.escapeHTML(JSON.stringify(offer))}">`
}

const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#4450c8"/>' +
  '<path d="M7 11l4.5 11L16 12l4.5 10L25 11" fill="none" stroke="#fff" stroke-width="2.6" ' +
  'stroke-linecap="round" stroke-linejoin="round"/></svg>'
