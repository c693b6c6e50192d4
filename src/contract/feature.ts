// A feature is a value: everything that the service must know of it. `src/features.ts` is the one list; migrations,
// quotas, plans, usage, sweep, purge, worker, contract and documents go through it, and name no feature.

import type { Millis } from '../base/clock.ts'
import type { Awaitable, Db, Reader, Tx } from '../db/db.ts'
import type { NamedRoute } from './route.ts'

/** Plans that the service comes with; a PLANS_FILE may have others. */
export type PlanName = 'free' | 'builder' | 'pro' | 'enterprise'

/** A number per plan that a feature asks for. `null` is unlimited. */
export interface PlanLimit {
  /** `kv_keys`: the name in plans, in the quota object and in errors. */
  name: string
  /** What a plan has that does not name it; a plan of another name than these has what `free` has. */
  defaults: Readonly<Record<PlanName, number | null>>
}

/** A limit whose use is counted in the database, exactly. The counter is made when it is first used. */
export interface CountedQuota extends PlanLimit {
  /** What is counted but has expired, so that a caller sees what is there. Looks at a bounded number of rows. */
  expired?(q: Reader, tenant_id: string, now: Millis): Promise<number>
}

/** One bounded step that removes, or releases, what has expired. */
export interface SweepStep {
  run(db: Db, now: Millis): Promise<{ counts?: Readonly<Record<string, number>>; more: boolean }>
}

/** Removes rows of a tenant that is being purged, a bounded number a call; answers how many. */
export type Purge = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => Awaitable<number>

/** A numbered step of a feature's tables. A released one is never edited: a test holds its hash. */
export interface Migration {
  /** `kv/0001`. */
  name: string
  sql: string
}

export interface DocsPage {
  /** `kv.md`, in docs/. */
  file: string
  title: string
  /** One line for lists of pages. */
  summary: string
}

export interface Feature {
  /** The folder in src/. */
  name: string
  routes?: readonly NamedRoute[]
  /** What its calls count as in the usage of a tenant; without it they are not counted by feature. */
  usage?: string
  quotas?: readonly CountedQuota[]
  /** Limits of a plan that count nothing. */
  plan_limits?: readonly PlanLimit[]
  migrations?: readonly Migration[]
  sweep?: SweepStep
  purge?: Purge
  /** Features whose rows its own point to: they are purged after it, and migrated before it. */
  points_to?: readonly string[]
  /** Kinds of jobs that it runs. */
  jobs?: readonly unknown[]
  /** Group and names of what a tick reports: `{ dlq: ['locks_released'] }`. */
  counts?: Readonly<Record<string, readonly string[]>>
  docs?: DocsPage
}
