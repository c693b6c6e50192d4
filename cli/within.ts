// Waits that end after a time: --for.

import { CliError, exit } from './failures.ts'
import type { CommandOption } from './spec.ts'

const timer_ms_max = 2 ** 31 - 1

export function wait_at_most(until: string): CommandOption {
  return {
    flag: '--for <duration>',
    about: `how long to wait at most; default until ${until}`,
    reads: 'wait',
  }
}

/** Throws TIMED_OUT once the time is over: `otherwise`, such as `Not decided`, says what did not come. A wait changes nothing. */
export async function within<T>(
  wait_seconds: number | undefined,
  otherwise: string,
  next: string,
  wait: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (wait_seconds === undefined) return wait(undefined)
  const over = new Error('the time to wait is over')
  const controller = new AbortController()
  const until_ms = performance.now() + wait_seconds * 1_000
  let timer: ReturnType<typeof setTimeout>
  // A timer that is set for longer than timer_ms_max fires at once.
  const arm = () => {
    const left_ms = until_ms - performance.now()
    timer = setTimeout(
      left_ms > timer_ms_max ? arm : () => controller.abort(over),
      Math.max(0, Math.min(left_ms, timer_ms_max)),
    )
  }
  arm()
  try {
    return await wait(controller.signal)
  } catch (error) {
    if (error !== over) throw error
    throw new CliError('TIMED_OUT', `${otherwise} within ${wait_seconds} s.`, exit.unavailable, next)
  } finally {
    clearTimeout(timer!)
  }
}
