// The lines in which writes wait for the next batch: few lines, each with one batch under way at most, so that what
// arrives meanwhile is the next one. On a database that Citus distributes each tenant has a line of its own, so that a
// batch is a transaction of one server.

import { limit } from '../base/limit.ts'
import type { PostgresDialect } from './dialect.ts'
import type { Member } from './postgres-batch.ts'
import { members_max, members_of_key_max, Picked } from './postgres-picked.ts'

/** The same on every node: batches of one line have its lock one after the other. */
export const lines_count = limit(
  'postgres.batch_lines',
  4,
  'connections',
  'Batches of writes that one node has under way at once, each of other tenants.',
)
/** Writes of a line that have transactions of their own at once before those that follow share theirs. */
export const passing_max = limit(
  'postgres.batch_passing',
  3,
  'requests',
  'Writes of one line that each have a transaction of their own; more at once share transactions.',
)

/** The line of a tenant. */
export function lineOf(name: string): number {
  return Bun.hash.crc32(name) % lines_count
}

/** A line's name, and the number of the lock that its batches have one after the other. */
export interface LinePlace {
  name: string
  lock: number
}

export function placeOf(tenant: string, dialect: PostgresDialect): LinePlace {
  if (dialect === 'citus') return { name: `batch ${tenant}`, lock: Bun.hash.crc32(tenant) | 0 }
  const lock = lineOf(tenant)
  return { name: `batch ${lock}`, lock }
}

export class Line {
  /** By the key of their turns; a key without any is absent. */
  readonly #waiting = new Map<string, Set<Member>>()
  /** True while a batch is under way. */
  busy = false
  #count = 0
  #passing = 0
  #last_size = 0

  constructor(readonly place: LinePlace) {}

  /** While few are under way each has a transaction of its own: so none waits for another. */
  mayPass(passing_max: number): boolean {
    return !this.busy && this.#passing < passing_max && this.#last_size <= passing_max
  }

  /** Runs a write that waits for no batch. */
  async pass<T>(run: () => Promise<T>): Promise<T> {
    this.#passing += 1
    try {
      return await run()
    } finally {
      this.#passing -= 1
    }
  }

  /** True when what waits may pass instead. */
  isQuiet(passing_max: number): boolean {
    return this.#passing + this.#count <= passing_max && this.#last_size <= passing_max
  }

  add(member: Member): void {
    this.#count += 1
    this.#waiting.getOrInsertComputed(member.turn.key, () => new Set()).add(member)
  }

  /** False when it does not wait here. */
  remove(member: Member): boolean {
    const { key } = member.turn
    const of_key = this.#waiting.get(key)
    if (!of_key?.delete(member)) return false
    this.#count -= 1
    if (of_key.size === 0) this.#waiting.delete(key)
    return true
  }

  /** Batches until each key that waits has had a write in one. */
  get batches_due(): number {
    return Math.ceil(this.#waiting.size / members_max)
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** True while no write waits or runs here. */
  get isIdle(): boolean {
    return !this.busy && this.#count === 0 && this.#passing === 0
  }

  /** The members of the next batch: one of each key in turn, those of a key in order; fewer of each while lines are shared. */
  take(is_shared = true): Member[] {
    const batch = new Picked(is_shared ? members_of_key_max : members_max)
    const places = [...this.#waiting].map(([key, members]) => ({ key, next: members.values() }))
    for (let left = places; left.length > 0 && batch.hasRoom; ) {
      left = left.filter(
        ({ key, next }) => batch.hasRoom && !batch.isFullOf(key) && this.#takeOne(next, batch),
      )
    }
    for (const { key } of places) this.#moveBack(key, batch)
    this.#last_size = batch.members.length
    return batch.members
  }

  /** False when there is none left. Those that may not be in this batch are passed over. */
  #takeOne(next: SetIterator<Member>, batch: Picked): boolean {
    for (const member of next) {
      if (!batch.add(member)) continue
      this.remove(member)
      return true
    }
    return false
  }

  /** Keys that were served come after those that were not. */
  #moveBack(key: string, batch: Picked): void {
    const left = this.#waiting.get(key)
    if (!left || !batch.has(key)) return
    this.#waiting.delete(key)
    this.#waiting.set(key, left)
  }
}
