// The tenants behind the buffer, where the oldest due jobs fill it: tenant by tenant in the order of their ids, and for
// a tenant with many due jobs destination by destination. Each call continues where the last one ended, and does a
// bounded part of the cycle, however many jobs the tenants have for later.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import { type ConcurrencyLimiter, lane_max } from './concurrency.ts'
import * as search from './search-store.ts'

// The cost of one call on SQLite, in addition to the buffer's own millisecond: 4 ms at most.
/** Tenants that one call passes: 1.3 µs each. */
const tenants_max = limit(
  'jobs.tenants_passed',
  1_000,
  'rows',
  'Tenants that one search for due jobs passes, so that it takes a few milliseconds.',
)
/** Of these, tenants with due jobs, which are read: 15 µs each. */
const tenants_read_max = limit('jobs.tenants_read', 64, 'rows', 'Tenants whose due jobs one search reads.')
/** Of each, so many of its longest due. A tenant with as many is read destination by destination. */
const tenant_rows_max = limit(
  'jobs.read_of_tenant',
  16,
  'rows',
  'Due jobs that one search reads of one tenant.',
)
/** Backlogged tenants of one call: the next call continues after the last of them. */
const many_due_max = limit(
  'jobs.backlogged_tenants',
  32,
  'rows',
  'Tenants with many due jobs that one search reads destination by destination.',
)
/** Destinations that one call passes, for all such tenants together: 1 µs each. */
const lanes_max = limit('jobs.destinations_passed', 500, 'rows', 'Destinations that one search passes.')
/** Of these, destinations with a due job and a free permit, which are read: 15 µs each. */
const lanes_read_max = limit(
  'jobs.destinations_read',
  32,
  'rows',
  'Destinations whose due jobs one search reads.',
)
/** Backlogged tenants whose next destination is remembered. Those forgotten start again at the first. */
const remembered_max = limit(
  'jobs.positions_remembered',
  1_000,
  'entries',
  'Tenants for which a node remembers at which destination the next search begins.',
)

export class RoundRobin {
  #after_tenant_id = ''
  /** Tenant -> the destination to begin with. */
  readonly #next_lane = new Map<string, string>()

  /** `onError`: some could not be read, which costs no others their turn. */
  constructor(
    private readonly db: Db,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Due jobs of those whose turn it is; some of them twice. When nothing could be read, they keep their turn. */
  async next(now: Millis, limiter: ConcurrencyLimiter): Promise<search.DueJobOfAny[]> {
    const ahead = await search.tenants(this.db, this.#after_tenant_id, tenants_max)
    const due = ahead.filter(({ tenant_status, next_at }) => tenant_status === 'active' && next_at <= now)
    const asked = due.slice(0, tenants_read_max)
    const found = await this.#readable(
      asked.map(async ({ tenant_id }) => ({
        tenant_id,
        rows: await search.dueOfTenant(this.db, tenant_id, now, tenant_rows_max),
      })),
    )
    if (found.length === 0 && asked.length > 0) return []
    const with_many_due = found.filter(({ rows }) => rows.length === tenant_rows_max).slice(0, many_due_max)
    // Tenants after the last one handled were read too; the next call reads them again.
    const last =
      with_many_due.length === many_due_max
        ? with_many_due.at(-1)
        : due.length > asked.length
          ? asked.at(-1)
          : null
    const cycle_ended = !last && ahead.length < tenants_max
    this.#after_tenant_id = cycle_ended ? '' : (last ?? ahead.at(-1)!).tenant_id
    const share = {
      lanes: Math.max(2, Math.floor(lanes_max / with_many_due.length)),
      reads: Math.max(1, Math.floor(lanes_read_max / with_many_due.length)),
    }
    const in_lanes = await this.#readable(
      with_many_due.map(({ tenant_id }) => this.#nextLanes(tenant_id, now, limiter, share)),
    )
    return [...found.flatMap(({ rows }) => rows), ...in_lanes.flat()]
  }

  async #nextLanes(
    tenant_id: string,
    now: Millis,
    limiter: ConcurrencyLimiter,
    share: { lanes: number; reads: number },
  ): Promise<search.DueJobOfAny[]> {
    // Without a permit for them the lanes keep their turns. Timeouts are counted apart.
    if (!limiter.hasPermitFor(tenant_id)) {
      if (!limiter.mayAcquire({ tenant_id, destination: '' })) return []
      return search.dueInLane(this.db, tenant_id, '', now, lane_max)
    }
    const from = this.#next_lane.get(tenant_id) ?? ''
    const ahead = await search.lanes(this.db, tenant_id, from, share.lanes)
    // The last one of a full list only says where to continue.
    const passed = ahead.length < share.lanes ? ahead : ahead.slice(0, -1)
    const open = passed.filter(
      ({ destination, next_at }) => next_at <= now && limiter.mayAcquire({ tenant_id, destination }),
    )
    const read = open.slice(0, share.reads)
    const found = await this.#readable(
      read.map(async ({ destination }) => search.dueInLane(this.db, tenant_id, destination, now, lane_max)),
    )
    if (found.length === 0 && read.length > 0) return []
    this.#remember(tenant_id, open[share.reads]?.destination ?? ahead[passed.length]?.destination)
    return found.flat()
  }

  /** Those that succeed. The first failure is reported: the others mostly have the same cause. */
  async #readable<T>(reads: Promise<T>[]): Promise<T[]> {
    const ends = await Promise.allSettled(reads)
    const failure = ends.find((end) => end.status === 'rejected')
    if (failure) this.onError(failure.reason)
    return ends.filter((end) => end.status === 'fulfilled').map(({ value }) => value)
  }

  #remember(tenant_id: string, next: string | undefined): void {
    this.#next_lane.delete(tenant_id)
    if (next === undefined) return
    if (this.#next_lane.size >= remembered_max) this.#next_lane.clear()
    this.#next_lane.set(tenant_id, next)
  }
}
