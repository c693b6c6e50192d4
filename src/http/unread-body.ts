// The rest of a body that is refused, from a proxy. Many proxies still send when the answer comes: nginx then makes it a 502
// if the connection ends with it, and HAProxy may send the next request into what is missing of the body.

import { ApiError } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import { Places } from '../base/places.ts'
import { clientAddress, clientKey } from './address.ts'
import { Chunks } from './body-stream.ts'
import { type Connection, isProxy, type ServerOptions } from './exchange.ts'
import { drained_bytes_max, small_bytes_max } from './upload.ts'

export const draining_max = limit(
  'http.draining',
  1_024,
  'requests',
  'Refused large bodies from proxies in TRUST_PROXY that a process reads to their end at the same time; past it the answer comes before that end, and the connection ends with it.',
)
export const draining_of_address_max = limit(
  'http.draining_of_address',
  draining_max / 4,
  'requests',
  'Of these, the bodies of one client address, so that a slow sender leaves places for others.',
)

/** Of the whole process, as places of requests are. */
const draining = new Places(draining_max)

/**
 * Resolves when a large body of a trusted proxy that nobody has read is there to its end, so that `response` is not sent
 * before; past the limits it closes the connection. Null when there is nothing to wait for: of a small body Bun takes the
 * rest, whenever it comes.
 */
export function unreadBody(
  options: Pick<ServerOptions, 'trusted_proxies' | 'drain'>,
  request: Request,
  server: Connection,
  response: Response,
): Promise<void> | null {
  const { trusted_proxies, drain } = options
  if (trusted_proxies.length === 0 || drain.begun || request.bodyUsed) return null
  const { headers } = request
  const length = headers.get('content-length')
  if (length !== null && Number(length) <= small_bytes_max) return null
  if (request.body === null || response.headers.get('connection') === 'close') return null
  if (!isProxy(options, request, server)) return null
  const peer = server.requestIP(request)!.address
  const client = clientKey(clientAddress(peer, headers.get('x-forwarded-for'), trusted_proxies))
  return drained(request.body, Number(length ?? 0), client, response)
}

async function drained(
  body: ReadableStream<Uint8Array>,
  length: number,
  client: string,
  response: Response,
): Promise<void> {
  if (length <= drained_bytes_max && draining.enter(client, draining_of_address_max)) {
    const is_whole = await readToEnd(body)
    draining.leave(client)
    if (is_whole) return
  }
  response.headers.set('connection', 'close')
}

/** False when it is too long, too slow, or was broken off. */
async function readToEnd(body: ReadableStream<Uint8Array>): Promise<boolean> {
  let bytes = 0
  try {
    await new Chunks(body).each(({ length }) => {
      bytes += length
      if (bytes > drained_bytes_max) throw new ApiError('PAYLOAD_TOO_LARGE')
    })
    return true
  } catch {
    return false
  }
}
