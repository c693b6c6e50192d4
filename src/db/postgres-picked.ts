// The members of the next batch as they are picked from those that wait.

import { limit } from '../base/limit.ts'
import type { Batch } from './db.ts'
import type { Member } from './postgres-batch.ts'

export const members_max = limit(
  'postgres.batch_writes',
  64,
  'requests',
  'Writes that share one transaction on PostgreSQL.',
)
export const members_of_key_max = limit(
  'postgres.batch_writes_of_tenant',
  24,
  'requests',
  'Writes of one tenant that share a transaction while other tenants also write, so that none of them waits long for a batch that one has filled.',
)
const bytes_max = limit(
  'postgres.batch_bytes',
  4 * 1_048_576,
  'bytes',
  'About how many bytes the writes of one batch send; a larger one has a batch of its own.',
)

export class Picked {
  readonly members: Member[] = []
  /** How many members there are of each. */
  readonly #keys = new Map<string, number>()
  #bytes = 0
  /** Rows of members: how many there are of each, and whether one is apart. */
  readonly #rows = new Map<string, { count: number; apart: boolean }>()
  /** Rows of members that were passed over: those behind them wait as well. */
  readonly #passed = new Set<string>()

  constructor(private readonly of_key_max: number) {}

  get hasRoom(): boolean {
    return this.members.length < members_max && this.#bytes < bytes_max
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** True when no more writes of this key come into the batch. */
  isFullOf(key: string): boolean {
    return this.#keys.get(key) === this.of_key_max
  }

  /** False when it must wait for another batch. */
  add(member: Member): boolean {
    const { key, row, batch } = member.turn
    const name = row === undefined ? null : `${key} ${row}`
    const bytes = batch!.bytes ?? 0
    const fits = this.members.length === 0 || this.#bytes + bytes <= bytes_max
    if (!fits || (name !== null && !this.#mayShare(name, batch!))) {
      if (name !== null) this.#passed.add(name)
      return false
    }
    if (name !== null)
      this.#rows.set(name, { count: (this.#rows.get(name)?.count ?? 0) + 1, apart: batch!.apart ?? false })
    this.members.push(member)
    this.#keys.set(key, (this.#keys.get(key) ?? 0) + 1)
    this.#bytes += bytes
    return true
  }

  #mayShare(name: string, { apart = false, row_max = members_max }: Batch): boolean {
    if (this.#passed.has(name)) return false
    const taken = this.#rows.get(name)
    return taken === undefined || !(apart || taken.apart || taken.count >= row_max)
  }
}
