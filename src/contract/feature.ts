// A feature is a value: everything that the service must know of it. `src/features.ts` is the one list; migrations,
// quotas, plans, usage, sweep, purge, worker, contract and documents go through it, and name no feature.

import type { Millis } from '../base/clock.ts'
import type { ErrorRow } from '../base/error-rows.ts'
import type { Awaitable, Db, Reader, Statement, Tx } from '../db/db.ts'
import type { Migration } from '../db/migrate.ts'
import type { StoredTable } from '../db/recount.ts'
import type { SealedColumn } from '../db/reseal.ts'
import type { Due, DueLists } from '../db/sweep-tenants.ts'
import type { Dependencies } from './dependencies.ts'
import type { EventRow, EventType } from './event.ts'
import type { Route } from './route.ts'

/** Plans that the service comes with; a PLANS_FILE may have others. */
export const plan_names = ['free', 'builder', 'pro', 'enterprise'] as const
export type PlanName = (typeof plan_names)[number]

/**
 * A plan for those who run the service for themselves. It has no quotas. Limits that are not quotas, such as the messages
 * that an inbox keeps, are those of `enterprise`: nothing grows without a bound.
 */
export const unlimited_plan = 'unlimited'

/** A limit per plan that a feature declares. `null` is unlimited. */
export interface PlanLimit {
  /** `kv_keys`: the name in plans, in the quota object and in errors. */
  name: string
  /** The limit in a plan that does not name it; a plan of another name than these has that of `free`. */
  defaults: Readonly<Record<PlanName, number | null>>
}

/** A limit whose use is counted in the database, exactly. The counter is made when it is first used. */
export interface CountedQuota extends PlanLimit {
  /** Returns how much is counted but has expired, so that a caller sees what is there. Looks at a bounded number of rows. */
  countExpired?(q: Reader, tenant_id: string, now: Millis): Promise<number>
}

/** Numbers that a tick reports, by group: `{ dlq: ['locks_released'] }`. Each is raised as `dlq.locks_released`. */
export type Counters = Readonly<Record<string, readonly string[]>>

/** One bounded step that removes, or releases, what has expired. */
export interface Sweep {
  counters?: Counters
  /**
   * `lists` has those of the node: what fails for some of their rows waits, and is reported. `bounds`: of a step that has none of
   * its own.
   */
  run(db: Db, now: Millis, lists: DueLists, bounds: { rows_max: number; bytes_max: number }): Promise<Swept>
  /** Reads when the next row after `:now` leaves an event by expiring, which a test clock moves to. Of `expiries`. */
  nextAt?: Statement<{ at: Millis | null }>
}

export interface Swept {
  /** By `group.name`. */
  counts?: Readonly<Record<string, number>>
  /** Another step would find more. */
  more: boolean
}

/** Removes rows of a tenant that is being purged, a bounded number a call; returns how many. */
export type Purge = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => Awaitable<number>

/** The rows of purgeable tenants: each is locked first in every step, and removed last. */
export interface Purgeable {
  /** The first of those that are due since `due_from`. */
  due(q: Reader, now: Millis, due_from: Millis, rows_max: number): Awaitable<Due[]>
  /** False when the tenant was restored, or is gone. */
  lock(tx: Tx, tenant_id: string): Promise<boolean>
  remove(tx: Tx, tenant_id: string): Awaitable<unknown>
}

export interface Follows {
  /** In the transaction that gives events of a tenant their numbers. `events` reads these, oldest first. */
  numbered?(
    tx: Tx,
    dependencies: Dependencies,
    tenant_id: string,
    events: () => Awaitable<readonly EventRow[]>,
  ): Awaitable<void>
  /** The number up to which it needs events no more. Absent: it has what it needs in `numbered`. */
  usedUpTo?(tx: Tx, tenant_id: string): Awaitable<number>
  /** A bounded step within about a second of new events of a tenant, beside requests. */
  step?(db: Db, dependencies: Dependencies, tenant_id: string): Promise<{ more: boolean }>
}

export interface Feature {
  /** The folder in src/. */
  name: string
  routes?: readonly NamedRoute[]
  /** The tags of its routes, each with a sentence. */
  tags?: Readonly<Record<string, string>>
  /** The types of its events, which its events.ts declares. */
  events?: Readonly<Record<string, EventType>>
  /** Hears of events that have got their numbers. */
  follows?: Follows
  /** The rows of its error codes, which its errors.ts declares. */
  errors?: Readonly<Record<string, ErrorRow>>
  /** The name under which its calls are counted in the usage of a tenant; without it they are not counted. */
  usage?: string
  quotas?: readonly CountedQuota[]
  /** Limits of a plan that are not counted by `quotas`. */
  plan_limits?: readonly PlanLimit[]
  migrations?: readonly Migration[]
  stored?: readonly StoredTable[]
  /** Columns that a rotation of SECRET_KEY seals again. */
  sealed?: readonly SealedColumn[]
  /** Features whose rows its own point to: they are migrated before it and purged after it. */
  points_to?: readonly string[]
  sweep?: Sweep
  /** One bounded step that ends what has expired and must leave its event within a second. It runs twice a second. */
  expiries?: Sweep
  purge?: Purge | readonly Purge[]
  purgeable?: Purgeable
  /** Numbers that its jobs raise; the kinds of jobs are added to this type by `jobs/kind.ts`. */
  counters?: Counters
  /** `kv.md` in docs/, loaded at the first request for a page: the start of the service does not wait for it. */
  docs?: { file: string; load(): Promise<{ default: string }> }
}

/** The routes among the exports of a module, by name. */
export function routesOf(exports: object): NamedRoute[] {
  return Object.entries(exports)
    .flatMap(([name, value]) => (isRoute(value) ? [{ name, route: value }] : []))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function isRoute(value: unknown): value is Route {
  return (
    typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'replies' in value
  )
}

/** `createAgent`, `listAgents`: the export's name is what clients call it. */
export interface NamedRoute {
  name: string
  route: Route
  /** The name under which its calls are counted in the usage of a tenant; without it they are not counted. */
  usage?: string
}
