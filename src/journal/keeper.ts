// The background work of a node on its journal: within about half a second of a change its event has a number, and features
// that follow the journal act.

import { limit } from '../base/limit.ts'
import { Repeat } from '../base/repeat.ts'
import type { Dependencies, Journal } from '../contract/dependencies.ts'
import { tenantOfEvents } from '../contract/event.ts'
import { Removal, type RemovalOptions } from './removal.ts'
import * as journal from './service.ts'

const every_ms = limit(
  'journal.interval',
  500,
  'milliseconds',
  'How often events get their numbers when nobody reads them or waits for them.',
)
/** Rounds between two looks for what another node has left. */
const rounds_a_look = 10
const tenants_at_once_max = limit(
  'journal.tenants_at_once',
  4,
  'entries',
  'Tenants whose events one node numbers at the same time in the background.',
)

interface Run {
  now: Promise<void>
  /** For callers that came while `now` was under way, which may not have seen their events. */
  next: Promise<void> | null
}

/** While it is held, events still get their numbers. */
export interface KeeperOptions extends RemovalOptions {
  /** TICK=internal: runs on its own. Otherwise at ticks, and when somebody reads. */
  internal: boolean
}

export class JournalKeeper implements Journal {
  readonly #runs = new Map<string, Run>()
  /** Tenants with news since their last round. */
  #changed = new Set<string>()
  /** Tenants whose last round left more to do, or did not come to them. */
  #unfinished = new Set<string>()
  /** Tenants whose last round failed, those first that have failed for longest. */
  #failed = new Set<string>()
  readonly #repeat = new Repeat(every_ms, () => this.#runAlone())
  #rounds = 0
  #is_stopped = false
  /** The search for what other nodes have left continues after this tenant; '' when it begins. */
  #looked_up_to = ''
  /** Resolves when no tick is under way. */
  #ticks_over: Promise<void> = Promise.resolve()
  readonly #removal: Removal
  #dependencies: Dependencies | null = null

  constructor(private readonly options: KeeperOptions) {
    this.#removal = new Removal(options)
  }

  /** Before the first event. */
  connect(dependencies: Dependencies): void {
    this.#dependencies = dependencies
    this.#removal.connect(dependencies)
  }

  /** A transaction of this process has changed this key. */
  changed(key: string): void {
    const tenant_id = tenantOfEvents(key)
    if (tenant_id !== null) this.#changed.add(tenant_id)
  }

  number(tenant_id: string): Promise<void> {
    const run = this.#runs.get(tenant_id)
    if (!run) return this.#begin(tenant_id)
    run.next ??= run.now.catch(() => {}).then(() => this.#begin(tenant_id))
    return run.next
  }

  #begin(tenant_id: string): Promise<void> {
    const { db, follows } = this.options
    const now = journal.number(db, this.#dependencies!, follows, tenant_id)
    const run: Run = { now, next: null }
    this.#runs.set(tenant_id, run)
    const end = () => {
      if (this.#runs.get(tenant_id) === run && !run.next) this.#runs.delete(tenant_id)
    }
    now.then(end, () => {
      this.#failed.add(tenant_id)
      end()
    })
    return now
  }

  start(): void {
    if (!this.options.internal) return
    this.#repeat.start(this.options.onError)
    this.#removal.start()
  }

  /** Numbers the events that are there and runs what follows, until done or until this monotonic time. For ticks. */
  tick(until: number): Promise<void> {
    const tick = this.#tick(until)
    // Without the results: each would hold those before it.
    this.#ticks_over = Promise.allSettled([this.#ticks_over, tick]).then(() => {})
    return tick
  }

  async #tick(until: number): Promise<void> {
    const { clock } = this.options.db
    const goesOn = () => !this.#is_stopped && clock.monotonic() < until
    await this.#runRound(true, 'with_failed')
    while (this.#is_unfinished && goesOn()) await this.#runRound(true)
    await this.#removal.turn(goesOn)
  }

  /**
   * The same in as many rounds as it takes, for what this process has changed, and where there may be others for all that
   * has no number. What fails is left to the next tick.
   */
  async settle(until: number): Promise<void> {
    const { clock, engine } = this.options.db
    const looks = engine === 'postgres'
    for (let rounds = 0; ; rounds++) {
      const kept = await this.#runRound(looks, rounds === 0 ? 'with_failed' : undefined)
      await Promise.all([...this.#runs.values()].map(({ now, next }) => next ?? now)) // begun by others
      const has_news = this.#changed.size > 0 || (looks && (kept > 0 || this.#looked_up_to !== ''))
      const is_done = !has_news && this.#unfinished.size === 0
      if (is_done || this.#failed.size > 0 || this.#is_stopped || clock.monotonic() >= until) return
    }
  }

  /** A change that comes meanwhile does not count: a busy service would never be done. */
  get #is_unfinished(): boolean {
    return this.#unfinished.size > 0 || this.#looked_up_to !== ''
  }

  /** A round of TICK=internal. An unfinished search continues with the next round. */
  async #runAlone(): Promise<void> {
    const looks = this.#rounds++ % rounds_a_look === 0
    await this.#runRound(looks || this.#looked_up_to !== '', 'with_failed')
  }

  /**
   * Returns for how many tenants it began. Those that failed before come last, and each worker ends with one that fails: while their
   * server is away each of them takes long, and other tenants would wait for all of them.
   */
  async #runRound(looks: boolean, resumes?: 'with_failed'): Promise<number> {
    // Taken before anything is awaited: what changes meanwhile is for the next round.
    const changed = this.#changed.union(this.#unfinished)
    this.#changed = new Set()
    this.#unfinished = new Set()
    const found = changed.union(new Set(looks ? await this.#look() : []))
    const waiting = [...found.difference(this.#failed)]
    const failed = resumes ? [...this.#failed] : []
    const count = waiting.length
    const next = () => waiting.shift() ?? failed.shift()
    const work = async () => {
      for (let tenant_id = next(); tenant_id !== undefined; tenant_id = next())
        if (!(await this.#keep(tenant_id))) return
    }
    await Promise.all(Array.from({ length: tenants_at_once_max }, work))
    for (const tenant_id of waiting) this.#unfinished.add(tenant_id)
    return count
  }

  /** So many tenants at once that each has its turn, however many there are before it. */
  async #look(): Promise<string[]> {
    const { db, onError } = this.options
    try {
      const found = await journal.unnumberedTenants(db, this.#looked_up_to)
      this.#looked_up_to = found.length < journal.tenants_a_look_max ? '' : found.at(-1)!
      return found
    } catch (error) {
      this.#looked_up_to = ''
      onError(error)
      return []
    }
  }

  /** False when it fails. */
  async #keep(tenant_id: string): Promise<boolean> {
    const { db, follows, onError } = this.options
    try {
      await this.number(tenant_id)
      for (const { step } of follows)
        if ((await step?.(db, this.#dependencies!, tenant_id))?.more) this.#unfinished.add(tenant_id)
      this.#failed.delete(tenant_id)
      return true
    } catch (error) {
      this.#failed.delete(tenant_id) // behind the others
      this.#failed.add(tenant_id)
      onError(error)
      return false
    }
  }

  /**
   * Ends ticks. Once `writers` has settled, numbers a last time what this node has left (TICK=internal); resolves when
   * nothing is under way. Events of requests that end later get their numbers from another node, or after the next start.
   */
  async stop(writers: Promise<unknown> = Promise.resolve()): Promise<void> {
    this.#is_stopped = true
    await Promise.allSettled([writers, this.#removal.stop()])
    if (this.options.internal) await this.#repeat.stop().catch(this.options.onError)
    await this.#ticks_over
    await Promise.all([...this.#runs.values()].map(({ now, next }) => (next ?? now).catch(() => {})))
  }
}
