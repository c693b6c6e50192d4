// The stored bytes of one PostgreSQL transaction: kept in memory until a tenant's sum is large.

import { limit } from '../base/limit.ts'
import type { StoredCounter, Tx } from './db.ts'
import { add, Changes, type Flight, type StoredBytes } from './stored.ts'

export const unwritten_bytes_max = limit(
  'storage.unwritten_bytes',
  262_144,
  'bytes',
  'On PostgreSQL: what a node may have counted for a tenant and not yet written to its counter, and so what a node that is killed may lose of the count.',
)

/** The changes of one transaction, while sums are kept in memory. */
export class LateCount {
  readonly changes = new Changes()
  readonly #written: { tenant_id: string; flight: Flight; counter: StoredCounter | null }[] = []

  constructor(private readonly stored: StoredBytes) {}

  /** Writes the large sums, as the last step of the transaction. In one order, so that no two wait for each other. */
  async write(tx: Pick<Tx, 'one'>): Promise<void> {
    for (const [tenant_id, bytes] of [...this.changes.all()].sort(byTenant)) {
      const waiting = this.stored.unwritten(tenant_id) + bytes
      if (Math.abs(waiting) < unwritten_bytes_max) continue
      await this.#writeOne(tx, tenant_id, bytes)
    }
  }

  /** The same for all sums that wait. */
  async writeWaiting(tx: Pick<Tx, 'one'>, tenant_ids: readonly string[]): Promise<void> {
    for (const tenant_id of tenant_ids.toSorted()) await this.#writeOne(tx, tenant_id, 0)
  }

  async #writeOne(tx: Pick<Tx, 'one'>, tenant_id: string, bytes: number): Promise<void> {
    const flight = this.stored.take(tenant_id)
    const written = { tenant_id, flight, counter: null as StoredCounter | null }
    this.#written.push(written)
    written.counter = await add(tx, tenant_id, flight.bytes + bytes)
    flight.writes = written.counter?.writes ?? null
  }

  /** Not committed after all: the next writes of these counters take the same numbers. */
  rollBack(): void {
    for (const { flight } of this.#written) flight.writes = null
  }

  committed(): void {
    const written = new Set(this.#written.map(({ tenant_id }) => tenant_id))
    for (const { tenant_id, flight, counter } of this.#written)
      this.stored.written(tenant_id, flight, counter)
    for (const [tenant_id, bytes] of this.changes.all()) {
      if (!written.has(tenant_id) && bytes !== 0) this.stored.keep(tenant_id, bytes)
    }
  }

  /**
   * `unknown`: it may have been committed after all. Then what was removed is counted and what grew is not, whichever of
   * the two is true: better too few bytes than too many, which would refuse what there is room for. A recount puts it
   * right.
   */
  failed(unknown: boolean): void {
    const written = new Set(this.#written.map(({ tenant_id }) => tenant_id))
    for (const { tenant_id, flight } of this.#written) {
      if (!unknown) {
        this.stored.failed(tenant_id, flight)
        continue
      }
      this.stored.written(tenant_id, flight, null)
      this.stored.keep(tenant_id, Math.min(0, flight.bytes))
    }
    if (!unknown) return
    for (const [tenant_id, bytes] of this.changes.all()) {
      if (!written.has(tenant_id) && bytes < 0) this.stored.keep(tenant_id, bytes)
    }
  }
}

function byTenant([one]: [string, number], [other]: [string, number]): number {
  return one < other ? -1 : 1
}
