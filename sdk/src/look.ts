// Requests that the service holds while there is nothing to report, one after the other.

import { type CallOptions, limited, retries_max, type Transport } from './transport.ts'

const wait_seconds_default = 50
const wait_seconds_max = 55
/** A service with too many waiting requests answers at once. The next request then follows after this, and a little more. */
export const look_again_ms = 1_000

/** How long the service holds a waiting request. Throws TypeError for more than it accepts. */
export function waitSeconds(given = wait_seconds_default): number {
  return limited('wait_seconds', given, 0, wait_seconds_max)
}

/** For an answer that came at once although there was nothing. */
export function pauseAfter({ platform }: Transport, signal: AbortSignal | undefined): () => Promise<void> {
  const { now, sleep, random } = platform
  const asked_at = now()
  return async () => {
    if (now() - asked_at < look_again_ms)
      await sleep(look_again_ms + Math.floor(random() * look_again_ms), signal)
  }
}

export type LookOptions = CallOptions & { wait_seconds?: number | undefined }

/** Looks until it is done. */
export async function lookUntil<T>(
  transport: Transport,
  { wait_seconds, retries = retries_max, ...options }: LookOptions,
  look: (call: CallOptions & { wait: number }) => Promise<T>,
  isDone: (seen: T) => boolean,
): Promise<T> {
  const call = { ...options, retries, wait: waitSeconds(wait_seconds) }
  for (;;) {
    const pause = pauseAfter(transport, options.signal)
    const seen = await look(call)
    if (isDone(seen)) return seen
    await pause()
  }
}
