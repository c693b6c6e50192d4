// Leases that no node works on any more, while the time of the service stands still: they end by real time.

import { limit } from '../base/limit.ts'
import { type Db, dueWork } from '../db/db.ts'
import { lease_ms } from './job.ts'
import * as store from './lease-store.ts'

const looked_max = limit(
  'clock.leases',
  500,
  'rows',
  'Leases whose end an advance of a test clock waits for at once by real time.',
)

/**
 * Ends a lease once it has been seen for as long as a lease lasts. It began before it was first seen, so it never ends sooner
 * than under a running clock, nor while a live node works on the job.
 */
export class StaleLeases {
  /** When each was first seen, on the monotonic clock. */
  #seen = new Map<string, number>()

  constructor(private readonly db: Db) {}

  async look(): Promise<void> {
    const { clock } = this.db
    const leased = await store.leasedDue(this.db, clock.now(), looked_max)
    const now = clock.monotonic()
    const seen = leased.map((row) => {
      const { tenant_id, kind, source_id, fence } = row
      const key = `${tenant_id} ${kind} ${source_id} ${fence}`
      return { row, key, since: this.#seen.get(key) ?? now }
    })
    this.#seen = new Map(seen.map(({ key, since }) => [key, since]))
    for (const { row, since } of seen)
      if (now - since >= lease_ms)
        await this.db.write(dueWork(row.tenant_id), (tx) => store.endLease(tx, row))
  }
}
