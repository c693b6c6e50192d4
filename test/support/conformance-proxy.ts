// A proxy in front of a real service that plants one fault: in requests, in answers, or in what is sent to receivers.

import type { Server } from 'bun'

export interface Request {
  method: string
  /** Path and query. */
  path: string
  headers: Headers
  body: string | Uint8Array<ArrayBuffer>
}

export interface Reply {
  status: number
  headers: Headers
  text: string
}

export type Send = (request: Request) => Promise<Reply>

/** Each member changes what passes, or answers in its stead. */
export interface Fault {
  request?(request: Request, send: Send): Reply | undefined | Promise<Reply | undefined>
  answer?(reply: Reply, request: Request, send: Send): void | Promise<void>
  callback?(callback: Request, send: Send): Reply | undefined | Promise<Reply | undefined>
}

export interface Proxy {
  url: string
  stop(): Promise<void>
}

const relay_path = '/conformance-relay/'
/** No header of one connection belongs on another. */
const of_the_connection = ['connection', 'host', 'content-length', 'transfer-encoding', 'keep-alive']

/** With a fault in callbacks, their addresses lead through the proxy. */
export function startProxy(service_url: string, fault: Fault): Proxy {
  const server: Server<unknown> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 120,
    async fetch(incoming) {
      const request = await requestOf(incoming)
      const target = relayTarget(request.path)
      if (target) return responseOf(await relayed(target, request, fault))
      const send: Send = (one) => exchange(service_url, one)
      if (fault.callback && typeof request.body === 'string')
        request.body = throughRelay(request.body, server.url.origin)
      const reply = (await fault.request?.(request, send)) ?? (await send(request))
      if (fault.callback) reply.text = withoutRelay(reply.text, server.url.origin)
      await fault.answer?.(reply, request, send)
      return responseOf(reply)
    },
  })
  return { url: server.url.origin, stop: () => server.stop(true) }
}

async function requestOf(incoming: globalThis.Request): Promise<Request> {
  const headers = new Headers(incoming.headers)
  for (const name of of_the_connection) headers.delete(name)
  const bytes = new Uint8Array(await incoming.arrayBuffer())
  const { origin } = new URL(incoming.url)
  return { method: incoming.method, path: incoming.url.slice(origin.length), headers, body: textOf(bytes) }
}

/** Text where the bytes are UTF-8. */
function textOf(bytes: Uint8Array<ArrayBuffer>): string | Uint8Array<ArrayBuffer> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return bytes
  }
}

async function exchange(origin: string, { method, path, headers, body }: Request): Promise<Reply> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const response = await fetch(`${origin}${path}`, {
    method,
    headers,
    redirect: 'manual',
    decompress: false,
    keepalive: false, // one that was kept may be closed by the service just as it is used again
    ...(bytes.length > 0 ? { body: bytes } : {}),
  })
  const answered = new Headers(response.headers)
  for (const name of of_the_connection) answered.delete(name)
  return { status: response.status, headers: answered, text: await response.text() }
}

function responseOf({ status, headers, text }: Reply): Response {
  return new Response(text === '' ? null : text, { status, headers })
}

function relayTarget(path: string): URL | null {
  if (!path.startsWith(relay_path)) return null
  return new URL(Buffer.from(path.slice(relay_path.length), 'base64url').toString())
}

async function relayed(target: URL, callback: Request, fault: Fault): Promise<Reply> {
  const request = { ...callback, path: target.pathname + target.search }
  // Nobody may listen there.
  const send: Send = (one) =>
    exchange(target.origin, one).catch(() => ({ status: 502, headers: new Headers(), text: '' }))
  return (await fault.callback?.(request, send)) ?? send(request)
}

function throughRelay(body: string, origin: string): string {
  return body.replace(
    /("(?:callback_url|forwardUrl)":")(http:\/\/127\.0\.0\.1:[^"]+)"/g,
    (_, name: string, url: string) =>
      `${name}${origin}${relay_path}${Buffer.from(url).toString('base64url')}"`,
  )
}

function withoutRelay(text: string, origin: string): string {
  return text.replace(new RegExp(`${origin}${relay_path}([\\w-]+)`, 'g'), (_, coded: string) =>
    Buffer.from(coded, 'base64url').toString(),
  )
}
