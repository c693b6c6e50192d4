// Statements on a connection of PostgreSQL, and the transaction that handlers see.

import type { Millis } from '../base/clock.ts'
import type { Place } from '../base/fair-rows.ts'
import { boundText } from './bound.ts'
import {
  bind,
  type ChangeListener,
  type Origin,
  type Params,
  type Reader,
  type Statement,
  type StoredCounter,
  type Tx,
} from './db.ts'
import { type PostgresDialect, postgresText } from './dialect.ts'
import { DbError, isLost, translate } from './errors.ts'
import type { DbMeasures } from './measures.ts'
import type { Changes, StoredBytes } from './stored.ts'

/** The common part of the pool and of a transaction's connection. */
export interface Runner {
  unsafe(text: string, values: unknown[]): PromiseLike<unknown>
}

/** The listener that every statement calls with its name, and the count of the server's answers. */
export interface Traffic extends ChangeListener {
  listener: ((name: string) => void) | null
  /** How statements are worded for this database. */
  dialect: PostgresDialect
  /** True when row-level security binds the role, or may soon: each statement carries its tenant. */
  bound: boolean
  /** Row-level security applies in every table. */
  secured: boolean
  /** The number of answers of the server. */
  answers: number
  measures?: DbMeasures | undefined
}

/** A statement or transaction from its arrival to its end. */
export interface Call {
  /** Null while it is part of a batch. */
  place: Place | null
  /** True when no caller waits for it any more. */
  abandoned: boolean
  /** COMMIT was sent. */
  committing: boolean
}

export const silent = 'the database does not answer'

export function abandoned(): DbError {
  return new DbError('lost', silent)
}

export class Queries implements Reader {
  constructor(
    private readonly runner: Runner,
    protected readonly traffic: Traffic,
  ) {}

  async one<Row>(statement: Statement<Row>, params: Params): Promise<Row | null> {
    const [row] = await this.all(statement, params)
    return row ?? null
  }

  async all<Row>(statement: Statement<Row>, params: Params): Promise<Row[]> {
    const rows = (await this.query(statement, params)) as Record<string, unknown>[]
    for (const row of rows) numbersOf(row)
    return rows as Row[]
  }

  protected async query(statement: Statement<unknown>, params: Params): Promise<unknown> {
    this.traffic.listener?.(statement.name)
    const { dialect } = this.traffic
    const worded = dialect === 'citus' ? (statement.distributed ?? statement) : statement
    try {
      const answer = await this.runner.unsafe(textOf(worded, this.traffic), bind(worded, params))
      this.traffic.answers += 1
      return answer
    } catch (error) {
      const known = translate('postgres', error)
      if (!isLost(known)) this.traffic.answers += 1
      throw known
    }
  }
}

type Texts = WeakMap<Statement<unknown>, string>
const texts: Record<PostgresDialect, Texts> = { postgres: new WeakMap(), citus: new WeakMap() }
const bound_texts: typeof texts = { postgres: new WeakMap(), citus: new WeakMap() }

function textOf(statement: Statement<unknown>, { dialect, bound }: Traffic): string {
  const known = (bound ? bound_texts : texts)[dialect]
  let text = known.get(statement)
  if (text === undefined) {
    text = bound ? boundText(statement, dialect) : postgresText(statement.text, dialect)
    known.set(statement, text)
  }
  return text
}

/** Every integer column is bigint in PostgreSQL and stays below 2^53. */
function numbersOf(row: Record<string, unknown>): void {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = Number(value)
  }
}

export class PostgresTx extends Queries implements Tx {
  finished = false
  origin: Origin | null = null
  readonly disk_full = false
  readonly beside: number = 0

  constructor(
    connection: Runner,
    traffic: Traffic,
    protected readonly call: Call,
    readonly now: Millis,
    readonly effects: (() => void)[],
    private readonly known: StoredBytes,
    /** Of the whole transaction. */
    protected readonly changes: Changes,
  ) {
    super(connection, traffic)
  }

  async run(statement: Statement, params: Params): Promise<number> {
    return ((await this.query(statement, params)) as { count: number }).count
  }

  afterCommit(effect: () => void): void {
    this.effects.push(effect)
  }

  changed(key: string): void {
    this.afterCommit(() => this.traffic.changed(key))
  }

  stores(tenant_id: string, bytes: number): void {
    this.changes.add(tenant_id, bytes)
  }

  stored(tenant_id: string, counted: StoredCounter): number {
    return this.known.of(tenant_id, counted) + this.changes.of(tenant_id)
  }

  protected override async query(statement: Statement<unknown>, params: Params): Promise<unknown> {
    if (this.finished) throw new Error(`${statement.name} on a finished transaction`)
    if (this.call.abandoned) throw abandoned()
    return super.query(statement, params)
  }
}

/** Lets the statements of a turn run as long as the turn may. */
export async function allowTime(connection: Runner, ms_max: number | null): Promise<void> {
  await connection.unsafe(`set local statement_timeout = ${ms_max ?? 0}`, [])
}

/** The size of the whole database. */
export async function databaseBytes(connection: Runner): Promise<number> {
  const rows = await connection.unsafe('select pg_database_size(current_database())::text as bytes', [])
  return Number((rows as { bytes: string }[])[0]!.bytes)
}
