// Reads of large rows, under a permit of the tenant.

import type { Permit } from '../base/heavy-read.ts'
import { type Context, type Input, type Piece, type Route, Streamed } from '../contract/route.ts'
import type { Exchange } from './exchange.ts'
import { no_raw } from './input.ts'

/** The handler's result. It, and each piece that is read later, is read under a permit. */
export async function readHeavy(
  route: Route,
  exchange: Exchange,
  context: Context<never>,
  input: Input<never, never, never>,
): Promise<unknown> {
  const { options, caller, connection } = exchange
  const permit = await options.heavy_reads.enter(caller!.tenant_id, connection.signal)
  exchange.permit = permit
  const result = await route.handle!(context, input, no_raw)
  if (!(result instanceof Streamed)) return result
  permit.release()
  return new Streamed(underPermit(permit, result.pieces))
}

async function* underPermit(permit: Permit, pieces: AsyncIterator<Piece>): AsyncGenerator<Piece> {
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
