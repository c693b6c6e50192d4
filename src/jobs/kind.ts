// A kind of job is a value: how its message is made, how often it is tried, and how the outcome is settled. Features
// declare their kinds; the worker knows them by name alone.

import type { Millis } from '../base/clock.ts'
import type { Outgoing } from '../callbacks/attempt.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import { type AttemptResult, attempt_offsets_ms, type LeasedJob, type Sequence } from './job.ts'

/** The worker hands this to a kind, along with the job. */
export interface MessageContext {
  db: Db
  dependencies: Dependencies
  /** When the attempt began. */
  started_at: Millis
}

/** `schedules.fired`: a counter of the tick's answer. Null raises none. */
export type Counter = string | null

interface KindBase {
  /** As it is stored. Not changed once released. */
  name: string
  /** True when the first attempt waits for no tick, also with TICK=external. */
  starts_at_once: boolean
  /** True when it runs while its tenant is frozen. Not changed once released. */
  goes_on?: boolean
  /** The source that its attempts are logged under; null: they are not logged. */
  logged_as: string | null
}

/** Sends requests. */
export interface SendingKind extends KindBase {
  /** The number of its attempts, at as many of `attempt_offsets_ms`. A job past its last attempt has failed. */
  attempts_max: number
  /** When its attempts are made, counted from the first; absent: as those of callbacks. */
  attempt_offsets_ms?: readonly number[]
  /** Raised when an attempt begins: its first request is about to be sent. */
  begun: Counter
  /**
   * The request of an attempt, or several in a row. Null: nothing is left to send. `paused`: the tenant's jobs are paused.
   * A time: nothing is sent before it, and the attempt does not count.
   */
  message(
    context: MessageContext,
    job: LeasedJob,
  ): Promise<Outgoing | Sequence | Later | Nothing | 'paused' | null>
  /** Ends a lease with nothing to send; absent: the job is completed. `seen`: as `message` says, or null. */
  idle?(tx: Tx, dependencies: Dependencies, job: LeasedJob, seen: number | null): Promise<void>
  settle(tx: Tx, dependencies: Dependencies, job: LeasedJob, result: AttemptResult): Promise<Counter>
  /** Leaves the event of an attempt that is logged and not settled: its lease was lost, or its node died. */
  uncounted?(tx: Tx, job: LeasedJob, result: AttemptResult): Promise<void>
}

/**
 * Sends nothing: the job is settled when it is due. `settle` completes or reschedules it under its fencing token; as
 * long as that fails the job is leased again, without end, because an outcome that must not be lost has no last try.
 */
export interface LocalKind extends KindBase {
  message: null
  settle(tx: Tx, dependencies: Dependencies, job: LeasedJob): Promise<Counter>
}

export interface Later {
  not_before: Millis
}

/** Nothing is left to send; `seen`, for `idle`, says how far was searched. */
export interface Nothing {
  seen: number
}

export type JobKind = SendingKind | LocalKind

declare module '../contract/feature.ts' {
  interface Feature {
    /** Kinds of jobs that it runs. */
    jobs?: readonly JobKind[]
  }
}

export type JobKinds = ReadonlyMap<string, JobKind>

/** Throws when two kinds share a name, since one would settle the other's jobs, and for more attempts than there are times. */
export function kindsOf(kinds: readonly JobKind[]): JobKinds {
  const by_name = new Map(kinds.map((kind) => [kind.name, kind]))
  if (by_name.size < kinds.length) throw new Error('two kinds of jobs have the same name')
  for (const kind of kinds) {
    if (kind.message === null) continue
    const most = (kind.attempt_offsets_ms ?? attempt_offsets_ms).length
    if (kind.attempts_max > most) throw new Error(`jobs of kind ${kind.name} have ${most} attempts at most`)
  }
  return by_name
}

/** True when no attempt follows the next one, as for every forward. */
export function isLast(kind: JobKind, attempts: number): boolean {
  return kind.message !== null && attempts + 1 >= kind.attempts_max
}
