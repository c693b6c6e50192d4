// Which due work is started next. What has waited longest comes first, but no tenant and no destination may keep
// the others waiting: places are dealt out tenant by tenant, and where the oldest work fills the window, others are
// found by turns behind it (turns.ts).

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Db } from '../db/db.ts'
import type { WorkKey, WorkKind } from './job.ts'
import * as outbox from './service.ts'
import type { Slots } from './slots.ts'
import { Turns } from './turns.ts'
import { Window } from './window.ts'

/** How many of the oldest due items are looked at. */
const window_rows_max = limit(
  'jobs.window',
  1_000,
  'rows',
  'Oldest due jobs that are looked at in one go. Past it tenants take turns.',
)
/** How many tenants are remembered for taking turns. */
const served_remembered_max = limit(
  'jobs.tenants_remembered',
  10_000,
  'entries',
  'Tenants that are remembered for taking turns. Past it all are forgotten, and the turns begin anew.',
)
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
  #window = new Window<Candidate>()
  #read_at = Number.NEGATIVE_INFINITY
  /** What the turns found; a part of the window. */
  #found = new Set<Candidate>()
  #go_on = false
  /** Whether there may be work behind the window. */
  #full = false
  #late = new Set<string>()
  #picks = 0
  /** Tenant -> the number of the pick that served it last. */
  readonly #picked_at = new Map<string, number>()
  readonly #turns: Turns

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
  ) {
    this.#turns = new Turns(db)
  }

  /** Work was added: the window is read anew, however fresh it is. */
  forget(): void {
    this.#read_at = Number.NEGATIVE_INFINITY
  }

  /** Nothing that was seen counts any more. */
  drop(): void {
    this.#window = new Window()
    this.#found.clear()
    this.forget()
  }

  /** Due work that was seen and not started. */
  get waiting(): number {
    return this.#window.size
  }

  /** Whether due work waits for room, or may wait behind what was seen. */
  get hasBacklog(): boolean {
    return this.#full || this.#window.size > 0
  }

  /** Tenants that wait for deletion and of which due work was seen; each is told once. */
  takeLate(): string[] {
    const late = [...this.#late]
    this.#late.clear()
    return late
  }

  /** Takes a place for each item that it answers. `wanted` says which work may be started at all;
   * with `first_callbacks` nothing else is looked for. */
  async choose(
    slots: Slots,
    wanted: (item: Candidate) => boolean,
    first_callbacks = false,
  ): Promise<Batch[]> {
    if (slots.free === 0) return []
    const fresh = this.clock.monotonic() - this.#read_at < window_fresh_ms
    if (fresh) {
      const chosen = this.#pick(slots, wanted)
      if (chosen.length > 0) return batchesOf(chosen)
      if (this.hasBacklog && !this.#go_on) return []
    }
    await this.#refill(slots, first_callbacks)
    return batchesOf(this.#pick(slots, wanted))
  }

  /** Tenants take turns: who has least under way comes first, and of those who was served longest ago. */
  #pick(slots: Slots, wanted: (item: Candidate) => boolean): Candidate[] {
    const order = this.#window.tenant_ids
      .map((tenant_id) => ({
        tenant_id,
        active: slots.activeOf(tenant_id),
        picked_at: this.#picked_at.get(tenant_id) ?? 0,
      }))
      .sort((one, other) => one.active - other.active || one.picked_at - other.picked_at)
    const picked = this.#window.pick(
      order.map(({ tenant_id }) => tenant_id),
      slots,
      wanted,
    )
    for (const item of picked) {
      this.#served(item.tenant_id)
      // Who was found behind the window and served is not the last to be found there.
      if (this.#found.delete(item)) this.#go_on = true
    }
    return picked
  }

  #served(tenant_id: string): void {
    if (this.#picked_at.size > served_remembered_max) this.#picked_at.clear()
    this.#picked_at.set(tenant_id, ++this.#picks)
  }

  async #refill(slots: Slots, first_callbacks: boolean): Promise<void> {
    const now = this.clock.now()
    this.#read_at = this.clock.monotonic()
    this.#go_on = false
    const look = first_callbacks ? outbox.dueFirstCallbacks : outbox.due
    const rows = await look(this.db, now, window_rows_max)
    const active = rows.filter(({ tenant_status }) => tenant_status === 'active')
    for (const { tenant_id, tenant_status } of rows) {
      if (tenant_status === 'pending_deletion') this.#late.add(tenant_id)
    }
    this.#full = rows.length === window_rows_max
    const seen = new Set(active.map(idOf))
    // Whose turn it was and for whom there was no place keeps it: the turns have gone on.
    const kept = [...this.#found].filter((item) => slots.isFree(item) || !slots.hasPlaceFor(item.tenant_id))
    const turns_go_on = this.#full && !kept.some((item) => slots.isFree(item))
    const behind = this.#full ? kept : []
    if (turns_go_on) behind.push(...(await this.#turns.take(now, slots)))
    const found = [...new Map(behind.map((item) => [idOf(item), item]))]
      .filter(([id]) => !seen.has(id))
      .map(([, item]) => item)
    this.#found = new Set(found)
    this.#window = new Window([...active, ...found])
  }
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
