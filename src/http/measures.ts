// Requests as numbers: how many of each route with each status, and how long they took.

import { type ShedReason, shed_reasons } from '../base/errors.ts'
import { Counter, Histogram } from '../base/measures.ts'
import { shedReasonOf } from './answers.ts'

const seconds_bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Of one route: a method and a pattern, of which there are as many as the service has, whatever is asked. */
export class RouteMeasures {
  readonly by_status = new Map<number, Counter>()
  /** The status of the last answer, which most of the next ones have too. */
  #status = 0
  #counter = new Counter()
  readonly seconds = new Histogram(seconds_bounds)

  constructor(
    readonly method: string,
    readonly route: string,
  ) {}

  /** `ms`: null for a request that waited because it asked to: its time says nothing about the service. */
  answered(status: number, ms: number | null): void {
    if (status !== this.#status) this.#turnTo(status)
    this.#counter.value += 1
    if (ms !== null) this.seconds.observe(ms / 1_000)
  }

  #turnTo(status: number): void {
    this.#status = status
    this.#counter = this.by_status.get(status) ?? new Counter()
    this.by_status.set(status, this.#counter)
  }
}

export class RequestMeasures {
  readonly routes: RouteMeasures[] = []
  /** Unknown paths, other methods, OPTIONS, and hosts that are not this service. */
  readonly unrouted = this.route('other', 'unrouted')
  /** Requests that were refused for lack of room. */
  readonly shed = new Map<ShedReason, Counter>(shed_reasons.map((reason) => [reason, new Counter()]))

  route(method: string, path: string): RouteMeasures {
    const route = new RouteMeasures(method, path)
    this.routes.push(route)
    return route
  }

  /** Also of a call in process, which was refused although the page that made it is answered. */
  failed(error: unknown): void {
    const reason = shedReasonOf(error)
    if (reason !== null) this.shed.get(reason)!.value += 1
  }
}
