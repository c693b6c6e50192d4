// The delay of the event loop of this process, looked at by one timer: new work is refused while it lasts, and metrics show it.

import type { Clock } from '../base/clock.ts'
import { delaysWithin, LoopDelay } from '../base/loop-delay.ts'
import { Overload } from '../base/overload.ts'
import type { Measures } from '../metrics/service.ts'
import type { AppOptions } from './start.ts'

interface Watched {
  overload: Overload
  loop_delay: LoopDelay
}

/** `overload`: given where a test says what the delay is. */
export function overloadOf(
  { log, overload: given }: Pick<AppOptions, 'log' | 'overload'>,
  clock: Clock,
  measures: Pick<Measures, 'loop_delay_seconds'> | null,
): Watched {
  const overload =
    given ??
    new Overload((refuses) => {
      if (refuses) log.error({}, 'overloaded: the event loop is delayed, new work is refused')
      else log.info({}, 'no longer overloaded: new work is accepted again')
    })
  const loop_delay = new LoopDelay(clock, (delay_ms) => {
    if (!given) overload.delayed(delay_ms, clock.monotonic())
    if (measures)
      for (const each_ms of delaysWithin(delay_ms)) measures.loop_delay_seconds.observe(each_ms / 1_000)
  })
  return { overload, loop_delay }
}
