// The transaction that one write of a SQLite commit works with.

import type { Millis } from '../base/clock.ts'
import type { ChangeListener, Origin, Params, Statement, StoredCounter, Tx } from './db.ts'
import type { Connection } from './sqlite-connection.ts'
import { Changes, type StoredBytes } from './stored.ts'

/** Counted for each row that a statement changes besides its first: about a page of the log. */
const row_bytes = 4_096

const changes_rows = /^\s*(insert|update|delete)\b/i

export class SqliteTx implements Tx {
  effects: (() => void)[] | null = null
  origin: Origin | null = null
  wrote = false
  /** A statement was run that writes and changes no rows, such as one that creates a table. */
  changed_tables = false
  finished = false
  /** About how many bytes its statements write: the characters of their texts, and the rows that one changes with others. */
  bytes = 0
  /** Made when it is needed: most writes of a busy service change no length. */
  changes: Changes | null = null

  /** `before`: what the jobs before this one in the same commit change. */
  constructor(
    private readonly connection: Connection,
    readonly now: Millis,
    readonly disk_full: boolean,
    private readonly known: StoredBytes,
    private readonly before: Changes,
    private readonly listener: ChangeListener,
  ) {}

  /** Jobs of a commit run one after the other. */
  get beside(): number {
    return 0
  }

  one<Row>(statement: Statement<Row>, params: Params): Row | null {
    this.#begin(statement, params)
    try {
      const row = this.connection.one(statement, params)
      if (statement.writes && row !== null) this.wrote = true
      return row
    } catch (error) {
      if (statement.read_back) this.wrote = true // it may have been written, and not found again
      throw error
    }
  }

  all<Row>(statement: Statement<Row>, params: Params): Row[] {
    if (statement.read_back) {
      const row = this.one(statement, params)
      return row === null ? [] : [row]
    }
    this.#begin(statement, params)
    const rows = this.connection.all(statement, params)
    if (statement.writes && rows.length > 0) this.#wrote(rows.length)
    return rows
  }

  run(statement: Statement, params: Params): number {
    this.#begin(statement, params)
    const changed = this.connection.run(statement, params)
    if (changed > 0) this.#wrote(changed)
    else if (!changes_rows.test(statement.text)) this.changed_tables = true
    return changed
  }

  afterCommit(effect: () => void): void {
    this.effects ??= []
    this.effects.push(effect)
  }

  changed(key: string): void {
    this.afterCommit(() => this.listener.changed(key))
  }

  stores(tenant_id: string, bytes: number): void {
    if (bytes === 0) return
    this.changes ??= new Changes()
    this.changes.add(tenant_id, bytes)
  }

  stored(tenant_id: string, counted: StoredCounter): number {
    return this.known.of(tenant_id, counted) + this.before.of(tenant_id) + (this.changes?.of(tenant_id) ?? 0)
  }

  #begin(statement: Statement<unknown>, params: Params): void {
    if (this.finished) throw new Error(`${statement.name} on a finished transaction`)
    if (statement.writes) this.#countBytes(statement, params)
  }

  #wrote(rows: number): void {
    this.wrote = true
    this.bytes += (rows - 1) * row_bytes
  }

  #countBytes({ params: names }: Statement<unknown>, params: Params): void {
    for (let i = 0; i < names.length; i++) {
      const value = params[names[i]!]
      if (typeof value === 'string') this.bytes += value.length
    }
  }
}
