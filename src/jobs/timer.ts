// When the engine runs: at the time when the next work falls due, and once a second for what other nodes put in.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { TickReport } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import * as tenants from '../tenants/service.ts'
import * as outbox from './service.ts'
import type { Engine } from './worker.ts'

/** Other nodes' work, and leases that ran out, are found by looking this often. */
const poll_ms = 1_000
/** The same while due work waits for room. */
const backlog_poll_ms = 100
/** What comes in meanwhile is looked at this much later. */
const backlog_wake_ms = 20
/** How long POST /v1/tick may take. */
export const tick_ms_max = limit(
  'tick.duration',
  25_000,
  'milliseconds',
  'How long `POST /v1/tick` may take. What is left is done by the next one.',
)
/** How long it begins further steps of its sweep. */
const tick_sweep_ms_max = limit(
  'tick.sweep_duration',
  5_000,
  'milliseconds',
  'How long a tick begins further steps of its sweep.',
)

export interface TickerOptions {
  db: Db
  clock: Clock
  engine: Engine
  /** TICK=internal: runs by itself. Otherwise only a decision's callback does, and the rest at ticks. */
  internal: boolean
  onError: (error: unknown) => void
  maintenance: Maintenance
}

/** The sweep and the purge, which run beside due work. */
export interface Maintenance {
  /** Runs a step now and then until stopped; the answer resolves when no step is under way any more. */
  start(step: () => Promise<{ more: boolean }>, onError: (error: unknown) => void): { stop(): Promise<void> }
  /** One bounded step. `counts`: by `group.name`. */
  step(): Promise<{ counts: Readonly<Record<string, number>>; purged: number; more: boolean }>
}

export class Ticker {
  #stopped = false
  #timer: Timer | undefined
  /** With TICK=external: what came in while work waited for room. */
  #pump_timer: Timer | undefined
  /** When the timer is set for. */
  #wakes_at = Number.POSITIVE_INFINITY
  #running: Promise<void> = Promise.resolve()
  #sweeper: { stop(): Promise<void> } | undefined
  #swept: Record<string, number> = {}
  #purged = 0
  #rest_wanted = false
  #resting: Promise<void> | null = null

  constructor(private readonly options: TickerOptions) {}

  start(): void {
    if (!this.options.internal) return
    this.#setTimer(this.options.clock.now())
    this.#sweeper = this.options.maintenance.start(() => {
      this.rest() // where another node, or this one before it was started again, was interrupted
      return this.#sweepStep()
    }, this.options.onError)
  }

  /** Work falls due then. */
  wake(due_at: Millis): void {
    if (this.#stopped) return
    const now = this.options.clock.now()
    // Where work waits for room, each message for a dead receiver would otherwise cost a look at all of it.
    const soonest = this.options.engine.hasBacklog ? now + backlog_wake_ms : now
    if (this.options.internal) this.#setTimer(Math.max(due_at, soonest))
    else if (due_at <= now) this.#pumpAt(soonest)
  }

  /** Some tenant's work is to rest, or to be taken up again. */
  rest(): void {
    if (this.#stopped) return
    this.#rest_wanted = true
    this.#resting ??= this.#restWanted()
  }

  async #restWanted(): Promise<void> {
    await null // so that #resting is set before it is cleared
    try {
      while (this.#rest_wanted) {
        this.#rest_wanted = false
        await this.#restAll(Number.POSITIVE_INFINITY)
      }
    } catch (error) {
      this.options.onError(error)
    } finally {
      this.#resting = null
    }
  }

  /** Begins no further step after `until`, a monotonic time. False when that left something to do. */
  async #restAll(until: number): Promise<boolean> {
    const { db, clock } = this.options
    let after_tenant_id: string | null = ''
    while (after_tenant_id !== null && !this.#stopped && clock.monotonic() < until) {
      after_tenant_id = await tenants.restStep(db, after_tenant_id)
      if (after_tenant_id !== null) this.wake(clock.now()) // for what was taken up and is due
    }
    return after_tenant_id === null
  }

  #setTimer(at: Millis): void {
    if (this.#stopped || at >= this.#wakes_at) return
    clearTimeout(this.#timer)
    this.#wakes_at = at
    // A timer takes 24.8 days at most; looking once a second is enough for what is further away.
    const delay_ms = Math.min(Math.max(0, at - this.options.clock.now()), poll_ms)
    this.#timer = setTimeout(() => this.#run(), delay_ms)
  }

  #run(): void {
    this.#wakes_at = Number.POSITIVE_INFINITY
    const looked_at = this.options.clock.now()
    this.#running = this.#pump().then(() => this.#setNext(looked_at))
  }

  #pumpAt(at: Millis): void {
    const delay_ms = at - this.options.clock.now()
    if (delay_ms <= 0) void this.#pump()
    else
      this.#pump_timer ??= setTimeout(() => {
        this.#pump_timer = undefined
        void this.#pump()
      }, delay_ms)
  }

  async #pump(): Promise<void> {
    try {
      await this.options.engine.pumpAnew()
    } catch (error) {
      this.options.onError(error)
    }
  }

  /** `looked_at`: what fell due after it may not have been seen. */
  async #setNext(looked_at: Millis): Promise<void> {
    const { db, clock, engine, onError } = this.options
    const now = clock.now()
    let next_at = now + (engine.hasBacklog ? backlog_poll_ms : poll_ms)
    try {
      next_at = Math.min(next_at, (await outbox.nextAt(db, looked_at)) ?? next_at)
    } catch (error) {
      onError(error)
    }
    this.#setTimer(next_at)
  }

  async #sweepStep(): Promise<{ more: boolean }> {
    const { counts, purged, more } = await this.options.maintenance.step()
    for (const [name, count] of Object.entries(counts)) this.#swept[name] = (this.#swept[name] ?? 0) + count
    this.#purged += purged
    return { more }
  }

  /** Steps until there is no more, or until the tick's share of time is used; one at least. */
  async #sweepShare(): Promise<void> {
    const { clock } = this.options
    const until = clock.monotonic() + tick_sweep_ms_max
    let more = true
    while (more && !this.#stopped) {
      more = (await this.#sweepStep()).more && clock.monotonic() < until
    }
  }

  /** All that is due now, a share of the sweep meanwhile, and the counts since the answer before. */
  async tick(): Promise<TickReport> {
    const { engine, clock, onError } = this.options
    const began = clock.monotonic()
    // First, so that what fell due while a restored tenant waited for deletion is due now.
    const rested = await this.#restAll(began + tick_sweep_ms_max).catch(onError)
    if (rested === false) this.rest() // goes on beside the rest of the tick
    const waits_ms_max = began + tick_ms_max - clock.monotonic()
    await Promise.all([engine.tick(waits_ms_max), this.#sweepShare()])
    const { due, fired, retrying, failed, rejected, expired, callbacks } = engine.takeCounts()
    const [swept, tenants_purged] = [this.#swept, this.#purged]
    this.#swept = {}
    this.#purged = 0
    return {
      counts: {
        ...{ 'schedules.due': due, 'schedules.fired': fired, 'schedules.retrying': retrying },
        ...{ 'schedules.failed': failed, 'checkpoints.rejected': rejected },
        ...{ 'checkpoints.expired': expired, 'checkpoints.callbacks': callbacks, ...swept },
      },
      tenants_purged,
      duration_ms: Math.round(clock.monotonic() - began),
    }
  }

  /** Nothing more is started; resolves when no step is under way. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#pump_timer)
    await this.#running
    await this.#resting
    await this.#sweeper?.stop()
  }
}
