// The work of a node beside its requests, which POST /v1/tick does at once: due jobs, the sweep, the purge.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TickReport } from '../contract/dependencies.ts'
import type { Feature } from '../contract/feature.ts'
import { countersOf } from '../contract/features.ts'
import type { Db } from '../db/db.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import type { JobTimer } from '../jobs/timer.ts'
import type { JobWorker } from '../jobs/worker.ts'
import { Failures } from './failures.ts'
import { purgeStep } from './purge.ts'
import { expire, expiry_idle_ms, type Sweeper, startSweeper, sweep } from './sweep.ts'

/** The time that POST /v1/tick may take. */
export const tick_ms_max = limit(
  'tick.duration',
  25_000,
  'milliseconds',
  'How long `POST /v1/tick` may take. What is left is done by the next one.',
)
/** The time in which it begins further steps of its sweep. */
const tick_sweep_ms_max = limit(
  'tick.sweep_duration',
  5_000,
  'milliseconds',
  'How long a tick begins further steps of its sweep.',
)

export interface MaintenanceOptions {
  db: Db
  clock: Clock
  worker: JobWorker
  timer: JobTimer
  journal: { tick(until: number): Promise<void> }
  /** TICK=internal: the sweep runs by itself, otherwise at ticks only. */
  internal: boolean
  /** True while nothing is removed or ends by itself. Absent: never. */
  held?: () => boolean
  onError: (error: unknown) => void
  onPurged: (tenant_id: string) => void
  /** A counter was raised that none of the features declares, and that no answer can show. */
  onUndeclared: (counter: string) => void
  features: readonly Feature[]
  /** Called with how long each step of the sweep has taken in which none of it failed. */
  onSwept?: ((ms: number) => void) | undefined
}

const nothing_more = Promise.resolve({ more: false })

export class Maintenance {
  #stopped = false
  #sweeper: Sweeper | undefined
  #expirer: Sweeper | undefined
  #counts = new Map<string, number>()
  #tenants_purged = 0

  readonly #declared: ReadonlySet<string>
  readonly #lists: DueLists
  readonly #expiries: DueLists
  readonly #failed_sweeps: Failures
  readonly #failed_expiries: Failures

  constructor(private readonly options: MaintenanceOptions) {
    const groups = Object.entries(countersOf(options.features))
    this.#declared = new Set(groups.flatMap(([group, names]) => names.map((name) => `${group}.${name}`)))
    const { clock, onError } = options
    this.#failed_sweeps = new Failures(onError)
    this.#failed_expiries = new Failures(onError)
    this.#lists = new DueLists(clock, onError, this.#failed_sweeps.add)
    const { add } = this.#failed_expiries
    this.#expiries = new DueLists(clock, add, add, expiry_idle_ms)
  }

  start(): void {
    const { internal, timer, onError } = this.options
    timer.start()
    if (!internal) return
    this.#sweeper = startSweeper(() => {
      timer.pauseOrResume() // where another node, or this one before it was started again, was interrupted
      return this.#sweepStep()
    }, onError)
    this.#expirer = startSweeper(() => this.#expiryStep(), onError, expiry_idle_ms)
  }

  async #sweepStep(): Promise<{ more: boolean }> {
    if (this.options.held?.()) return nothing_more
    const { db, clock, features, onSwept } = this.options
    const began = clock.monotonic()
    const swept = await sweep({ db, clock, features, count: this.#count, lists: this.#lists })
    const purged = await this.#lists.sweeps.take('purge', () => this.#purgeStep())
    if (swept.is_complete && purged) onSwept?.(clock.monotonic() - began)
    return { more: swept.more || (purged?.more ?? false) }
  }

  #expiryStep(): Promise<{ more: boolean }> {
    if (this.options.held?.()) return nothing_more
    const { db, clock, features } = this.options
    return expire({ db, clock, features, count: this.#count, lists: this.#expiries })
  }

  async #purgeStep(): Promise<{ more: boolean }> {
    const { db, clock, onPurged, features } = this.options
    const { purged, more } = await purgeStep(db, clock.now(), features, this.#lists)
    for (const tenant_id of purged) onPurged(tenant_id)
    this.#tenants_purged += purged.length
    return { more }
  }

  readonly #count = (counter: string, by: number): void => {
    if (this.#declared.has(counter)) this.#counts.set(counter, (this.#counts.get(counter) ?? 0) + by)
    else this.options.onUndeclared(counter)
  }

  /** Steps until there is no more, or until a monotonic time; one at least. Throws when a sweep has failed. */
  sweepUntil(until: number): Promise<void> {
    return this.#until(until, this.#failed_sweeps, () => this.#sweepStep())
  }

  /** The same of what must leave its event within a second, of all tenants: throws when it has failed for any. */
  expireUntil(until: number): Promise<void> {
    this.#expiries.resume()
    return this.#until(until, this.#failed_expiries, () => this.#expiryStep())
  }

  async #until(until: number, failures: Failures, step: () => Promise<{ more: boolean }>): Promise<void> {
    const before = failures.count
    let more = true
    while (more && !this.#stopped) more = (await step()).more && this.options.clock.monotonic() < until
    if (failures.count > before) throw failures.last
  }

  /** Does all that is due now and a share of the sweep; returns the counts since the last answer. */
  async tick(): Promise<TickReport> {
    const { worker, timer, journal, clock } = this.options
    const began = clock.monotonic()
    // First, so that what fell due while a restored tenant was pending deletion is due now.
    await timer.pauseOrResumeUntil(began + tick_sweep_ms_max)
    const waits_ms_max = began + tick_ms_max - clock.monotonic()
    const sweeps_until = clock.monotonic() + tick_sweep_ms_max
    const ends = await Promise.allSettled([worker.tick(waits_ms_max), this.sweepUntil(sweeps_until)])
    await journal.tick(began + tick_ms_max) // with what these have left, also where one of them has failed
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    const counts = this.#takeCounts()
    const tenants_purged = this.#tenants_purged
    this.#tenants_purged = 0
    return { counts, tenants_purged, duration_ms: Math.round(clock.monotonic() - began) }
  }

  #takeCounts(): Record<string, number> {
    for (const [counter, by] of this.options.worker.takeCounts()) this.#count(counter, by)
    const counts = this.#counts
    this.#counts = new Map()
    return Object.fromEntries(counts)
  }

  /** Nothing more is started; resolves when no step is running. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.options.timer.stop()
    await this.#expirer?.stop()
    await this.#sweeper?.stop()
  }
}
