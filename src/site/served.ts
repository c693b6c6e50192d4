// A file as it is served: revalidated by its ETag or cached for ever, and compressed once for clients that accept it.

import { type Outgoing, outgoing } from '../http/outgoing.ts'

export interface Served {
  content_type: string
  bytes: Uint8Array<ArrayBuffer>
  gzipped: Uint8Array<ArrayBuffer>
  /** Without quotes. Not a secret: it only has to change with the content. */
  tag: string
  cache_control: string
  vary: string
  /** Beside those of every file. */
  headers: Readonly<Record<string, string>>
}

export interface Kind {
  content_type: string
  /** The name changes with the content. */
  immutable?: boolean
  headers?: Readonly<Record<string, string>>
  /** The address has another form for clients that accept it. */
  negotiated?: boolean
}

export async function served(
  content: string | Uint8Array<ArrayBuffer>,
  { content_type, immutable = false, headers = {}, negotiated = false }: Kind,
): Promise<Served> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return {
    content_type,
    bytes,
    gzipped: await compressed(bytes),
    tag: Bun.hash(bytes).toString(36),
    cache_control: immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: negotiated ? 'Accept, Accept-Encoding' : 'Accept-Encoding',
    headers,
  }
}

/** In a thread of the pool, so that no request waits for it. Imported here, so that the start does not wait either. */
async function compressed(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const { gzip } = await import('node:zlib')
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
  gzip(bytes, { level: 9 }, (error, result) => (error ? reject(error) : resolve(new Uint8Array(result))))
  return promise
}

/** 200, or 304 to a client that has it. */
export function answerWith(file: Served, request: Headers): Outgoing {
  const gzipped = takesGzip(request.get('accept-encoding'))
  // Two forms of one file are two representations, RFC 9110 section 8.8.3.3.
  const etag = gzipped ? `"${file.tag}-gzip"` : `"${file.tag}"`
  const headers: Record<string, string> = {
    ...file.headers,
    'cache-control': file.cache_control,
    etag,
    vary: file.vary,
  }
  if (isKnown(request.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  headers['content-type'] = file.content_type
  if (gzipped) headers['content-encoding'] = 'gzip'
  return outgoing(200, headers, gzipped ? file.gzipped : file.bytes)
}

/** RFC 9110 section 12.5.3: named and not refused by `q=0`; the name counts before `*`. */
export function takesGzip(accepted: string | null): boolean {
  const codings = new Map(
    (accepted ?? '').split(',').map((item) => {
      const [name, ...parameters] = item.toLowerCase().split(';')
      const refused = parameters.some((parameter) => /^\s*q\s*=\s*0(\.0*)?\s*$/.test(parameter))
      return [name!.trim(), !refused]
    }),
  )
  return codings.get('gzip') ?? codings.get('*') ?? false
}

/** Compared weakly, as RFC 9110 section 13.1.2 asks for. */
function isKnown(known: string | null, etag: string): boolean {
  if (known === null) return false
  const tags: string[] = known.match(/"[^"]*"/g) ?? []
  return known.trim() === '*' || tags.includes(etag)
}

/** The weight of a type that the client names, RFC 9110 section 12.4.2: 0 when it names others or refuses this one. */
export function weightOf(type: string, accepted: string | null): number {
  for (const item of (accepted ?? '').toLowerCase().split(',')) {
    const [name, ...parameters] = item.split(';').map((part) => part.trim())
    if (name !== type) continue
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))
    return weight === undefined ? 1 : Number(weight.split('=')[1]) || 0
  }
  return 0
}
