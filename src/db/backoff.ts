// Work for each of several tenants: one for whom it fails waits, and keeps no other from its turn.

import type { Clock } from '../base/clock.ts'
import { isLost } from './errors.ts'

/** Work by key, such as a tenant: one for which it has failed waits before its next turn. */
export class Backoff {
  /** The monotonic times from which those that failed have turns again. */
  readonly #waiting = new Map<string, number>()

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    readonly onError: (error: unknown) => void,
    private readonly pause_ms: number,
    /** It waits for so many times as long as it took to fail, where that is longer. */
    private readonly pauses_per_attempt = 0,
  ) {}

  isWaiting(key: string): boolean {
    return this.clock.monotonic() < (this.#waiting.get(key) ?? Number.NEGATIVE_INFINITY)
  }

  /** Null for one that waits, or has failed. */
  async take<T>(key: string, work: () => Promise<T>, onError = this.onError): Promise<T | null> {
    if (this.isWaiting(key)) return null
    const began = this.clock.monotonic()
    try {
      const done = await work()
      this.#waiting.delete(key)
      return done
    } catch (error) {
      const now = this.clock.monotonic()
      this.#waiting.set(key, now + Math.max(this.pause_ms, this.pauses_per_attempt * (now - began)))
      onError(error)
      return null
    }
  }

  /** All have their turns again. */
  resume(): void {
    this.#waiting.clear()
  }
}

/** Each has its turn, also after one that failed; the first failure is thrown at the end. */
export async function eachInTurn<Row>(
  rows: readonly Row[],
  work: (row: Row) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = []
  for (const row of rows) await work(row).catch((error) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}

/** So many at once; where that fails, each alone, unless the database is away. The first failure is thrown at the end. */
export function inBatches<Row>(
  rows: readonly Row[],
  at_once: number,
  work: (rows: readonly Row[]) => Promise<unknown>,
): Promise<void> {
  const batches: Row[][] = []
  for (let at = 0; at < rows.length; at += at_once) batches.push(rows.slice(at, at + at_once))
  return eachInTurn(batches, (batch) =>
    work(batch).catch((error) => {
      if (batch.length === 1 || isLost(error)) throw error
      return eachInTurn(batch, (row) => work([row]))
    }),
  )
}
