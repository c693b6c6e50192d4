// Calls by the hour (UTC) and by feature: counted in memory, added to the database at most once a second. What a node
// has counted and not yet written when it is killed, a second's worth at most, is not counted.

import { day_ms, hour_ms, type Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Repeat } from '../base/repeat.ts'
import type { UsageCounts } from '../contract/dependencies.ts'

export const kept_ms = limit(
  'usage.kept',
  35 * day_ms,
  'milliseconds',
  'How long counts of calls are kept after the end of their day.',
)

/** The interval at which counts are written. */
const write_every_ms = 1_000
/** Counts that one transaction writes. */
const writes_max = limit('usage.counts_written', 100, 'rows', 'Counts that one transaction writes.')
/** Past this many counts that could not be written, new ones are dropped. */
const waiting_max = limit(
  'usage.counts_waiting',
  100_000,
  'entries',
  'Counts that wait in memory for the database. Past it new ones are dropped.',
)

export interface Count {
  tenant_id: string
  hour: Millis
  feature: string
  calls: number
  failures: number
}

/** Adds counts to those of the other nodes, in one transaction. */
export type AddCounts = (counts: readonly Count[]) => Promise<void>

export class Usage implements UsageCounts {
  #waiting = new Map<string, Count>()
  /** The last waiting count by feature and tenant: most calls find theirs here, without a text for its key. */
  #recent = new Map<string, Map<string, Count>>()
  /** Tenants of a transaction that failed: each is written alone, after all others, the last that failed last. */
  readonly #refused = new Set<string>()
  #writing: Promise<void> | null = null
  readonly #writes = new Repeat(write_every_ms, () => this.flush())

  constructor(private readonly add: AddCounts) {}

  /** Counts that are not written yet. */
  get size(): number {
    return this.#waiting.size
  }

  count(tenant_id: string, feature: string, failed: boolean, now: Millis): void {
    const recent = this.#recent.get(feature)?.get(tenant_id)
    const is_this_hour = recent !== undefined && now >= recent.hour && now < recent.hour + hour_ms
    const count = is_this_hour ? recent : this.#countOf(tenant_id, feature, now - (now % hour_ms))
    if (!count) return
    count.calls += 1
    if (failed) count.failures += 1
  }

  /** Null when too many wait already. */
  #countOf(tenant_id: string, feature: string, hour: Millis): Count | null {
    const key = `${tenant_id} ${hour} ${feature}`
    let count = this.#waiting.get(key)
    if (!count) {
      if (this.#waiting.size >= waiting_max) return null
      count = { tenant_id, hour, feature, calls: 0, failures: 0 }
      this.#waiting.set(key, count)
    }
    const of_feature = this.#recent.get(feature) ?? new Map<string, Count>()
    this.#recent.set(feature, of_feature.set(tenant_id, count))
    return count
  }

  /** Writes what was counted since the last time. Rejects when the database refused; the counts are kept then. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing.catch(() => {})
    if (this.#waiting.size === 0) return
    this.#writing = this.#write()
    try {
      await this.#writing
    } finally {
      this.#writing = null
    }
  }

  async #write(): Promise<void> {
    // Nodes that write the same rows take them in one order, and so never wait for each other in a circle.
    const counts = [...this.#waiting]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, count]) => count)
    this.#waiting = new Map()
    this.#recent.clear()
    const parts = this.#partsOf(counts)
    for (const [at, part] of parts.entries()) {
      try {
        await this.add(part)
        for (const { tenant_id } of part) this.#refused.delete(tenant_id)
      } catch (error) {
        for (const { tenant_id } of part) this.#refuse(tenant_id)
        this.#keep(parts.slice(at).flat())
        throw error
      }
    }
    this.#refused.clear() // those that have nothing to write any more
  }

  /** The counts by transaction. On Citus a tenant's server may be away while others answer. */
  #partsOf(counts: readonly Count[]): Count[][] {
    const [others, refused] = [[] as Count[], new Map<string, Count[]>()]
    for (const tenant_id of this.#refused) refused.set(tenant_id, [])
    for (const count of counts) (refused.get(count.tenant_id) ?? others).push(count)
    const parts = []
    for (let at = 0; at < others.length; at += writes_max) parts.push(others.slice(at, at + writes_max))
    return [...parts, ...refused.values()].filter((part) => part.length > 0)
  }

  #refuse(tenant_id: string): void {
    this.#refused.delete(tenant_id)
    this.#refused.add(tenant_id)
  }

  #keep(counts: readonly Count[]): void {
    for (const { tenant_id, feature, hour, calls, failures } of counts) {
      const since = this.#countOf(tenant_id, feature, hour)
      if (!since) continue
      since.calls += calls
      since.failures += failures
    }
  }

  /** Writes once a second until stopped. */
  start(onError: (error: unknown) => void): void {
    this.#writes.start(onError)
  }

  /** Writes what is left. */
  stop(): Promise<void> {
    return this.#writes.stop()
  }
}
