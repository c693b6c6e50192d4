// SQLite driver with group commit: writes queue, and once per turn of the event loop the queue runs as one
// transaction with one COMMIT, which is one fsync. Only then is anybody answered. That makes a durable write
// cost little more than a relaxed one.

import { constants, Database, type Statement as Prepared } from 'bun:sqlite'
import { existsSync, mkdirSync, realpathSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import {
  type Awaitable,
  bind,
  type Db,
  DbError,
  type Owner,
  type Params,
  type Reader,
  runEffects,
  type Statement,
  type Tx,
  turnOf,
} from './db.ts'
import { isIoError, sqlite_pragmas, sqliteText, translate, unsafeSqlite } from './dialect.ts'

const queue_max = limit(
  'sqlite.waiting_writes',
  2_000,
  'requests',
  'Bounds the writes that wait for a commit; a tenant may have as many as there is room left for, so one alone has half. Past it a write is refused as UNAVAILABLE.',
)

export interface SqliteOptions {
  clock: Clock
  /** Whether to take the lock that only one server may have. */
  exclusive: boolean
  /** The disk failed under a write: the process must stop serving and exit. */
  onFatal: (error: unknown) => void
}

interface Job {
  work: (tx: Tx) => Awaitable<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

type Outcome = { ok: true; value: unknown; effects: (() => void)[] | null } | { ok: false; error: unknown }

/** Opens the file (`:memory:` is allowed). Throws when it is in use, on an unsafe set-up, or unreadable. */
export function openSqlite(path: string, options: SqliteOptions): Db {
  const in_memory = path === ':memory:'
  if (!in_memory) mkdirSync(dirname(path), { recursive: true })
  const lock =
    in_memory || !options.exclusive ? null : lockFile(`${existsSync(path) ? realpathSync(path) : path}.lock`)
  try {
    return new SqliteDb(path, in_memory, lock, options)
  } catch (error) {
    lock?.close()
    throw error
  }
}

/**
 * One server per file. The lock is an exclusive transaction on a small database beside it, so the kernel gives it
 * up when the process dies, however it dies.
 */
function lockFile(path: string): Database {
  const lock = new Database(path, { create: true })
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('pragma journal_mode = delete')
    lock.run('begin exclusive')
    return lock
  } catch {
    lock.close()
    throw new Error(`another process has this database open (${path})`)
  }
}

class SqliteDb implements Db {
  readonly engine = 'sqlite'
  readonly #path: string
  readonly #in_memory: boolean
  readonly #lock: Database | null
  readonly clock: Clock
  readonly #onFatal: (error: unknown) => void
  /** Writes only, one transaction at a time. */
  readonly #writer: Connection
  /** Single statements: each sees the last commit, never an open transaction. */
  readonly #reader: Connection
  /** Reads of several statements, one after the other, each in a transaction of its own. */
  readonly #snapshot: Connection
  #reads: Promise<unknown> = Promise.resolve()
  #queue: Job[] = []
  /** How many of the queue are whose. */
  readonly #queued = new Map<string, number>()
  #flushing: Promise<void> | null = null
  #closed = false

  constructor(path: string, in_memory: boolean, lock: Database | null, { clock, onFatal }: SqliteOptions) {
    this.#path = path
    this.#in_memory = in_memory
    this.#lock = lock
    this.clock = clock
    this.#onFatal = onFatal
    this.#writer = new Connection(path)
    this.#reader = in_memory ? this.#writer : new Connection(path)
    this.#snapshot = in_memory ? this.#writer : new Connection(path)
    if (in_memory) return
    for (const connection of [this.#writer, this.#reader, this.#snapshot]) {
      const unsafe = unsafeSqlite(this.#settings(connection))
      if (unsafe) throw new Error(`refusing to serve from ${path}: ${unsafe}`)
    }
    this.#reader.exec('pragma query_only = on')
    this.#snapshot.exec('pragma query_only = on')
  }

  one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    if (this.#mustWait()) return this.#flushing!.then(() => this.#reader.one(statement, params))
    return this.#reader.one(statement, params)
  }

  all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    if (this.#mustWait()) return this.#flushing!.then(() => this.#reader.all(statement, params))
    return this.#reader.all(statement, params)
  }

  /** In memory there is one connection, and its open transaction must not be seen. */
  #mustWait(): boolean {
    return this.#in_memory && this.#flushing !== null
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), given?: (q: Reader) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    if (this.#in_memory) return this.write(turn, work)
    const read = this.#reads.then(async () => {
      this.#snapshot.exec('begin')
      try {
        return await work(this.#snapshot)
      } finally {
        this.#snapshot.exec('commit')
      }
    })
    this.#reads = read.catch(() => {})
    return read
  }

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [{ key }, work] = turnOf(owner, given)
    if (this.#closed) return Promise.reject(new DbError('lost', 'the database is closed'))
    const queued = this.#queued.get(key) ?? 0
    if (queued >= queue_max - this.#queue.length)
      return Promise.reject(new DbError('busy', 'too many writes are waiting'))
    this.#queued.set(key, queued + 1)
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      this.#flushing ??= this.#nextTurn()
    })
  }

  #nextTurn(): Promise<void> {
    return new Promise((done) => {
      setImmediate(async () => {
        const jobs = this.#queue
        this.#queue = []
        this.#queued.clear()
        await this.#commitTogether(jobs)
        this.#flushing = this.#queue.length > 0 ? this.#nextTurn() : null
        done()
      })
    })
  }

  async #commitTogether(jobs: Job[]): Promise<void> {
    const now = this.clock.now()
    let outcomes: Outcome[]
    try {
      outcomes = (await this.#attempt(jobs, now, false)) ?? (await this.#attempt(jobs, now, true))!
    } catch (error) {
      this.#abandon(jobs, error)
      return
    }
    jobs.forEach((job, i) => {
      settle(job, outcomes[i]!)
    })
  }

  /**
   * Runs all jobs in one transaction. Without savepoints a job that fails after it has written spoils the whole
   * transaction: then nothing is kept and the answer is null, and the jobs run again with a savepoint each.
   */
  async #attempt(jobs: Job[], now: Millis, savepoints: boolean): Promise<Outcome[] | null> {
    const writer = this.#writer
    writer.exec('begin immediate')
    const outcomes: Outcome[] = []
    try {
      for (const { work } of jobs) {
        if (savepoints) writer.exec('savepoint job')
        const tx = new SqliteTx(writer, now)
        try {
          const result = work(tx)
          const value = result instanceof Promise ? await result : result
          outcomes.push({ ok: true, value, effects: tx.effects })
        } catch (error) {
          if (fatal(error)) throw error
          if (savepoints) writer.exec('rollback to job')
          else if (tx.wrote) {
            writer.exec('rollback')
            return null
          }
          outcomes.push({ ok: false, error: translate('sqlite', error) })
        } finally {
          tx.finished = true
        }
        if (savepoints) writer.exec('release job')
      }
      writer.exec('commit')
      return outcomes
    } catch (error) {
      writer.rollback()
      throw error
    }
  }

  /** Nothing of this batch was kept, or nobody knows. */
  #abandon(jobs: Job[], error: unknown): void {
    const io_error = isIoError(error)
    const reason = io_error
      ? new DbError('outcome_unknown', 'the disk failed while writing', { cause: error })
      : translate('sqlite', error)
    for (const job of jobs) job.reject(reason)
    if (io_error) this.#onFatal(error)
  }

  #settings(connection: Connection): Record<string, string | number> {
    return {
      sqlite_version: connection.value('select sqlite_version()'),
      journal_mode: connection.value('pragma journal_mode'),
      synchronous: connection.value('pragma synchronous'),
      foreign_keys: connection.value('pragma foreign_keys'),
      ...(this.#in_memory ? {} : { file_system: statfsSync(dirname(this.#path)).type }),
    }
  }

  durability(): Record<string, string | number> {
    return this.#settings(this.#writer)
  }

  onStatement(listener: ((name: string) => void) | null): void {
    for (const connection of [this.#writer, this.#reader, this.#snapshot]) connection.listener = listener
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    while (this.#flushing) await this.#flushing
    await this.#reads
    if (!this.#in_memory) {
      this.#snapshot.close()
      this.#reader.close()
      this.#writer.exec('pragma wal_checkpoint(truncate)')
    }
    this.#writer.close()
    this.#lock?.close()
  }
}

function settle(job: Job, outcome: Outcome): void {
  if (!outcome.ok) {
    job.reject(outcome.error)
    return
  }
  if (outcome.effects) runEffects(outcome.effects)
  job.resolve(outcome.value)
}

/** The transaction as a whole cannot go on after these. */
function fatal(error: unknown): boolean {
  return isIoError(error) || (error instanceof DbError && error.kind === 'full')
}

/** One SQLite connection with each statement prepared once. */
class Connection implements Reader {
  readonly #db: Database
  readonly #prepared = new Map<Statement<unknown>, Prepared>()
  readonly #plain = new Map<string, Prepared>()
  listener: ((name: string) => void) | null = null

  constructor(path: string) {
    this.#db = new Database(path, { create: true })
    this.#db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0)
    for (const pragma of sqlite_pragmas) this.#db.run(pragma)
  }

  one<Row>(statement: Statement<Row>, params: Params): Row | null {
    try {
      return (this.#prepare(statement).get(...bind(statement, params)) as Row | undefined) ?? null
    } catch (error) {
      throw translate('sqlite', error)
    }
  }

  all<Row>(statement: Statement<Row>, params: Params): Row[] {
    try {
      return this.#prepare(statement).all(...bind(statement, params)) as Row[]
    } catch (error) {
      throw translate('sqlite', error)
    }
  }

  run(statement: Statement, params: Params): number {
    try {
      return this.#prepare(statement).run(...bind(statement, params)).changes
    } catch (error) {
      throw translate('sqlite', error)
    }
  }

  #prepare(statement: Statement<unknown>): Prepared {
    this.listener?.(statement.name)
    let prepared = this.#prepared.get(statement)
    if (!prepared) {
      prepared = this.#db.prepare(sqliteText(statement.text))
      this.#prepared.set(statement, prepared)
    }
    return prepared
  }

  /** Transaction control and pragmas. */
  exec(text: string): void {
    let prepared = this.#plain.get(text)
    if (!prepared) {
      prepared = this.#db.prepare(text)
      this.#plain.set(text, prepared)
    }
    prepared.run()
  }

  value(text: string): string | number {
    const prepared = this.#db.prepare(text)
    const [row] = prepared.values()
    prepared.finalize() // an open statement would keep the connection, and with it the WAL, past close
    return row![0] as string | number
  }

  /** After a failure SQLite may have rolled back by itself; versions differ in when they do. */
  rollback(): void {
    if (this.#db.inTransaction) this.#db.run('rollback')
  }

  close(): void {
    for (const prepared of [...this.#prepared.values(), ...this.#plain.values()]) prepared.finalize()
    this.#db.close()
  }
}

class SqliteTx implements Tx {
  effects: (() => void)[] | null = null
  wrote = false
  finished = false

  constructor(
    private readonly connection: Connection,
    readonly now: Millis,
  ) {}

  one<Row>(statement: Statement<Row>, params: Params): Row | null {
    this.#mustBeOpen(statement)
    const row = this.connection.one(statement, params)
    if (statement.writes && row !== null) this.wrote = true
    return row
  }

  all<Row>(statement: Statement<Row>, params: Params): Row[] {
    this.#mustBeOpen(statement)
    const rows = this.connection.all(statement, params)
    if (statement.writes && rows.length > 0) this.wrote = true
    return rows
  }

  run(statement: Statement, params: Params): number {
    this.#mustBeOpen(statement)
    const changed = this.connection.run(statement, params)
    if (changed > 0) this.wrote = true
    return changed
  }

  afterCommit(effect: () => void): void {
    this.effects ??= []
    this.effects.push(effect)
  }

  #mustBeOpen(statement: Statement<unknown>): void {
    if (this.finished) throw new Error(`${statement.name} on a finished transaction`)
  }
}
