// One write in the queue of the SQLite driver, and what became of it.

import { type Awaitable, runEffects, type Tx } from './db.ts'
import { DbError, isIoError } from './errors.ts'

export interface Job {
  key: string
  group: string | undefined
  /** Comes before others once not all fit into a commit. */
  urgent: boolean
  /** The monotonic time at which it came. */
  since: number
  work: (tx: Tx) => Awaitable<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

export type Outcome =
  | { ok: true; value: unknown; effects: (() => void)[] | null }
  | { ok: false; error: unknown }

export function settle(job: Job, outcome: Outcome): void {
  if (!outcome.ok) {
    job.reject(outcome.error)
    return
  }
  if (outcome.effects) runEffects(outcome.effects)
  job.resolve(outcome.value)
}

/** True for an error after which the transaction as a whole cannot continue. */
export function fatal(error: unknown): boolean {
  return isIoError(error) || (error instanceof DbError && (error.kind === 'full' || error.kind === 'damaged'))
}
