// The bytes that each tenant stores. A transaction says by how much it changes them; the driver adds it to the tenant's
// counter. SQLite writes the sum of a commit within that commit, so that it is exact. On PostgreSQL that would make all
// writes of a tenant wait for one row: there a node keeps sums in memory and writes them once a second, and as soon as
// one has grown large.

import { type Clock, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { sql, type Tx } from './db.ts'

/** The bytes that a row counts besides its texts: ids, numbers and its places in indexes. */
export const row_bytes = 256

/** The bytes of a row with these texts. */
export function rowBytes(...texts: (string | null)[]): number {
  let bytes = row_bytes
  for (const text of texts) bytes += textBytes(text)
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

const ADD = sql<{ used: number }>(
  'stored.add',
  `update quota_usage set used = case when used + :bytes < 0 then 0 else used + :bytes end
    where tenant_id = :tenant_id and quota = 'storage_bytes'
   returning used`,
)

/** Adds to the tenant's counter, which does not fall below 0; returns the sum, null when the tenant has no counter. */
export async function add(tx: Pick<Tx, 'one'>, tenant_id: string, bytes: number): Promise<number | null> {
  return (await tx.one(ADD, { tenant_id, bytes }))?.used ?? null
}

/** The time for which a sum from the database is trusted. */
const fresh_ms = second_ms
const entries_max = limit(
  'storage.tenants_remembered',
  10_000,
  'entries',
  'Tenants whose stored bytes a node remembers; past it those with nothing unwritten are read again when they are needed.',
)

interface Entry {
  /** The counter when it was last written by this process. */
  known: number | null
  known_at: Millis
  /** Committed by this process and not in the counter yet; `writing` is on its way there. */
  unwritten: number
  writing: number
}

/** The counters as this process knows them. */
export class StoredBytes {
  readonly #entries = new Map<string, Entry>()

  constructor(private readonly clock: Clock) {}

  /** `counted`: the counter as the caller's look-up found it, which was at most a second ago. */
  used(tenant_id: string, counted: number): number {
    const entry = this.#entries.get(tenant_id)
    if (!entry) return counted
    return (this.#isFresh(entry) ? entry.known! : counted) + entry.unwritten + entry.writing
  }

  /** The bytes that the counter does not hold yet. */
  unwritten(tenant_id: string): number {
    const entry = this.#entries.get(tenant_id)
    return entry ? entry.unwritten + entry.writing : 0
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
  take(tenant_id: string): number {
    const entry = this.#entryOf(tenant_id)
    const { unwritten } = entry
    entry.writing += unwritten
    entry.unwritten = 0
    return unwritten
  }

  /** The counter was written and holds `used`; null when that is unknown. `taken` is what `take` returned. */
  written(tenant_id: string, taken: number, used: number | null): void {
    const entry = this.#entryOf(tenant_id)
    entry.writing -= taken
    if (used === null) return
    entry.known = used
    entry.known_at = this.clock.monotonic()
  }

  failed(tenant_id: string, taken: number): void {
    const entry = this.#entryOf(tenant_id)
    entry.writing -= taken
    entry.unwritten += taken
  }

  #isFresh({ known, known_at }: Entry): boolean {
    return known !== null && this.clock.monotonic() - known_at < fresh_ms
  }

  #entryOf(tenant_id: string): Entry {
    const found = this.#entries.get(tenant_id)
    if (found) return found
    if (this.#entries.size >= entries_max) this.#removeIdle()
    const made = { known: null, known_at: 0, unwritten: 0, writing: 0 }
    this.#entries.set(tenant_id, made)
    return made
  }

  #removeIdle(): void {
    for (const [tenant_id, entry] of this.#entries) {
      if (entry.unwritten === 0 && entry.writing === 0 && !this.#isFresh(entry))
        this.#entries.delete(tenant_id)
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
