// Which due work is started next. What has waited longest comes first, but no tenant and no destination may keep
// the others waiting: places are dealt out tenant by tenant, and where the oldest work fills the window, the lanes
// (a tenant's work for one destination) are walked as well, a bounded number each time.

import type { Clock, Millis } from '../base/clock.ts'
import type { Db } from '../db/db.ts'
import * as outbox from '../outbox/service.ts'
import type { WorkKey, WorkKind } from '../outbox/work.ts'
import { destination_max, type Slots } from './slots.ts'

/** How many of the oldest due items are looked at. */
const window_rows_max = 1_000
/** How many tenants are remembered for taking turns. */
const served_remembered_max = 10_000
/** How many lanes one refill walks. */
const lanes_max = 200
/** A window older than this is read anew: meanwhile other work fell due, or other nodes took some. */
const window_fresh_ms = 100

export type Candidate = outbox.Due

/** To be leased together: all of one tenant and kind, at most `lease_rows_max`. */
export interface Batch {
  tenant_id: string
  kind: WorkKind
  items: Candidate[]
}

export class Candidates {
  #window: Candidate[] = []
  #read_at = Number.NEGATIVE_INFINITY
  #lane = { tenant_id: '', destination: '' }
  #picks = 0
  /** Tenant -> the number of the pick that served it last. */
  readonly #picked_at = new Map<string, number>()

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
  ) {}

  /** Work was added: the window is read anew, however fresh it is. */
  forget(): void {
    this.#read_at = Number.NEGATIVE_INFINITY
  }

  /** Nothing that was seen counts any more. */
  drop(): void {
    this.#window = []
    this.forget()
  }

  get waiting(): number {
    return this.#window.length
  }

  /** Takes a place for each item that it answers. `wanted` says which work may be started at all;
   * with `first_callbacks` nothing else is looked for. */
  async choose(
    slots: Slots,
    wanted: (item: Candidate) => boolean,
    first_callbacks = false,
  ): Promise<Batch[]> {
    if (slots.free === 0) return []
    const chosen = this.#pick(slots, wanted)
    if (chosen.length > 0) return batchesOf(chosen)
    if (this.#window.length > 0 && this.clock.monotonic() - this.#read_at < window_fresh_ms) return []
    await this.#refill(first_callbacks)
    return batchesOf(this.#pick(slots, wanted))
  }

  /** One item of each tenant in turn, until there is no room or nothing left; what is picked leaves the window. */
  #pick(slots: Slots, wanted: (item: Candidate) => boolean): Candidate[] {
    const queues = [...Map.groupBy(this.#window, ({ tenant_id }) => tenant_id).entries()]
      .map(([tenant_id, queue]) => ({
        queue,
        active: slots.activeOf(tenant_id),
        picked_at: this.#picked_at.get(tenant_id) ?? 0,
      }))
      // Who has least under way comes first, and of those who was served longest ago.
      .sort((one, other) => one.active - other.active || one.picked_at - other.picked_at)
      .map(({ queue }) => queue)
    const places = queues.map(() => 0)
    const picked = new Set<Candidate>()
    let found = true
    while (found && slots.free > 0) {
      found = false
      queues.forEach((queue, i) => {
        const at = firstFree(queue, places[i]!, slots, wanted)
        places[i] = at + 1
        const item = queue[at]
        if (!item) return
        slots.take(item)
        picked.add(item)
        this.#served(item.tenant_id)
        found = true
      })
    }
    if (picked.size > 0) this.#window = this.#window.filter((item) => !picked.has(item))
    return [...picked]
  }

  #served(tenant_id: string): void {
    if (this.#picked_at.size > served_remembered_max) this.#picked_at.clear()
    this.#picked_at.set(tenant_id, ++this.#picks)
  }

  async #refill(first_callbacks: boolean): Promise<void> {
    const now = this.clock.now()
    this.#read_at = this.clock.monotonic()
    if (first_callbacks) {
      this.#window = await outbox.dueFirstCallbacks(this.db, now, window_rows_max)
      return
    }
    this.#window = await outbox.due(this.db, now, window_rows_max)
    if (this.#window.length === window_rows_max) await this.#walkLanes(now)
  }

  async #walkLanes(now: Millis): Promise<void> {
    const seen = new Set(this.#window.map(idOf))
    for (let step = 0; step < lanes_max; step++) {
      const lane = await outbox.nextLane(this.db, this.#lane)
      if (!lane) {
        this.#lane = { tenant_id: '', destination: '' }
        return
      }
      this.#lane = lane
      if (lane.next_at > now) continue
      const rows = await outbox.dueInLane(this.db, lane.tenant_id, lane.destination, now, destination_max)
      for (const row of rows) if (!seen.has(idOf(row))) this.#window.push(row)
    }
  }
}

function firstFree(
  queue: Candidate[],
  from: number,
  slots: Slots,
  wanted: (item: Candidate) => boolean,
): number {
  let at = from
  while (at < queue.length && slots.free > 0 && !(wanted(queue[at]!) && slots.isFree(queue[at]!))) at++
  return slots.free > 0 ? at : queue.length
}

function batchesOf(chosen: Candidate[]): Batch[] {
  const groups = Map.groupBy(chosen, ({ tenant_id, kind }) => `${tenant_id} ${kind}`)
  return [...groups.values()].flatMap((items) => {
    const { tenant_id, kind } = items[0]!
    const batches: Batch[] = []
    for (let at = 0; at < items.length; at += outbox.lease_rows_max) {
      batches.push({ tenant_id, kind, items: items.slice(at, at + outbox.lease_rows_max) })
    }
    return batches
  })
}

function idOf({ tenant_id, kind, source_id }: WorkKey): string {
  return `${tenant_id} ${kind} ${source_id}`
}
