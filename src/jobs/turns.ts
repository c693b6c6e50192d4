// Whose turn it is where the oldest due work fills the window: tenant by tenant in the order of their ids, and for a
// tenant that has much, destination by destination. Each call goes on where the last one ended, and does a bounded
// part of the lap, whatever the tenants have planned for later.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import * as outbox from './service.ts'
import { lane_max, type Slots } from './slots.ts'

// What one call costs at most on SQLite, beside the window's own millisecond: 4 ms.
/** Tenants that one call leaps over: 1.3 µs each. */
const tenants_max = limit(
  'jobs.tenants_passed',
  1_000,
  'rows',
  'Tenants that one search for due jobs passes, so that it takes a few milliseconds.',
)
/** Of these, tenants with due work, which is read: 15 µs each. */
const tenants_read_max = limit('jobs.tenants_read', 64, 'rows', 'Tenants of whom one search reads due jobs.')
/** How many of its longest due are read of each. Whoever has as many is walked destination by destination. */
const tenant_rows_max = limit(
  'jobs.read_of_tenant',
  16,
  'rows',
  'Due jobs that one search reads of one tenant.',
)
/** Such tenants: after the last of them the next call goes on. */
const crowded_max = limit(
  'jobs.crowded_tenants',
  32,
  'rows',
  'Tenants with many due jobs that one search reads destination by destination.',
)
/** Destinations that one call leaps over, for all such tenants together: 1 µs each. */
const lanes_max = limit('jobs.destinations_passed', 500, 'rows', 'Destinations that one search passes.')
/** Of these, destinations with due work and a free place, which is read: 15 µs each. */
const lanes_read_max = limit(
  'jobs.destinations_read',
  32,
  'rows',
  'Destinations of which one search reads due jobs.',
)
/** Tenants of which is remembered at which destination the next call begins. Those forgotten begin anew. */
const remembered_max = limit(
  'jobs.turns_remembered',
  1_000,
  'entries',
  'Tenants of whom is remembered where the next search begins.',
)

export class Turns {
  #after_tenant_id = ''
  /** Tenant -> the destination to begin with. */
  readonly #next_lane = new Map<string, string>()

  constructor(private readonly db: Db) {}

  /** Due work of those whose turn it is; some of it twice. */
  async take(now: Millis, slots: Slots): Promise<outbox.Due[]> {
    const ahead = await outbox.tenants(this.db, this.#after_tenant_id, tenants_max)
    const due = ahead.filter(({ tenant_status, next_at }) => tenant_status === 'active' && next_at <= now)
    const found = await Promise.all(
      due.slice(0, tenants_read_max).map(async ({ tenant_id }) => ({
        tenant_id,
        rows: await outbox.dueOfTenant(this.db, tenant_id, now, tenant_rows_max),
      })),
    )
    const crowded = found.filter(({ rows }) => rows.length === tenant_rows_max).slice(0, crowded_max)
    // Those behind the last one that is walked were read all the same, and come again.
    const last =
      crowded.length === crowded_max ? crowded.at(-1) : due.length > found.length ? found.at(-1) : null
    const lap_ended = !last && ahead.length < tenants_max
    this.#after_tenant_id = lap_ended ? '' : (last ?? ahead.at(-1)!).tenant_id
    const share = {
      lanes: Math.max(2, Math.floor(lanes_max / crowded.length)),
      reads: Math.max(1, Math.floor(lanes_read_max / crowded.length)),
    }
    const in_lanes = await Promise.all(
      crowded.map(({ tenant_id }) => this.#lanesOf(tenant_id, now, slots, share)),
    )
    return [...found.flatMap(({ rows }) => rows), ...in_lanes.flat()]
  }

  async #lanesOf(
    tenant_id: string,
    now: Millis,
    slots: Slots,
    share: { lanes: number; reads: number },
  ): Promise<outbox.Due[]> {
    // Without a place for them the lanes keep their turns. Timeouts are counted apart.
    if (!slots.hasPlaceFor(tenant_id)) {
      if (!slots.isFree({ tenant_id, destination: '' })) return []
      return outbox.dueInLane(this.db, tenant_id, '', now, lane_max)
    }
    const from = this.#next_lane.get(tenant_id) ?? ''
    const ahead = await outbox.lanes(this.db, tenant_id, from, share.lanes)
    // The last one of a full list only says where to go on.
    const passed = ahead.length < share.lanes ? ahead : ahead.slice(0, -1)
    const open = passed.filter(
      ({ destination, next_at }) => next_at <= now && slots.isFree({ tenant_id, destination }),
    )
    const read = open.slice(0, share.reads)
    this.#remember(tenant_id, open[share.reads]?.destination ?? ahead[passed.length]?.destination)
    const found = await Promise.all(
      read.map(({ destination }) => outbox.dueInLane(this.db, tenant_id, destination, now, lane_max)),
    )
    return found.flat()
  }

  #remember(tenant_id: string, next: string | undefined): void {
    this.#next_lane.delete(tenant_id)
    if (next === undefined) return
    if (this.#next_lane.size >= remembered_max) this.#next_lane.clear()
    this.#next_lane.set(tenant_id, next)
  }
}
