// Calls of /api by the calendar month (UTC): counted in memory, written once a second. What a node has counted and
// not yet written when it is killed, a second's worth at most, is not counted.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Repeat } from '../base/repeat.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { MonthlyCalls, Plans } from '../contract/dependencies.ts'
import { type Entry, usedOf } from './call-count.ts'
import { calls_name, exceeded, limitOf, monthOf } from './quota.ts'

/** The interval at which counts are written. */
const write_every_ms = 1_000

/** The greatest age of the count of the other nodes. */
const fresh_ms = 1_000

/** A tenant that does not call is forgotten after this long, far longer than any request waits for a look. */
const idle_ms = 60_000

/** Tenants whose counts are written at once. */
const writes_max = limit('quotas.calls_written', 16, 'rows', 'Tenants whose calls one transaction writes.')

/** Where the counts of all nodes are added up. */
export interface CallCounts {
  look(tenant_id: string, month: string): Promise<number>
  /** Returns the new number; null when it is unknown if these were added. */
  add(tenant_id: string, month: string, count: number): Promise<number | null>
}

export class Calls implements MonthlyCalls {
  readonly #entries = new Map<string, Entry>()
  readonly #writes = new Repeat(write_every_ms, () => this.flush())

  constructor(
    private readonly clock: Clock,
    private readonly counts: CallCounts,
  ) {}

  /** Tenants and months that are remembered. */
  get size(): number {
    return this.#entries.size
  }

  /** Writes once a second until stopped. */
  start(onError: (error: unknown) => void): void {
    this.#writes.start(onError)
  }

  /** Writes what is left. */
  stop(): Promise<void> {
    return this.#writes.stop()
  }

  count(caller: TenantFacts, plans: Plans, now: Millis): Promise<void> | undefined {
    const entry = this.#entryOf(caller.tenant_id, now)
    const limit = limitOf(plans, caller.plan, calls_name)
    const counted = () => {
      const used = usedOf(entry)
      if (limit !== null && used >= limit)
        throw exceeded(caller, plans, { quota: calls_name, used, limit }, now)
      entry.unwritten += 1
    }
    if (limit !== null && !isFresh(entry, entry.asked_at)) return this.#refresh(entry).then(counted)
    counted()
    return undefined
  }

  async used(tenant_id: string, now: Millis): Promise<number> {
    const entry = this.#entryOf(tenant_id, now)
    await this.#look(entry)
    return usedOf(entry)
  }

  /** Writes what was counted since the last time. Rejects when the database refused; the counts are kept then. */
  async flush(): Promise<void> {
    const waiting = [...this.#entries].filter(([, { unwritten, writing }]) => unwritten + writing > 0)
    let failed: { error: unknown } | null = null
    for (let at = 0; at < waiting.length && !failed; at += writes_max) {
      const together = waiting.slice(at, at + writes_max)
      const writes = await Promise.allSettled(together.map(([, entry]) => this.#write(entry)))
      for (const [n, write] of writes.entries()) {
        if (write.status === 'fulfilled') continue
        failed = { error: write.reason }
        this.#putLast(...together[n]!)
      }
    }
    this.#removeIdle()
    if (failed) throw failed.error
  }

  #entryOf(tenant_id: string, now: Millis): Entry {
    const month = monthOf(now)
    const key = `${tenant_id} ${month}`
    const asked_at = this.clock.monotonic()
    const found = this.#entries.get(key)
    if (found) {
      found.asked_at = asked_at
      return found
    }
    const looked_at = Number.NEGATIVE_INFINITY
    const made = {
      ...{ tenant_id, month, known: 0, unwritten: 0, writing: 0, looked_at, asked_at },
      ...{ busy: null, looking: false },
    }
    this.#entries.set(key, made)
    return made
  }

  /** On Citus a tenant's server may be away while others answer: the next flush begins with the others. */
  #putLast(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#entries.set(key, entry)
  }

  /** During a write it waits for that, which makes the count as fresh, unless it fails. */
  async #refresh(entry: Entry): Promise<void> {
    while (entry.busy && !entry.looking) await entry.busy.catch(nothing)
    if (!isFresh(entry, this.clock.monotonic())) await this.#look(entry)
  }

  /** Several callers share one look. Nothing may come between the wait and the beginning of it. */
  async #look(entry: Entry): Promise<void> {
    while (entry.busy && !entry.looking) await entry.busy.catch(nothing)
    entry.busy ??= this.#alone(entry, true, async () => {
      entry.known = await this.counts.look(entry.tenant_id, entry.month)
      return true
    })
    await entry.busy
  }

  async #write(entry: Entry): Promise<void> {
    while (entry.busy) await entry.busy.catch(nothing)
    const { tenant_id, month, unwritten } = entry
    if (unwritten === 0) return
    entry.writing = unwritten
    entry.unwritten = 0
    entry.busy = this.#alone(entry, false, async () => {
      try {
        const known = await this.counts.add(tenant_id, month, unwritten)
        // Not known: better a second's calls too few than too many.
        if (known !== null) entry.known = known
        return known !== null
      } catch (error) {
        entry.unwritten += unwritten
        throw error
      } finally {
        entry.writing = 0
      }
    })
    await entry.busy
  }

  /** The work returns true when it has read what the database holds. */
  async #alone(entry: Entry, looking: boolean, work: () => Promise<boolean>): Promise<void> {
    entry.looking = looking
    try {
      const began = this.clock.monotonic()
      if (await work()) entry.looked_at = began
    } finally {
      entry.busy = null
    }
  }

  #removeIdle(): void {
    const before = this.clock.monotonic() - idle_ms
    for (const [key, entry] of this.#entries) {
      if (entry.unwritten === 0 && !entry.busy && entry.asked_at < before) this.#entries.delete(key)
    }
  }
}

/** `at`: on the monotonic clock. */
function isFresh({ looked_at }: Entry, at: Millis): boolean {
  return at - looked_at < fresh_ms
}

/** The caller that began it gets the failure. */
function nothing(): void {}
