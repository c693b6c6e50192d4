// Due work: found, leased, done, settled. Any number of engines on any number of nodes do nothing twice, because a
// lease is a guarded update and a result counts only under the fence of its lease.

import type { Clock, Millis } from '../base/clock.ts'
import { second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Outcome, Outgoing } from '../callbacks/deliver.ts'
import { signatureHeaders } from '../callbacks/sign.ts'
import * as checkpoints from '../checkpoints/service.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { type Db, dueWork } from '../db/db.ts'
import * as inbox from '../inbox/service.ts'
import * as schedules from '../schedules/service.ts'
import * as tenants from '../tenants/service.ts'
import { version } from '../version.ts'
import { type Batch, type Candidate, Candidates } from './candidates.ts'
import { attemptsMax, type Leased, lease_ms, type Result, stale_lease_ms, type WorkKind } from './job.ts'
import * as outbox from './service.ts'
import { type Ended, node_ahead_max, node_max, Slots } from './slots.ts'

/** Leased work, in flight, ahead or not written yet. */
const under_way_max = limit(
  'jobs.leased',
  node_max + node_ahead_max,
  'attempts',
  'Work that a node has leased, until what came of it is written. Past it nothing is leased.',
)
/** Rounds of one pass: a tick looks at the time between two. */
const rounds_max = limit(
  'jobs.rounds',
  8,
  'entries',
  'Batches that are started in one go, before the engine looks at anything else.',
)
/** Rounds in a row that may lease nothing before the engine waits for its next call. */
const vain_rounds_max = limit(
  'jobs.vain_rounds',
  3,
  'entries',
  'Batches in a row that may lease nothing. Past it the engine waits for its next call.',
)
/** When work is looked for again that could not be leased. */
const pump_later_ms = 1_000
/** When work is due again whose name could not be looked up yet; less than `pump_later_ms`, which finds it then. */
const untried_again_ms = 500
/** How often a tick looks whether other nodes are done with what they leased. */
const look_again_ms = 50
/** How long a result waits at most for others to be written with. */
const gather_ms_max = limit(
  'jobs.gathering',
  25,
  'milliseconds',
  'How long a result waits for others that are written in the same commit.',
)
/** Kinds of work whose first attempt waits for no tick. */
const starts_at_once: readonly WorkKind[] = ['callback', 'forward']

export interface Counts {
  due: number
  fired: number
  retrying: number
  failed: number
  rejected: number
  expired: number
  callbacks: number
}

export interface EngineOptions {
  db: Db
  clock: Clock
  services: Dependencies
  /** Whether due work starts by itself (TICK=internal) or at ticks only. */
  internal: boolean
  send(tenant_id: string, request: Outgoing): Promise<Outcome>
  onError: (error: unknown) => void
}

/** Leased work, and since when. */
interface Work extends Leased {
  /** On the monotonic clock. */
  leased_at: number
}

export class Engine {
  readonly #slots = new Slots()
  readonly #candidates: Candidates
  readonly #under_way = new Set<Promise<void>>()
  #counts = noCounts()
  #pumping: Promise<void> | null = null
  #gathering: PromiseWithResolvers<void> | null = null
  #next_pass: PromiseWithResolvers<void> | null = null
  #later: Timer | undefined
  #stopped = false
  #ticks = 0

  constructor(private readonly options: EngineOptions) {
    this.#candidates = new Candidates(options.db, options.clock)
  }

  /**
   * Starts what is due and for which there is room; more follows by itself as room is made. Resolves when nothing more
   * can be started now, or after a bounded part of it.
   */
  pump(): Promise<void> {
    this.#next_pass ??= Promise.withResolvers()
    this.#pumping ??= this.#passes()
    return this.#next_pass.promise
  }

  /** The same after work was put in: it is looked for even while older work waits that may not be started. */
  pumpAnew(): Promise<void> {
    this.#candidates.forget()
    return this.pump()
  }

  async #passes(): Promise<void> {
    await null // so that #pumping is set before it is cleared
    while (this.#next_pass) {
      await nextTurn() // attempts that end in the same turn make room for one batch
      const pass = this.#next_pass
      this.#next_pass = null
      try {
        const outcome = await this.#pass()
        if (outcome === 'more') void this.pump()
        if (outcome === 'in_vain') this.#pumpLater()
      } catch (error) {
        this.options.onError(error)
        this.#pumpLater()
      }
      pass.resolve()
    }
    this.#pumping = null // here, where #next_pass was looked at last: a pump asked for in between must not be lost
  }

  /** With TICK=external nobody else would try a decision's callback again before the next tick. */
  #pumpLater(): void {
    if (this.options.internal || this.#stopped) return
    clearTimeout(this.#later)
    this.#later = setTimeout(() => void this.pump(), pump_later_ms)
  }

  async #pass(): Promise<'more' | 'done' | 'in_vain'> {
    let vain = 0
    for (let round = 0; round < rounds_max; round++) {
      if (this.#stopped) return 'done'
      if (vain === vain_rounds_max) return 'in_vain'
      const outcome = await this.#round()
      if (outcome === 'nothing_due') return 'done'
      vain = outcome === 'started' ? 0 : vain + 1
    }
    return 'more'
  }

  /** Leases and starts one batch. In vain: other nodes were faster, or the database refused. */
  async #round(): Promise<'started' | 'nothing_due' | 'in_vain'> {
    // What was sent and could not be written yet counts, too: it would be sent again. Whoever ends pumps.
    if (this.#under_way.size >= under_way_max) return 'nothing_due'
    const only_first = !this.options.internal && this.#ticks === 0
    const batches = await this.#candidates.choose(this.#slots, (item) => this.#isWanted(item), only_first)
    if (batches.length === 0) {
      await this.#restLate()
      return 'nothing_due'
    }
    const leased = (await Promise.all(batches.map((batch) => this.#lease(batch)))).flat()
    for (const work of leased) this.#start(work)
    await this.#restLate()
    if (leased.length > 0) return 'started'
    this.#candidates.drop() // what was seen is no longer so
    return 'in_vain'
  }

  /** What deleted tenants still have among the due work would fill every look. */
  async #restLate(): Promise<void> {
    const { db, services, onError } = this.options
    await tenants.restLate(db, services, this.#candidates.takeLate()).catch(onError)
  }

  /** With TICK=external, outside a tick, only the first attempt of a callback or forward starts by itself. */
  #isWanted({ kind, attempts }: Candidate): boolean {
    return this.options.internal || this.#ticks > 0 || (starts_at_once.includes(kind) && attempts === 0)
  }

  /**
   * Does all that is due now, whoever leased it, and answers when it has ended its attempt: `wait_ms_max` at most.
   */
  async tick(wait_ms_max: number): Promise<void> {
    const { db, clock } = this.options
    const arrived_at = clock.now()
    const until = clock.monotonic() + wait_ms_max
    this.#ticks += 1
    try {
      await this.pump()
      while (!this.#stopped && (await outbox.anyDue(db, arrived_at)) && clock.monotonic() < until) {
        await Promise.race([sleep(look_again_ms), ...this.#under_way])
        await this.pump()
      }
    } finally {
      this.#ticks -= 1
    }
  }

  /** What of this batch is still due and free; the rest another node has, or it is gone. */
  async #lease({ tenant_id, kind, items }: Batch): Promise<Work[]> {
    const { db, clock } = this.options
    const leased_at = clock.monotonic() // the lease is older than its answer
    const ids = items.map(({ source_id }) => source_id)
    try {
      const leased = await db.write(dueWork(tenant_id), (tx) =>
        outbox.lease(tx, tenant_id, kind, ids, tx.now + lease_ms),
      )
      const got = new Set(leased.map(({ source_id }) => source_id))
      for (const item of items) if (!got.has(item.source_id)) this.#slots.giveBack(item)
      // The place was taken for the destination that was seen; a PATCH may have given the work another since.
      const places = new Map(items.map(({ source_id, destination }) => [source_id, destination]))
      return leased.map((work) => ({ ...work, destination: places.get(work.source_id)!, leased_at }))
    } catch (error) {
      for (const item of items) this.#slots.giveBack(item)
      this.options.onError(error)
      return []
    }
  }

  #start(leased: Work): void {
    const running = this.#run(leased)
      .catch((error) => this.options.onError(error))
      .finally(() => {
        this.#under_way.delete(running)
        if (!this.#stopped) void this.pump()
      })
    this.#under_way.add(running)
  }

  async #run(leased: Work): Promise<void> {
    if (!(await this.#slots.turn(leased))) return this.#goBack(leased)
    if (leased.kind === 'timeout') return this.#inPlace(leased, () => this.#timeOut(leased))
    this.#counts.due += leased.kind === 'schedule' ? 1 : 0
    const result = await this.#inPlace(leased, () => this.#attempt(leased))
    if (result === null) return
    await this.#together(leased)
    if (!this.#stopped) void this.pump() // what takes the place is leased in the commit that settles this
    await nextTurn() // which is the turn of that lease
    await this.#writeAtLast(leased, () => this.#settle(leased, result))
  }

  /** The place is given back when the attempt has ended, before what came of it is written. */
  async #inPlace<T extends Result | null | undefined>(leased: Leased, attempt: () => Promise<T>): Promise<T> {
    let ended: Ended | null = null
    try {
      const result = await attempt()
      if (result) ended = { answered: result.status_code !== null, duration_ms: result.duration_ms }
      return result
    } catch (error) {
      this.#slots.sendAway(leased) // they would fail as well: leases that are there last while the database is away
      throw error
    } finally {
      this.#slots.end(leased, ended)
    }
  }

  /** Its turn does not come; the lease was no attempt. */
  async #goBack(leased: Work): Promise<void> {
    try {
      await this.#unlease(leased)
    } finally {
      this.#slots.giveBack(leased)
    }
  }

  #unlease(leased: Work): Promise<void> {
    return this.#writeAtLast(leased, () =>
      this.options.db.write(dueWork(leased.tenant_id), (tx) => outbox.unlease(tx, leased)),
    )
  }

  /** Nothing was tried for want of a permit; not due at once, since it would be leased again for nothing. */
  async #putBack(leased: Work): Promise<void> {
    const { db, services } = this.options
    await this.#writeAtLast(leased, () =>
      db.write(dueWork(leased.tenant_id), async (tx) => {
        const again_at = tx.now + untried_again_ms
        await outbox.unlease(tx, leased, again_at)
        tx.afterCommit(() => services.jobs.wake(again_at))
      }),
    )
    this.#pumpLater()
  }

  /** While more goes out under leases that are there already, results wait to be written in one commit. */
  #together(leased: Leased): Promise<void> | undefined {
    if (!this.#slots.isAhead(leased) || this.#stopped) {
      this.#gathering?.resolve()
      return undefined
    }
    this.#gathering ??= this.#gather()
    return this.#gathering.promise
  }

  #gather(): PromiseWithResolvers<void> {
    const gathering = Promise.withResolvers<void>()
    const timer = setTimeout(gathering.resolve, gather_ms_max)
    gathering.promise = gathering.promise.then(() => {
      clearTimeout(timer)
      if (this.#gathering === gathering) this.#gathering = null
    })
    return gathering
  }

  async #timeOut(leased: Leased): Promise<undefined> {
    const { db, services } = this.options
    const settled = await db.write(dueWork(leased.tenant_id), (tx) =>
      checkpoints.settleTimeout(tx, services, leased),
    )
    if (settled !== 'stale') this.#counts[settled] += 1
  }

  /** One request. Null when there was none: the lease is too old, its subject is gone or rests, or its turn has not come. */
  async #attempt(leased: Work): Promise<Result | null> {
    const { db, clock, send } = this.options
    const started_at = clock.now()
    // Whoever had the last attempt did not live to tell what came of it.
    if (leased.attempts > attemptsMax(leased.kind)) {
      return { ok: false, status_code: null, error: 'interrupted', started_at, duration_ms: 0 }
    }
    const request = await (leased.kind === 'forward'
      ? inbox.forward(db, leased)
      : this.#signed(leased, started_at))
    if (!request) {
      await db.write(dueWork(leased.tenant_id), (tx) => outbox.complete(tx, leased))
      return null
    }
    if (request === 'rests' || clock.monotonic() - leased.leased_at > stale_lease_ms) {
      await this.#unlease(leased)
      return null
    }
    const { ok, status, error, duration_ms } = await send(leased.tenant_id, request)
    if (error === 'untried') {
      await this.#putBack(leased)
      return null
    }
    return { ok, status_code: status, error, started_at, duration_ms: Math.round(duration_ms) }
  }

  /** The callback of a schedule or of a decision. Null when its subject is gone. */
  async #signed(leased: Work, started_at: Millis): Promise<Outgoing | 'rests' | null> {
    const { db, services } = this.options
    // At each attempt: since the lease they may have been rotated, or the tenant deleted.
    const secrets = await tenants.signingSecrets(db, services.keys.secrets, leased.tenant_id, started_at)
    if (!secrets) return 'rests'
    // Last, so that what a PATCH or DELETE has changed since the lease is not sent under the old event.
    const message = await (leased.kind === 'schedule' ? schedules : checkpoints).message(db, leased)
    if (!message) return null
    const timestamp_seconds = Math.floor(started_at / second_ms)
    return {
      method: 'POST',
      url: message.url,
      headers: {
        'content-type': 'application/json',
        'user-agent': `Waystation/${version}`,
        'x-waystation-event': message.event,
        'x-waystation-attempt': String(leased.attempts),
        ...signatureHeaders({ id: leased.event_id, timestamp_seconds, body: message.body, secrets }),
      },
      body: message.body,
    }
  }

  /**
   * A database that refuses for a moment must not make a delivered callback be sent again, nor count an attempt that
   * was not made. The fence makes it safe.
   */
  async #writeAtLast(leased: Work, write: () => Promise<unknown>): Promise<void> {
    const { clock } = this.options
    for (let wait_ms = 50; ; wait_ms *= 2) {
      try {
        await write()
        return
      } catch (error) {
        if (this.#stopped || clock.monotonic() - leased.leased_at + wait_ms > lease_ms) throw error
        await sleep(wait_ms)
      }
    }
  }

  async #settle(leased: Leased, result: Result): Promise<void> {
    const { db, services } = this.options
    if (leased.kind === 'schedule') {
      const settled = await db.write(dueWork(leased.tenant_id), (tx) =>
        schedules.settle(tx, services, leased, result),
      )
      if (settled !== 'stale') this.#counts[settled] += 1
    } else if (leased.kind === 'forward') {
      await db.write(dueWork(leased.tenant_id), (tx) => inbox.settleForward(tx, leased, result))
    } else {
      const settled = await db.write(dueWork(leased.tenant_id), (tx) =>
        checkpoints.settleCallback(tx, services, leased, result),
      )
      if (settled === 'delivered' || settled === 'failed') this.#counts.callbacks += 1
    }
  }

  /** Whether due work waits for room. */
  get hasBacklog(): boolean {
    return this.#candidates.hasBacklog
  }

  /** What was settled since this was last asked. */
  takeCounts(): Counts {
    const counts = this.#counts
    this.#counts = noCounts()
    return counts
  }

  /** Starts nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#later)
    this.#slots.close()
    await this.#pumping
    await Promise.all(this.#under_way)
  }
}

function noCounts(): Counts {
  return { due: 0, fired: 0, retrying: 0, failed: 0, rejected: 0, expired: 0, callbacks: 0 }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
