// Chooses the due jobs that start next. The longest due comes first, but no tenant and no destination may keep the others
// waiting: permits are handed out round robin, tenant by tenant, and where the oldest jobs fill the buffer, others are
// found by a round robin behind it.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Awaitable, Db } from '../db/db.ts'
import { JobBuffer } from './buffer.ts'
import type { Candidate, ConcurrencyLimiter } from './concurrency.ts'
import { isLast, type JobKind, type JobKinds } from './kind.ts'
import { RoundRobin } from './round-robin.ts'
import * as search from './search-store.ts'
import * as store from './store.ts'

const buffer_rows_max = limit(
  'jobs.buffer',
  1_000,
  'rows',
  'Longest due jobs that are read in one go. Past it tenants take turns.',
)
const served_remembered_max = limit(
  'jobs.tenants_remembered',
  10_000,
  'entries',
  'Tenants whose last turn is remembered. Past it all are forgotten, and the turns start again.',
)
/** A buffer older than this is read again: meanwhile other jobs fell due, or other nodes leased some. */
const buffer_fresh_ms = 100

export interface QueuedJob extends Candidate {
  kind: JobKind
  source_id: string
  /** So far. */
  attempts: number
}

/** To be leased together: all of one tenant and kind, at most `lease_rows_max`. */
export interface Batch {
  tenant_id: string
  kind: JobKind
  items: QueuedJob[]
}

const unknown_kinds_max = limit(
  'jobs.unknown_kinds',
  100,
  'entries',
  'Kinds of jobs that this version does not know and whose names are logged, once each.',
)

export class JobQueue {
  #buffer = new JobBuffer<QueuedJob>()
  #read_at = Number.NEGATIVE_INFINITY
  /** The jobs that the round robin found; a part of the buffer. */
  #found = new Set<QueuedJob>()
  /** True when a refill need not wait until the buffer is stale: the round robin may find more. */
  #continues = false
  /** True when there may be due jobs behind the buffer. */
  #full = false
  /** True when jobs that were taken from the buffer may still be due. */
  #left_out = false
  #stragglers = new Set<string>()
  /** Reported once. */
  readonly #unknown_kinds = new Set<string>()
  #turns = 0
  /** Tenant -> the number of its last turn. */
  readonly #served_at = new Map<string, number>()
  readonly #round_robin: RoundRobin

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly kinds: JobKinds,
    private readonly onError: (error: unknown) => void,
  ) {
    this.#round_robin = new RoundRobin(db, onError)
  }

  /** There may be due jobs that were not read: the buffer is read again, however fresh it is. */
  expire(): void {
    this.#read_at = Number.NEGATIVE_INFINITY
  }

  /** Some of the jobs that were taken were not leased: they are looked for again once the buffer is empty. */
  leftOut(): void {
    this.#left_out = true
  }

  /** There was no room for a search: it is made once there is some. */
  postpone(): void {
    if (this.isDrained) this.expire()
  }

  /** Forgets all jobs that were read. */
  clear(): void {
    this.#buffer = new JobBuffer()
    this.#found.clear()
    this.expire()
  }

  /** Due jobs that were read and not started. */
  get waiting(): number {
    return this.#buffer.size
  }

  /** True when the last look found all that was due, and all of it was taken. */
  get isDrained(): boolean {
    return this.#read_at !== Number.NEGATIVE_INFINITY && !this.hasBacklog
  }

  /** True when due jobs wait for room, may wait behind the buffer, or were left out by a lease. */
  get hasBacklog(): boolean {
    return this.#left_out || this.#waitsForRoom
  }

  get #waitsForRoom(): boolean {
    return this.#full || this.#buffer.size > 0
  }

  /** Deleted or frozen tenants whose due jobs were read and wait; each is reported once. */
  takeStragglers(): string[] {
    const stragglers = [...this.#stragglers]
    this.#stragglers.clear()
    return stragglers
  }

  #report(kind: string): void {
    if (this.#unknown_kinds.size >= unknown_kinds_max || this.#unknown_kinds.has(kind)) return
    this.#unknown_kinds.add(kind)
    this.onError(new Error(`jobs of kind ${kind} are due, which this version does not know`))
  }

  /** Acquires a permit for each job that it returns. `wanted` says which jobs may be started at all; with `only_at_once`
   * no others are read. */
  async next(
    limiter: ConcurrencyLimiter,
    wanted: (job: QueuedJob) => boolean,
    only_at_once = false,
  ): Promise<Batch[]> {
    if (limiter.free === 0) {
      this.postpone()
      return []
    }
    const fresh = this.clock.monotonic() - this.#read_at < buffer_fresh_ms
    if (fresh) {
      const taken = this.#take(limiter, wanted)
      if (taken.length > 0) return batchesOf(taken)
      if (this.#waitsForRoom && !this.#continues) return []
    }
    await this.#refill(limiter, wanted, only_at_once)
    return batchesOf(this.#take(limiter, wanted))
  }

  /** The tenant with the least in flight comes first, and among equals the one that was served longest ago. */
  #take(limiter: ConcurrencyLimiter, wanted: (job: QueuedJob) => boolean): QueuedJob[] {
    const order = this.#buffer.tenant_ids
      .map((tenant_id) => ({
        tenant_id,
        active: limiter.activeOf(tenant_id),
        served_at: this.#served_at.get(tenant_id) ?? 0,
      }))
      .sort((one, other) => one.active - other.active || one.served_at - other.served_at)
    const taken = this.#buffer.take(
      order.map(({ tenant_id }) => tenant_id),
      limiter,
      wanted,
    )
    for (const job of taken) {
      this.#served(job.tenant_id)
      // Where a job behind the buffer was found and taken, there may be more.
      if (this.#found.delete(job)) this.#continues = true
    }
    return taken
  }

  #served(tenant_id: string): void {
    if (this.#served_at.size > served_remembered_max) this.#served_at.clear()
    this.#served_at.set(tenant_id, ++this.#turns)
  }

  async #refill(
    limiter: ConcurrencyLimiter,
    wanted: (job: QueuedJob) => boolean,
    only_at_once: boolean,
  ): Promise<void> {
    const now = this.clock.now()
    this.#read_at = this.clock.monotonic()
    this.#continues = false
    this.#left_out = false
    const read = only_at_once ? search.dueAtOnce : search.due
    const rows = await this.#orExpired(read(this.db, now, buffer_rows_max))
    const oldest = this.#queued(rows)
    this.#full = rows.length === buffer_rows_max
    // A job whose turn it was and for which there was no permit keeps it: the round robin has moved past it. One that is not
    // wanted would stop the round robin for as long.
    const kept = [...this.#found].filter(
      (job) => wanted(job) && (limiter.mayAcquire(job) || !limiter.hasPermitFor(job.tenant_id)),
    )
    const continues = this.#full && !kept.some((job) => limiter.mayAcquire(job))
    const behind = this.#full ? kept : []
    this.#fill(oldest, behind) // these start even if the round robin fails
    if (continues) this.#fill(oldest, [...behind, ...(await this.#nextBehind(now, limiter))])
  }

  #fill(oldest: readonly QueuedJob[], behind: readonly QueuedJob[]): void {
    const read_before = new Set(oldest.map(idOf))
    const found = [...new Map(behind.map((job) => [idOf(job), job]))]
      .filter(([id]) => !read_before.has(id))
      .map(([, job]) => job)
    this.#found = new Set(found)
    this.#buffer = new JobBuffer([...oldest, ...found])
  }

  /** A round robin that failed has found nothing, and those whose turn it was keep it. */
  async #nextBehind(now: Millis, limiter: ConcurrencyLimiter): Promise<QueuedJob[]> {
    try {
      return this.#queued(await this.#round_robin.next(now, limiter))
    } catch (error) {
      this.onError(error)
      return []
    }
  }

  /** After a read that failed the buffer is stale. */
  async #orExpired<T>(read: Awaitable<T>): Promise<T> {
    try {
      return await read
    } catch (error) {
      this.expire()
      throw error
    }
  }

  /**
   * Without those of tenants that are deleted or frozen, which are noted. Without jobs of an unknown kind: a node of a newer
   * version runs them. Each such kind is reported once.
   */
  #queued(rows: readonly search.DueJobOfAny[]): QueuedJob[] {
    return rows.flatMap(({ tenant_id, tenant_status, kind: name, source_id, destination, attempts }) => {
      if (tenant_status !== 'active') {
        if (tenant_status !== null) this.#stragglers.add(tenant_id)
        return []
      }
      const kind = this.kinds.get(name)
      if (!kind) {
        this.#report(name)
        return []
      }
      return [{ tenant_id, kind, source_id, destination, attempts, is_last: isLast(kind, attempts) }]
    })
  }
}

function batchesOf(jobs: QueuedJob[]): Batch[] {
  const groups = Map.groupBy(jobs, ({ tenant_id, kind }) => `${tenant_id} ${kind.name}`)
  return [...groups.values()].flatMap((items) => {
    const { tenant_id, kind } = items[0]!
    const batches: Batch[] = []
    for (let at = 0; at < items.length; at += store.lease_rows_max) {
      batches.push({ tenant_id, kind, items: items.slice(at, at + store.lease_rows_max) })
    }
    return batches
  })
}

/** The key of a job as one text. */
export function idOf({
  tenant_id,
  kind,
  source_id,
}: Pick<QueuedJob, 'tenant_id' | 'kind' | 'source_id'>): string {
  return `${tenant_id} ${kind.name} ${source_id}`
}
