// A line for a request (LOG_REQUESTS): what is known to be harmless, and never a path, a query, a header or a body.

import { limit } from '../base/limit.ts'
import { traceIdOf } from '../base/traceparent.ts'
import type { Log } from './answers.ts'

export const logged_requests = ['all', 'errors', 'slow', 'none'] as const

export type LoggedRequests = (typeof logged_requests)[number]

const slow_ms_min = limit(
  'http.slow_request',
  1_000,
  'milliseconds',
  'How long a request must take for LOG_REQUESTS=slow to log it. Requests that wait because they ask to are not slow.',
)

export interface Answered {
  request_id: string
  traceparent: string | null
  method: string
  /** The pattern of its route. */
  route: string
  status: number
  ms: number
  /** It waited because it asked to. */
  waited: boolean
  tenant_id: string | null
}

export class RequestLog {
  readonly #log: Log
  readonly #chosen: ReadonlySet<LoggedRequests>

  constructor(log: Log, chosen: readonly LoggedRequests[]) {
    this.#log = log
    this.#chosen = new Set(chosen)
  }

  /** Logs it if it is one of those that are wanted. */
  answered({ traceparent, ms, waited, ...facts }: Answered): void {
    if (!this.#wants(facts.status, waited ? 0 : ms)) return
    const { tenant_id, ...rest } = facts
    const trace_id = traceparent === null ? null : traceIdOf(traceparent)
    const duration_ms = Math.round(ms * 1_000) / 1_000
    this.#log.info({ ...rest, duration_ms, tenant_id, trace_id }, 'request')
  }

  #wants(status: number, ms: number): boolean {
    if (this.#chosen.has('all')) return true
    return (this.#chosen.has('errors') && status >= 400) || (this.#chosen.has('slow') && ms >= slow_ms_min)
  }
}
