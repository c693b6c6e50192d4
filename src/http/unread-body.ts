// The rest of a body that is refused, from a proxy. Many proxies still send when the answer comes: nginx then makes it a 502
// if the connection ends with it, and HAProxy may send the next request into what is missing of the body.

import { receive_ms_max } from './body-stream.ts'
import { type Connection, isProxy, type ServerOptions } from './exchange.ts'
import { drained_bytes_max, small_bytes_max } from './upload.ts'

/**
 * Resolves when a large body of a trusted proxy that nobody has read is there to its end, so that `response` is not sent
 * before; past the limits it closes the connection. Null when there is nothing to wait for: a small body is there at once.
 */
export function unreadBody(
  options: Pick<ServerOptions, 'trusted_proxies' | 'drain'>,
  request: Request,
  server: Connection,
  response: Response,
): Promise<void> | null {
  if (!isProxy(options, request, server) || options.drain.begun || request.bodyUsed) return null
  if (response.headers.get('connection') === 'close') return null
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) <= small_bytes_max) return null
  return request.body && drained(request.body, Number(length ?? 0), response)
}

async function drained(body: ReadableStream<Uint8Array>, length: number, response: Response): Promise<void> {
  if (length <= drained_bytes_max && (await readToEnd(body))) return
  response.headers.set('connection', 'close')
}

/** False when it is too long, too slow, or was broken off. */
async function readToEnd(body: ReadableStream<Uint8Array>): Promise<boolean> {
  const reader = body.getReader()
  let is_late = false
  const timer = setTimeout(() => {
    is_late = true
    reader.cancel().catch(nothing)
  }, receive_ms_max)
  try {
    for (let bytes = 0; bytes <= drained_bytes_max; ) {
      const { done, value } = await reader.read()
      if (done) return !is_late
      bytes += value.length
    }
    return false
  } catch {
    return false
  } finally {
    clearTimeout(timer)
    reader.cancel().catch(nothing)
  }
}

function nothing(): void {}
