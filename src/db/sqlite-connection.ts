// One connection to a SQLite file.

import { constants, Database, type Statement as Prepared } from 'bun:sqlite'
import { limit } from '../base/limit.ts'
import { bind, type Params, type Reader, type Statement, type Value } from './db.ts'
import { sqlite_pragmas, sqliteText } from './dialect.ts'
import { DbError, translate } from './errors.ts'

const checkpoint_characters = limit(
  'sqlite.checkpoint_characters',
  2_097_152,
  'characters',
  'Characters of large texts after which the log is checkpointed before it is full: no turn of the event loop has to move more of them.',
)
/** A text of several pages. */
const large_text_characters = 16_384

/** Each statement is prepared once. */
export class Connection implements Reader {
  readonly #db: Database
  readonly #prepared = new Map<Statement<unknown>, Prepared>()
  readonly #plain = new Map<string, Prepared>()
  listener: ((name: string) => void) | null = null
  onDamaged: (error: unknown) => void = () => {}
  /** Characters of large texts given to statements since the last checkpoint. */
  #large_characters = 0

  constructor(path: string) {
    this.#db = new Database(path, { create: true })
    this.#db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0)
    for (const pragma of sqlite_pragmas) this.#db.run(pragma)
  }

  one<Row>(statement: Statement<Row>, params: Params): Row | null {
    try {
      return (this.#prepare(statement).get(...this.#values(statement, params)) as Row | undefined) ?? null
    } catch (error) {
      throw this.#translated(error)
    }
  }

  all<Row>(statement: Statement<Row>, params: Params): Row[] {
    try {
      return this.#prepare(statement).all(...this.#values(statement, params)) as Row[]
    } catch (error) {
      throw this.#translated(error)
    }
  }

  run(statement: Statement, params: Params): number {
    try {
      return this.#prepare(statement).run(...this.#values(statement, params)).changes
    } catch (error) {
      throw this.#translated(error)
    }
  }

  #values(statement: Statement<unknown>, params: Params): Value[] {
    const values = bind(statement, params)
    for (let i = 0; i < values.length; i++) {
      const value = values[i]
      if (typeof value === 'string' && value.length >= large_text_characters)
        this.#large_characters += value.length
    }
    return values
  }

  #translated(error: unknown): unknown {
    const known = translate('sqlite', error)
    if (known instanceof DbError && known.kind === 'damaged') this.onDamaged(error)
    return known
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

  /** True when large texts have filled much of the log. */
  get needs_checkpoint(): boolean {
    return this.#large_characters >= checkpoint_characters
  }

  /** Moves what no reader keeps from the log into the file. */
  checkpoint(): void {
    this.#large_characters = 0
    this.exec('pragma wal_checkpoint(passive)')
  }

  value(text: string): string | number {
    return this.values(text)[0]!
  }

  /** The first column. */
  values(text: string): (string | number)[] {
    const prepared = this.#db.prepare(text)
    try {
      return prepared.values().map((row) => row[0] as string | number)
    } finally {
      prepared.finalize() // an open statement would keep the connection, and with it the WAL, past close
    }
  }

  /** After a failure SQLite may have rolled back by itself; versions differ in when they do. */
  rollback(): void {
    if (this.#db.inTransaction) this.exec('rollback')
  }

  close(): void {
    for (const prepared of [...this.#prepared.values(), ...this.#plain.values()]) prepared.finalize()
    this.#db.close()
  }
}

/**
 * Taking and releasing SQLite's read lock is half the cost of a small read, so the reads of one turn of the event loop
 * share it. A commit first ends the turn: what is acknowledged is seen by every read that begins after it, and
 * the log can be checkpointed.
 */
export class TurnConnection extends Connection {
  #reading = false

  /** `atEndOfTurn` calls its argument once this turn of the event loop is over. */
  constructor(
    path: string,
    private readonly atEndOfTurn: (end: () => void) => void,
  ) {
    super(path)
  }

  override one<Row>(statement: Statement<Row>, params: Params): Row | null {
    this.#begin()
    return super.one(statement, params)
  }

  override all<Row>(statement: Statement<Row>, params: Params): Row[] {
    this.#begin()
    return super.all(statement, params)
  }

  endTurn(): void {
    if (!this.#reading) return
    this.#reading = false
    this.rollback()
  }

  #begin(): void {
    if (this.#reading) return
    this.exec('begin')
    this.#reading = true
    this.atEndOfTurn(() => this.endTurn())
  }
}
