// The test clock, put together with the work that falls due.

import type { Millis } from '../base/clock.ts'
import type { TestTime } from '../clock/service.ts'
import type { Advanced, TestClock } from '../contract/dependencies.ts'
import type { Handler } from '../http/exchange.ts'
import type { RequestHandlers } from '../http/handlers.ts'
import { type AdvanceOptions, ClockAdvance } from '../maintenance/advance.ts'

/** The test clock as handlers use it. */
export class MovedTime implements TestClock {
  #advance: ClockAdvance | null = null

  constructor(readonly time: TestTime) {}

  /** Before the first request. */
  connect(options: AdvanceOptions): void {
    this.#advance = new ClockAdvance(options)
  }

  advance(tenant_id: string, ms: Millis): Promise<Advanced> {
    return this.#advance!.advance(tenant_id, ms)
  }
}

/** Each request takes the time that the database has: another node may have moved it. */
export function atTime(time: TestTime | null, handlers: RequestHandlers): RequestHandlers {
  if (!time) return handlers
  const after =
    (handle: Handler): Handler =>
    async (request, server) => {
      await time.refresh()
      return handle(request, server)
    }
  const routes = Object.entries(handlers.routes).map(([path, by_method]) => {
    const methods = Object.entries(by_method).map(([method, handle]) => [method, after(handle)])
    return [path, Object.fromEntries(methods)]
  })
  return { ...handlers, routes: Object.fromEntries(routes), fetch: after(handlers.fetch) }
}
