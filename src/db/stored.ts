// The bytes that each tenant stores. A transaction says by how much it changes them; the driver adds it to the tenant's
// counter. SQLite writes the sum of a commit within that commit, so that it is exact. On PostgreSQL that would make all
// writes of a tenant wait for one row: there a node keeps sums in memory and writes them once a second, and as soon as
// one has grown large.

import { type Clock, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Awaitable, type StoredCounter, type Tx, writesRow } from './db.ts'

/** The bytes that a row counts besides its texts: ids, numbers and its places in indexes. */
export const row_bytes = 256

/** The bytes of a row with these texts. */
export function rowBytes(...texts: (string | null)[]): number {
  let bytes = row_bytes
  for (let i = 0; i < texts.length; i++) bytes += textBytes(texts[i] ?? null)
  return bytes
}

/** Bytes in UTF-8; none for null. */
export function textBytes(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text)
}

/** The sum of the bytes of rows that a statement changed or removed. */
export function bytesOf(rows: readonly { bytes: number }[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0)
}

const of_tenant = `tenant_id = :tenant_id and quota = 'storage_bytes'`

const ADD = writesRow<StoredCounter>(
  'stored.add',
  `update quota_usage set used = case when used + :bytes < 0 then 0 else used + :bytes end, writes = writes + 1
    where ${of_tenant}`,
  'used, writes',
  `quota_usage where ${of_tenant}`,
)

/** Adds to the tenant's counter, which does not fall below 0; returns it, null when the tenant has no counter. */
export function add(tx: Pick<Tx, 'one'>, tenant_id: string, bytes: number): Awaitable<StoredCounter | null> {
  return tx.one(ADD, { tenant_id, bytes })
}

/** The time for which a counter that this process wrote is remembered: a look at it may be a second old. */
const remembered_ms = 2 * second_ms
const entries_max = limit(
  'storage.tenants_remembered',
  10_000,
  'entries',
  'Tenants whose stored bytes a node remembers; past it those with nothing unwritten are read again when they are needed.',
)

/** Committed bytes on their way to the counter. */
export interface Flight {
  readonly bytes: number
  /** The counter's `writes` once they are in it; null before the statement has been answered. */
  writes: number | null
}

interface Entry {
  /** The counter when it was last written by this process. */
  known: StoredCounter | null
  known_at: Millis
  /** Committed by this process and not on its way to the counter. */
  unwritten: number
  readonly flights: Set<Flight>
}

/** The counters as this process knows them. */
export class StoredBytes {
  readonly #entries = new Map<string, Entry>()

  constructor(private readonly clock: Clock) {}

  /**
   * The bytes stored, each counted once. `counted`: the counter as a look found it, at most a second ago. It is compared by
   * its writes: it may be older than what this process wrote, and it may hold bytes of a commit whose answer has not
   * arrived yet.
   */
  of(tenant_id: string, counted: StoredCounter): number {
    const entry = this.#entries.get(tenant_id)
    if (!entry) return counted.used
    const { known, unwritten, flights } = entry
    const is_newer = known !== null && known.writes > counted.writes && this.#isRemembered(entry)
    const { used, writes } = is_newer ? known : counted
    let bytes = used + unwritten
    for (const flight of flights) if (flight.writes === null || flight.writes > writes) bytes += flight.bytes
    return bytes
  }

  /** The bytes of commits that were answered, and not the write of them to the counter. */
  unwritten(tenant_id: string): number {
    const entry = this.#entries.get(tenant_id)
    if (!entry) return 0
    let bytes = entry.unwritten
    for (const flight of entry.flights) bytes += flight.bytes
    return bytes
  }

  /** Tenants whose sums wait to be written. */
  waiting(): string[] {
    return [...this.#entries].filter(([, { unwritten }]) => unwritten !== 0).map(([tenant_id]) => tenant_id)
  }

  /** Keeps a committed change, to be written later. */
  keep(tenant_id: string, bytes: number): void {
    this.#entryOf(tenant_id).unwritten += bytes
  }

  /** Marks the waiting bytes as being written: `written` or `failed` must follow. */
  take(tenant_id: string): Flight {
    const entry = this.#entryOf(tenant_id)
    const flight = { bytes: entry.unwritten, writes: null }
    entry.flights.add(flight)
    entry.unwritten = 0
    return flight
  }

  /** The counter was written and is this; null when that is unknown. */
  written(tenant_id: string, flight: Flight, counter: StoredCounter | null): void {
    this.#entryOf(tenant_id).flights.delete(flight)
    this.know(tenant_id, counter)
  }

  failed(tenant_id: string, flight: Flight): void {
    const entry = this.#entryOf(tenant_id)
    entry.flights.delete(flight)
    entry.unwritten += flight.bytes
  }

  /** The counter as a commit of this process left it. Answers of several commits may come in another order. */
  know(tenant_id: string, counter: StoredCounter | null): void {
    if (counter === null) return
    const entry = this.#entryOf(tenant_id)
    if (entry.known !== null && entry.known.writes > counter.writes && this.#isRemembered(entry)) return
    entry.known = counter
    entry.known_at = this.clock.monotonic()
  }

  #isRemembered({ known_at }: Entry): boolean {
    return this.clock.monotonic() - known_at < remembered_ms
  }

  #entryOf(tenant_id: string): Entry {
    const found = this.#entries.get(tenant_id)
    if (found) return found
    if (this.#entries.size >= entries_max) this.#removeIdle()
    const made = { known: null, known_at: 0, unwritten: 0, flights: new Set<Flight>() }
    this.#entries.set(tenant_id, made)
    return made
  }

  #removeIdle(): void {
    for (const [tenant_id, entry] of this.#entries) {
      const is_known = entry.known !== null && this.#isRemembered(entry)
      if (entry.unwritten === 0 && entry.flights.size === 0 && !is_known) this.#entries.delete(tenant_id)
    }
  }
}

const nothing: [string, number][] = []

/** The changes of one transaction, or of one commit of several. */
export class Changes {
  /** Made when it is needed: most writes of a busy service change no length. */
  #bytes: Map<string, number> | null = null
  /** The bytes by which tenants grew. */
  grown = 0

  add(tenant_id: string, bytes: number): void {
    if (bytes === 0 || tenant_id === '') return // no tenant's: the Idempotency-Key of a sign-up
    this.#bytes ??= new Map()
    this.#bytes.set(tenant_id, this.of(tenant_id) + bytes)
    if (bytes > 0) this.grown += bytes
  }

  addAll(other: Changes): void {
    if (other.#bytes) for (const [tenant_id, bytes] of other.#bytes) this.add(tenant_id, bytes)
  }

  all(): Iterable<[tenant_id: string, bytes: number]> {
    return this.#bytes ?? nothing
  }

  of(tenant_id: string): number {
    return this.#bytes?.get(tenant_id) ?? 0
  }
}
