// Reads of large rows, under a permit of the tenant.

import type { HeavyReads, Permit } from '../base/heavy-reads.ts'
import { type Context, type Input, type Route, Streamed } from '../contract/route.ts'
import type { Asking } from './exchange.ts'

/** The handler's result. It, and each piece that is read later, is read under a permit. */
export async function readHeavy(
  route: Route,
  heavy_reads: HeavyReads,
  asking: Asking,
  context: Context<never>,
  input: Input<never, never, never>,
  { signal }: Request,
): Promise<unknown> {
  const permit = await heavy_reads.enter(asking.caller!.tenant_id, signal)
  asking.permit = permit
  const pausing: Context<never> = { ...context, pause: (waiting) => permit.pause(waiting) }
  const result = await route.handle!(pausing, input, null as never)
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
