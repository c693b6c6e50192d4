// A kind of job is a value: how its message is made, how often it is tried, and how the outcome is settled. Features
// declare their kinds; the worker knows them by name alone.

import type { Millis } from '../base/clock.ts'
import type { Outgoing } from '../callbacks/attempt.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import type { AttemptResult, LeasedJob } from './job.ts'

/** The worker hands this to a kind, beside the job. */
export interface MessageContext {
  db: Db
  dependencies: Dependencies
  /** When the attempt began. */
  started_at: Millis
}

/** `schedules.fired`: a counter of the tick's answer. Null raises none. */
export type Counter = string | null

interface Facts {
  /** As it is stored. Not changed once released. */
  name: string
  attempts_max: number
  /** True when the first attempt waits for no tick, also with TICK=external. */
  starts_at_once: boolean
  /** The source that its attempts are logged under; null: they are not logged. */
  logged_as: string | null
}

/** Sends one request an attempt. */
export interface SendingKind extends Facts {
  /** Raised when an attempt begins. */
  begun: Counter
  /** The request of an attempt. Null: nothing is left to send. `paused`: the tenant's jobs are paused. */
  message(context: MessageContext, job: LeasedJob): Promise<Outgoing | 'paused' | null>
  settle(tx: Tx, dependencies: Dependencies, job: LeasedJob, result: AttemptResult): Promise<Counter>
}

/** Sends nothing: the job is settled when it is due. */
export interface LocalKind extends Facts {
  message: null
  settle(tx: Tx, dependencies: Dependencies, job: LeasedJob): Promise<Counter>
}

export type JobKind = SendingKind | LocalKind

declare module '../contract/feature.ts' {
  interface Feature {
    /** Kinds of jobs that it runs. */
    jobs?: readonly JobKind[]
  }
}

export type JobKinds = ReadonlyMap<string, JobKind>

export function kindsOf(kinds: readonly JobKind[]): JobKinds {
  return new Map(kinds.map((kind) => [kind.name, kind]))
}

/** True when no attempt follows the next one; so it is with every forward. */
export function isLast({ attempts_max }: JobKind, attempts: number): boolean {
  return attempts + 1 >= attempts_max
}
