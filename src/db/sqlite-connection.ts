// One connection to a SQLite file.

import { constants, Database, type Statement as Prepared } from 'bun:sqlite'
import { sqlite_pragmas } from './connection-settings.ts'
import { type Awaitable, bind, type Params, type Reader, type Statement } from './db.ts'
import { sqliteTextOf } from './dialect.ts'
import { DbError, translate } from './errors.ts'

/** Each statement is prepared once. */
export class Connection implements Reader {
  readonly #db: Database
  readonly #statements = new Map<Statement<unknown>, Prepared>()
  readonly #plain = new Map<string, Prepared>()
  listener: ((name: string) => void) | null = null
  onDamaged: (error: unknown) => void = () => {}

  constructor(path: string) {
    this.#db = new Database(path, { create: true })
    this.#db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0)
    for (const pragma of sqlite_pragmas) this.#db.run(pragma)
  }

  one<Row>(statement: Statement<Row>, params: Params): Row | null {
    try {
      const prepared = this.#prepare(statement)
      const { read_back } = statement
      if (!read_back) return (prepared.get(...bind(statement, params)) as Row | undefined) ?? null
      const { changes } = prepared.run(...bind(statement, params))
      return changes === 0 ? null : (this.#prepared(read_back).get(...bind(read_back, params)) as Row)
    } catch (error) {
      throw this.#translated(error)
    }
  }

  all<Row>(statement: Statement<Row>, params: Params): Row[] {
    try {
      return this.#prepare(statement).all(...bind(statement, params)) as Row[]
    } catch (error) {
      throw this.#translated(error)
    }
  }

  run(statement: Statement, params: Params): number {
    try {
      return this.#prepare(statement).run(...bind(statement, params)).changes
    } catch (error) {
      throw this.#translated(error)
    }
  }

  #translated(error: unknown): unknown {
    const known = translate('sqlite', error)
    if (known instanceof DbError && known.kind === 'damaged') this.onDamaged(error)
    return known
  }

  #prepare(statement: Statement<unknown>): Prepared {
    this.listener?.(statement.name)
    return this.#prepared(statement)
  }

  #prepared(statement: Statement<unknown>): Prepared {
    let prepared = this.#statements.get(statement)
    if (!prepared) {
      prepared = this.#db.prepare(sqliteTextOf(statement))
      this.#statements.set(statement, prepared)
    }
    return prepared
  }

  /** Transaction control and pragmas. */
  exec(text: string): void {
    this.#plainly(text).run()
  }

  /** Begins a transaction that writes; false while another process has the lock of writers. */
  beginWrite(): boolean {
    try {
      this.exec('begin immediate')
      return true
    } catch (error) {
      if ((translate('sqlite', error) as DbError).kind !== 'busy') throw error
      return false
    }
  }

  /** From now on a lock that another process has is told at once, instead of after a wait in which the event loop stands still. */
  waitForNoLock(): void {
    this.exec('pragma busy_timeout = 0')
  }

  /**
   * For the last connection: all of the log gets into the file. Without room it stays a log, which the next start has. `judged`: gives
   * the error as that of a disk without room when it is one.
   */
  copyLog(judged: (error: unknown) => unknown): void {
    try {
      this.exec('pragma wal_checkpoint(truncate)')
    } catch (error) {
      if ((translate('sqlite', judged(error)) as DbError).kind !== 'full') throw error
    }
  }

  #plainly(text: string): Prepared {
    let prepared = this.#plain.get(text)
    if (!prepared) {
      prepared = this.#db.prepare(text)
      this.#plain.set(text, prepared)
    }
    return prepared
  }

  /** Moves what no reader keeps from the log into the file. */
  checkpoint(): void {
    this.exec('pragma wal_checkpoint(passive)')
  }

  /** The size of the log. Not within a transaction. */
  logPages(): number {
    return Number(this.#plainly('pragma wal_checkpoint(noop)').values()[0]![1])
  }

  value(text: string): string | number {
    return this.values(text)[0]!
  }

  /** The first column. */
  values(text: string): (string | number)[] {
    // An open statement would keep the connection, and with it the WAL, past close.
    using prepared = this.#db.prepare(text)
    return prepared.values().map((row) => row[0] as string | number)
  }

  get in_transaction(): boolean {
    return this.#db.inTransaction
  }

  /** After a failure SQLite may have rolled back by itself; versions differ in when they do. */
  rollback(): void {
    if (this.#db.inTransaction) this.exec('rollback')
  }

  close(): void {
    for (const prepared of [...this.#statements.values(), ...this.#plain.values()]) prepared.finalize()
    this.#db.close()
  }
}

/** KiB. SQLite empties the cache of a reader at each commit of the writer: a larger one would hold memory and little else. */
const reader_cache = 'pragma cache_size = -4096'

/**
 * Taking and releasing SQLite's read lock is half the cost of a small read, so the reads of one turn of the event loop
 * share it, and with it one state of the database. `keep` holds that state for longer.
 */
export class SnapshotConnection extends Connection {
  #reading = false
  #kept = false
  /** SQLite takes its snapshot at the first read, not at `begin`. */
  #pinned = false
  /** Reads of several statements that are under way. */
  #held = 0
  #stopped: Error | null = null
  #idle: PromiseWithResolvers<void> | null = null

  constructor(path: string) {
    super(path)
    this.exec(reader_cache)
  }

  override one<Row>(statement: Statement<Row>, params: Params): Row | null {
    if (!this.#reading) this.#beginTurn()
    return super.one(statement, params)
  }

  override all<Row>(statement: Statement<Row>, params: Params): Row[] {
    if (!this.#reading) this.#beginTurn()
    return super.all(statement, params)
  }

  /** True while a read of several statements is under way. */
  get held(): boolean {
    return this.#held > 0
  }

  /**
   * Several statements that see one state: the one that holds now, however late the first of them is. A later one could
   * be a commit that is not on the disk.
   */
  async hold<T>(work: (q: Reader) => Awaitable<T>): Promise<T> {
    this.#held += 1
    try {
      if (!this.#reading) this.#beginTurn()
      this.#pin()
      return await work(this)
    } finally {
      this.#held -= 1
      if (!this.#kept) this.#end()
      if (this.#held === 0) {
        this.#idle?.resolve()
        this.#idle = null
      }
    }
  }

  /** Resolves when no read of several statements is under way. */
  idle(): Promise<void> {
    if (this.#held === 0) return Promise.resolve()
    this.#idle ??= Promise.withResolvers()
    return this.#idle.promise
  }

  /** From now until `release` every read sees the state that holds now, or that the reads of this turn have begun to see. */
  keep(): void {
    if (!this.#reading) this.#begin()
    try {
      this.#pin()
      this.#kept = true
    } catch (error) {
      this.#end()
      throw error
    }
  }

  /** Reads that begin after this see the last commit; those under way finish first. */
  release(): void {
    this.#kept = false
    this.#end()
  }

  /** From now on a read that would see a later state fails with this. */
  stop(reason: Error): void {
    this.#stopped = reason
  }

  #beginTurn(): void {
    this.#begin()
    setImmediate(() => {
      if (!this.#kept) this.#end()
    })
  }

  /** Not left to the first read of this turn: it may have failed, or be still to come. */
  #pin(): void {
    if (this.#pinned) return
    this.exec('pragma user_version')
    this.#pinned = true
  }

  #begin(): void {
    if (this.#stopped) throw this.#stopped
    this.exec('begin')
    this.#reading = true
  }

  #end(): void {
    if (!this.#reading || this.#held > 0) return
    this.#reading = false
    this.#pinned = false
    this.rollback()
  }
}
