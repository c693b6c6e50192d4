// A request between its arrival and the end of its answer: whether there is room for it, its permit to read much, and
// how what was answered is sent.

import type { BunRequest, Server } from 'bun'
import { ApiError } from '../base/errors.ts'
import { Turns } from '../base/event-loop.ts'
import type { HeavyReads, Permit } from '../base/heavy-reads.ts'
import { limit } from '../base/limit.ts'
import type { Caller } from '../contract/caller.ts'
import { type Context, Streamed } from '../contract/route.ts'
import type { Awaitable } from '../db/db.ts'
import { clientAddress, type Range } from './address.ts'
import { type Failing, failure, type Log } from './answers.ts'
import { type Deliveries, LargeAnswer, type Outgoing, undivided } from './outgoing.ts'

export const requests_max = limit(
  'http.requests',
  16_384,
  'requests',
  'Requests under way on a node, those that wait included; past it 503 UNAVAILABLE and the connection is closed.',
)

const pages_a_turn_max = limit(
  'http.pages_a_turn',
  4,
  'requests',
  'Calls of MCP that begin in one turn of the event loop; the others wait for another.',
)

/** For pages that take long. */
export const page_turns = new Turns(pages_a_turn_max)

/** What a handler needs of Bun's server. */
export interface Connection extends Pick<Server<undefined>, 'requestIP' | 'timeout' | 'pendingRequests'> {
  /** The request that this one is a part of, in the same process. */
  outer?: { request: Request; asking: Asking }
}

/** Who asks, once that is known: also when what follows fails. */
export interface Asking {
  caller: Caller | null
  /** Of a heavy read, until its answer was sent. */
  permit: Permit | null
}

export function mustHaveRoom({ pendingRequests }: Connection): void {
  if (pendingRequests <= requests_max) return
  throw new ApiError('UNAVAILABLE', { retry_after_seconds: 1, close: true })
}

/** Nothing is done for a client that went away meanwhile: the answer is for nobody. */
export async function untilNextTurn(waiting: Promise<void>, { signal }: Request): Promise<void> {
  await waiting
  if (signal.aborted) throw new ApiError('REQUEST_TIMEOUT')
}

export function addressOf(
  { trusted_proxies }: { trusted_proxies: readonly Range[] },
  request: BunRequest,
  server: Connection,
): string {
  const peer = server.requestIP(request)?.address ?? 'unknown'
  return clientAddress(peer, request.headers.get('x-forwarded-for'), trusted_proxies)
}

/** What is read at once, and each piece that is read later, under a permit of the tenant. */
export async function readHeavy(
  heavy_reads: HeavyReads,
  asking: Asking,
  gone: AbortSignal,
  { outer }: Connection,
  read: (pause: Context<never>['pause']) => Awaitable<unknown>,
): Promise<unknown> {
  const permit = await heavy_reads.enter(asking.caller!.tenant_id, outer?.request.signal ?? gone)
  asking.permit = permit
  const result = await read((waiting) => permit.pause(waiting))
  if (!(result instanceof Streamed)) return result
  permit.release()
  return new Streamed(underPermit(permit, result.pieces))
}

async function* underPermit(permit: Permit, pieces: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (;;) {
      await permit.acquire()
      const { done, value } = await pieces.next()
      if (done) return
      permit.releaseSoon()
      yield value
      permit.release()
    }
  } finally {
    permit.release()
    await pieces.return?.()
  }
}

interface Sending {
  deliveries: Deliveries
  trusted_proxies: readonly Range[]
  log: Log
}

/** What Bun gets. Throws UNAVAILABLE when a large answer has no room. */
export function responseOf(
  answered: Outgoing,
  options: Sending,
  request: BunRequest,
  server: Connection,
  asking: Asking,
  route: Failing,
  request_id: string,
): Response {
  if (server.outer) {
    // What is made of it is sent by the outer request.
    server.outer.asking.permit = asking.permit
    asking.permit?.releaseSoon()
    return answered instanceof LargeAnswer ? undivided(answered) : answered
  }
  if (!(answered instanceof LargeAnswer)) {
    asking.permit?.release()
    return answered
  }
  asking.permit?.releaseSoon()
  return options.deliveries.send(answered, {
    request,
    address: addressOf(options, request, server),
    tenant_id: asking.caller?.tenant_id ?? null,
    closeAfter: (seconds) => server.timeout(request, seconds),
    onBroken: (error) => void failure(error, request_id, options.log, route),
    onEnd: () => asking.permit?.release(),
  })
}
