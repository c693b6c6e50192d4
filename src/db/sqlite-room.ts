// The room for writes that wait, for their turn, a batch or the disk, shared out between their owners.

import { limit } from '../base/limit.ts'

const waiting_max = limit(
  'sqlite.waiting_writes',
  2_000,
  'requests',
  'Bounds the writes that wait for a commit and its flush; a tenant may have as many as there is room left for, so one alone has half. Past it a write is refused as UNAVAILABLE.',
)
/** For what is patient: due work, and requests that are refused last. */
export const patient_waiting_max = limit(
  'db.patient_waiting',
  200,
  'requests',
  'Writes and statements that may wait beyond sqlite.waiting_writes and postgres.waiting: due work, and what is refused last.',
)

export class WriteRoom {
  #waiting = 0
  readonly #of_owner = new Map<string, number>()
  readonly #of_group = new Map<string, number>()

  constructor(private readonly max = waiting_max) {}

  get waiting(): number {
    return this.#waiting
  }

  /** False when there is no room left for this owner, or for its group. */
  enter(key: string, group: string | undefined, is_patient = false): boolean {
    const room = this.max + (is_patient ? patient_waiting_max : 0) - this.#waiting
    const of_owner = this.#of_owner.get(key) ?? 0
    const of_group = group === undefined ? 0 : (this.#of_group.get(group) ?? 0)
    if (of_owner >= room || of_group >= 3 * room) return false
    this.#waiting += 1
    this.#of_owner.set(key, of_owner + 1)
    if (group !== undefined) this.#of_group.set(group, of_group + 1)
    return true
  }

  leave(key: string, group: string | undefined): void {
    this.#waiting -= 1
    lessOne(this.#of_owner, key)
    if (group !== undefined) lessOne(this.#of_group, group)
  }
}

function lessOne(counts: Map<string, number>, key: string): void {
  const count = counts.get(key)!
  if (count === 1) counts.delete(key)
  else counts.set(key, count - 1)
}
