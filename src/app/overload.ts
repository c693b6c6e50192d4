// New work is refused while the event loop of this process is delayed.

import type { Clock } from '../base/clock.ts'
import { LoopDelay } from '../base/loop-delay.ts'
import { Overload } from '../base/overload.ts'
import type { AppOptions } from './start.ts'

interface Watched {
  overload: Overload
  /** Null when a test says what the delay is. */
  loop_delay: LoopDelay | null
}

export function overloadOf(
  { log, overload: given }: Pick<AppOptions, 'log' | 'overload'>,
  clock: Clock,
): Watched {
  if (given) return { overload: given, loop_delay: null }
  const overload = new Overload((refuses) => {
    if (refuses) log.error({}, 'overloaded: the event loop is delayed, new work is refused')
    else log.info({}, 'no longer overloaded: new work is taken again')
  })
  return { overload, loop_delay: new LoopDelay(clock, (ms) => overload.delayed(ms, clock.monotonic())) }
}
