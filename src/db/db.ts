// The database as the service uses it: named statements, reads and durable writes.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { DbGauges } from './measures.ts'

export type Value = string | number | null
export type Params = Readonly<Record<string, Value>>
export type Awaitable<T> = T | Promise<T>

/**
 * tenant: rows of `:tenant_id`. all: rows of all tenants. hash: the row of tenant_lookups whose value is `:hash`.
 * none: no row that belongs to a tenant.
 */
export type Scope = 'tenant' | 'all' | 'hash' | 'none'

/** One SQL text for both engines, with the shape of the rows it gives. Made by `sql`, once, at module load. */
export interface Statement<Row = never> {
  readonly name: string
  /** The text with `:name` parameters replaced by `$1`, `$2`, … */
  readonly text: string
  /** Parameter names in the order of their numbers. */
  readonly params: readonly string[]
  /** Everything but a select: then `one` and `all` need a `returning` clause. */
  readonly writes: boolean
  /** The rows that row-level security lets it see, on PostgreSQL (bound.ts). */
  readonly scope: Scope
  /** Searches due work, and has a turn for that alone on the Db; absent: its turn is that of the tenant or the hash that it names. */
  readonly searches?: true
  /** The statement that a database takes whose tables are distributed; absent: this one. */
  readonly distributed?: Statement<Row>
  /** Finds the row that it has written. SQLite runs this instead of a `returning` clause; absent: the clause. */
  readonly read_back?: Statement<Row>
  /** Never set: carries the row type. */
  readonly row?: Row
}

export interface Reader {
  /** The first row, or null. */
  one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null>
  all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]>
}

/** The counter of a tenant's stored bytes at one moment. `writes` grows with each write of it: the higher is the later. */
export interface StoredCounter {
  used: number
  writes: number
}

/** The request or the job that a transaction belongs to, as far as traces are concerned. */
export interface Origin {
  /** Absent, or null, for none. */
  readonly traceparent?: string | null | undefined
}

export interface Tx extends Reader {
  /** Read once when the transaction began; every time in it is this one. */
  readonly now: Millis
  /** Jobs that are enqueued in it continue the trace of this; null for none. */
  origin?: Origin | null
  /** Runs a statement that returns no rows; returns the number of rows that it changed. */
  run(statement: Statement, params: Params): Awaitable<number>
  /** Runs once the transaction is durable, and not at all when it fails. */
  afterCommit(effect: () => void): void
  /** Once the transaction is durable, the listener of `Db.onChange` is called with this key. */
  changed(key: string): void
  /** Adds to the tenant's count of stored bytes; negative when it stores fewer (stored.ts). */
  stores(tenant_id: string, bytes: number): void
  /** The bytes that the tenant stores, this transaction included. `counted`: its counter, read at most a second ago. */
  stored(tenant_id: string, counted: StoredCounter): number
  /** True when the disk has no room for what grows (disk.ts). Deletes, and what the service must write, continue. */
  readonly disk_full: boolean
  /**
   * How many other writes run in this transaction at the same time, each between the statements of the others. They see
   * what it has changed, and no lock of a row keeps them apart.
   */
  readonly beside: number
}

/** The same transaction, in which work for this origin is done. */
export function from(tx: Tx, origin: Origin): Tx {
  tx.origin = origin
  return tx
}

/** Thrown by work that shares its transaction and can only be decided alone: it is run again on its own. */
export class MustRunAlone extends Error {
  override name = 'MustRunAlone'
}

/** Work that may share its transaction, on PostgreSQL. */
export interface Batch {
  /** Writes of one line share transactions, and have them one after the other. A tenant has one line. */
  line: string
  /** Never in a transaction with another write of the same `row`, of this turn's `key`. */
  apart?: boolean
  /** Writes of the same `row`, of this turn's `key`, that share a transaction at most; absent: as many as it has. */
  row_max?: number
  /** About how many bytes it sends. */
  bytes?: number
}

/** The owner of a transaction: connections and places in the queue are shared out by it. */
export interface Turn {
  /** A tenant, or a kind of work of the service itself. */
  key: string
  /** A row that all transactions that name it change first. On PostgreSQL few of one row run at once: the others would wait for its lock, each with a connection. */
  row?: string
  /** Of keys that strangers may make up: together they take three quarters of the queue, one of them half. */
  group?: string
  /** Absent: it has a transaction of its own. SQLite, where writes share commits, ignores it. */
  batch?: Batch
  /** Waits for a connection however long others of its key have waited. */
  patient?: boolean
  /** Waits beside the others: it has every second place in a commit of SQLite, and of permits for a connection of PostgreSQL while its key holds none. */
  urgent?: boolean
  /** How long it may take; absent: as long as a request waits; null: as long as it needs. Milliseconds. */
  ms_max?: number | null
}

/** True for work that no request waits for, or for longer. */
export function isPatient({ patient, ms_max }: Turn): boolean {
  return patient ?? ms_max !== undefined
}

/** A tenant's id stands for its requests. */
export type Owner = string | Turn

/** The turn of sweeps and purges, for which no request waits. */
export const upkeep: Turn = {
  key: 'upkeep',
  ms_max: limit(
    'db.upkeep_ms',
    60_000,
    'milliseconds',
    'Bounds a transaction of a sweep or purge on PostgreSQL; one that takes longer is rolled back and tried again.',
  ),
}

/** The turn of a tenant's due work, apart from the tenant's own calls. */
export function dueWork(tenant_id: string): Turn {
  return { key: `work ${tenant_id}`, patient: true }
}

/**
 * The turn of a search for due work: one for each tenant and destination that is searched. A node asks for many of them at
 * once, and a key that has them all would be served once in a round of those that wait: the last ones are refused after
 * `postgres.answer_ms`, which patience does not change.
 */
function searchOf({ tenant_id, destination }: Params): Turn {
  const searched = [tenant_id, destination].filter((one) => typeof one === 'string')
  return { key: ['due work', ...searched].join(' '), patient: true }
}

/** The turn of a transaction that names no owner. */
export const service: Turn = { key: 'service', patient: true }

/** The arguments of `read` and `write`. */
export function turnOf<W extends (tx: never) => unknown>(owner: Owner | W, work?: W): [Turn, W] {
  if (typeof owner === 'function') return [service, owner]
  return [typeof owner === 'string' ? { key: owner } : owner, work!]
}

/**
 * A look-up by hash has a turn of its own for each hash, also where it names a tenant: strangers may send any number,
 * and the requests of the tenant do not wait behind them. Any other single statement is its tenant's.
 */
export function turnOfStatement(statement: Statement<unknown>, params: Params): Turn {
  const { name, searches } = statement
  if (searches) return searchOf(params)
  const { tenant_id, hash, token_hash } = params
  const looked_up = hash ?? token_hash
  if (typeof looked_up === 'string') return { key: `${name} ${looked_up}`, group: name }
  return { key: typeof tenant_id === 'string' ? tenant_id : name }
}

/** A single `one` or `all` on the Db itself is a consistent read of its own. */
export interface Db extends Reader {
  readonly engine: 'sqlite' | 'postgres'
  /** The time that every node of this database takes for now. */
  readonly clock: Clock
  /**
   * Several statements that see one state of the database. The work awaits nothing but `q`: on SQLite a longer read keeps
   * the log from being begun again, and every checkpoint makes writes wait for it for a time.
   */
  read<T>(work: (q: Reader) => Awaitable<T>): Promise<T>
  read<T>(owner: Owner, work: (q: Reader) => Awaitable<T>): Promise<T>
  /**
   * Atomic; when the promise resolves, the effect is durable. The work awaits nothing but `tx`, throws to undo,
   * and may be run again by the driver, so it keeps no state outside itself. Without an owner it is the service's.
   */
  write<T>(work: (tx: Tx) => Awaitable<T>): Promise<T>
  write<T>(owner: Owner, work: (tx: Tx) => Awaitable<T>): Promise<T>
  /** The settings that durability depends on, as the engine reports them. */
  durability(): Awaitable<Record<string, string | number>>
  /** The bytes that the tenant stores: its counter, as a read that has just been answered found it, and what waits to be written to it. */
  storedBytes(tenant_id: string, counter: StoredCounter): number
  /** Once a second: writes stored bytes that wait, and looks at the disk. */
  maintain(): Promise<void>
  /** The reason to send no requests here although the database answers; null when there is none. */
  trouble(): Trouble | null
  /** PostgreSQL: no connection can be opened, and what begins fails as lost. Its outage is reported, however much fails in it. */
  readonly is_away: boolean
  /** How it stands now, for metrics. */
  gauges(): Awaitable<DbGauges>
  /**
   * PostgreSQL: what begins from now on works as this role. False, and nothing is changed, where connections do not get it, or
   * row-level security does not bind it. Throws, and changes nothing, when that cannot be seen. SQLite has no roles.
   */
  takeRole(role: string): Promise<boolean>
  /** Checks the whole database, which may take long; returns what is damaged, in the engine's words. Throws where it cannot. */
  faults(): Promise<string[]>
  /** Called with the name of every statement as it runs. For tests and timings. */
  onStatement(listener: ((name: string) => void) | null): void
  /** Called with the keys that transactions of this process have changed, once they are durable. */
  onChange(listener: (key: string) => void): void
  /** Sends a text to all nodes that listen, this one included (postgres-listen.ts). On SQLite there are no others. */
  notify(text: string): Promise<void>
  /** Finishes what is queued, checkpoints and closes. */
  close(): Promise<void>
}

/**
 * damaged: the file holds what SQLite did not write; nothing is written any more. removed: it is not where it was opened; nothing
 * is written any more. full: nothing that grows is written. stalled: the disk does not return from a flush; nothing is written
 * until it does. read_only: the server of PostgreSQL takes no writes; another one is looked for.
 */
export interface Trouble {
  kind: 'damaged' | 'removed' | 'full' | 'stalled' | 'read_only'
  /** A sentence without its first capital and its full stop. */
  reason: string
}

/**
 * Begins a condition that leads to the shard of the tenant, where the statement names the tenant otherwise, as a range.
 * Only a database whose tables are distributed sees it.
 */
export const of_shard = '{distributed tenant_id = :tenant_id and}'

/**
 * Defines a statement. Names are `noun.verb` and unique; parameters are `:snake_case`. `distributed`: the text for a
 * database whose tables are distributed, for a statement on the rows of all tenants that cannot be told there as it is.
 */
export function sql<Row = never>(name: string, text: string, distributed?: string): Statement<Row> {
  return defined<Row>(name, text, distributed)
}

/** The same for a statement on the rows of all tenants, which sees them behind row-level security as well. */
export function acrossTenants<Row = never>(name: string, text: string, distributed?: string): Statement<Row> {
  return defined<Row>(name, text, distributed, 'all')
}

/** The same for the look-up that finds a tenant, by `:hash`. */
export function byHash<Row = never>(name: string, text: string): Statement<Row> {
  return defined<Row>(name, text, undefined, 'hash')
}

/** The same statement, which no request waits for: it searches due work, and is not refused because others have waited for long. */
export function forDueWork<Row>(statement: Statement<Row>): Statement<Row> {
  const search = { ...statement, searches: true as const }
  statements.set(statement.name, search)
  return search
}

/**
 * As `sql`, for a write on a hot path, of one row at most, of which these columns are returned; `found` finds it afterwards, by its
 * key. SQLite opens a table for a `returning` clause, which costs 0.4 µs more than to find the row again.
 */
export function writesRow<Row>(name: string, text: string, columns: string, found: string): Statement<Row> {
  const statement: Statement<Row> = {
    ...defined<Row>(name, `${text} returning ${columns}`),
    read_back: unnamed<Row>(name, `select ${columns} from ${found}`),
  }
  statements.set(name, statement)
  return statement
}

function defined<Row>(name: string, text: string, distributed?: string, given?: Scope): Statement<Row> {
  if (statements.has(name)) throw new Error(`two statements are named ${name}`)
  const worded = unnamed<Row>(name, text)
  const scope = given ?? worded.scope
  const statement: Statement<Row> = {
    ...{ ...worded, scope },
    ...(distributed === undefined ? {} : { distributed: { ...unnamed<Row>(name, distributed), scope } }),
  }
  statements.set(name, statement)
  return statement
}

/** A statement outside the list of names: the schema, the operator's commands. It sees no tenant unless it names one. */
export function unnamed<Row = never>(name: string, text: string): Statement<Row> {
  const params: string[] = []
  const numbered = text.replace(/:([a-z_]+)/g, (_, param: string) => {
    if (!params.includes(param)) params.push(param)
    return `$${params.indexOf(param) + 1}`
  })
  const scope = params.includes('tenant_id') ? 'tenant' : 'none'
  return { name, text: numbered.trim(), params, writes: !/^\s*select\b/i.test(text), scope }
}

/** The same on the rows of all tenants. */
export function unnamedAcrossTenants<Row = never>(name: string, text: string): Statement<Row> {
  return { ...unnamed<Row>(name, text), scope: 'all' }
}

/** Every statement of the service, by name: the tests prepare each one on both engines. */
export const statements = new Map<string, Statement<unknown>>()

/** The values in the order of the statement's numbers. A missing one is a bug and throws. */
export function bind(statement: Statement<unknown>, params: Params): Value[] {
  const names = statement.params
  const values = new Array<Value>(names.length)
  for (let i = 0; i < names.length; i++) {
    const value = params[names[i]!]
    if (value === undefined) throw new Error(`${statement.name}: no value for :${names[i]}`)
    values[i] = value
  }
  return values
}

/** The listener of `Db.onChange`, as transactions reach it. */
export interface ChangeListener {
  changed(key: string): void
}

/** Runs the effects that `afterCommit` collected. An effect that throws is a bug, and must not leave other callers unanswered. */
export function runEffects(effects: (() => void)[]): void {
  for (const effect of effects) {
    try {
      effect()
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
