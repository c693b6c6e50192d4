// PostgreSQL driver on Bun.SQL: a pool, READ COMMITTED, one transaction per write. One small file on purpose:
// postgres.js could replace it.

import { SQL } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'
import {
  type Awaitable,
  bind,
  type Db,
  DbError,
  type Params,
  type Reader,
  runEffects,
  type Statement,
  type Trouble,
  type Tx,
} from './db.ts'
import {
  isRetryable,
  olderThan,
  postgres_session,
  postgresText,
  translate,
  unsafePostgres,
} from './dialect.ts'
import { type Changes, LateCount, StoredBytes } from './stored.ts'

/** Bun.SQL before this mixed up prepared statements and transactions (oven-sh/bun 30494, 32004, 33985). */
const bun_least = '1.4.5'
const tries_max = 4
/** Past this many statements and transactions under way new ones are refused as busy. */
const under_way_max = 2_000
const connect_timeout_seconds = 2
/** Tenants whose stored bytes one transaction writes. */
const counted_together_max = 100
const close_timeout_seconds = 1
/** A server that does not answer at all: its own time-outs (dialect.ts) are shorter. */
const silence_ms_max = 7_000

export interface PostgresOptions {
  clock: Clock
  /** Whether now is the database's, so that nodes whose clocks disagree agree. Tests move a clock of their own. */
  database_time?: boolean
  /** Connections in the pool. */
  connections_max?: number
}

/** Opens a pool. Throws on an unsafe set-up or when the server cannot be reached. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Db> {
  if (olderThan(Bun.version, bun_least)) {
    throw new Error(`PostgreSQL needs Bun ${bun_least} or newer; this is ${Bun.version}`)
  }
  const db = new PostgresDb(url, options)
  try {
    const unsafe = unsafePostgres(await db.durability())
    if (unsafe) throw new Error(`refusing to serve from this PostgreSQL: ${unsafe}`)
    await db.begin()
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

/** What the pool and a transaction's connection have in common. */
interface Runner {
  unsafe(text: string, values: unknown[]): PromiseLike<unknown>
}

type Listener = { call: ((name: string) => void) | null }

class PostgresDb implements Db {
  readonly engine = 'postgres'
  readonly #pool: SQL
  readonly clock: Clock
  readonly #database_clock: DatabaseClock | null
  readonly #listener: Listener = { call: null }
  readonly #queries: Queries
  readonly #stored: StoredBytes
  #under_way = 0

  constructor(url: string, { clock, connections_max = 10, database_time = false }: PostgresOptions) {
    this.#pool = new SQL({
      url,
      max: connections_max,
      bigint: true,
      connectionTimeout: connect_timeout_seconds,
      connection: postgres_session,
    })
    this.#queries = new Queries(this.#pool, this.#listener)
    this.#database_clock = database_time ? new DatabaseClock(this.#pool, clock) : null
    this.clock = this.#database_clock ?? clock
    this.#stored = new StoredBytes(clock)
  }

  /** Asks the time for the first time. */
  async begin(): Promise<void> {
    await this.#database_clock?.begin()
  }

  one<Row>(statement: Statement<Row>, params: Params): Promise<Row | null> {
    return this.#guarded(() => this.#queries.one(statement, params))
  }

  all<Row>(statement: Statement<Row>, params: Params): Promise<Row[]> {
    return this.#guarded(() => this.#queries.all(statement, params))
  }

  read<T>(work: (q: Reader) => Awaitable<T>): Promise<T> {
    return this.#guarded(() =>
      this.#pool.begin('isolation level repeatable read read only', (connection) =>
        Promise.resolve(work(new Queries(connection, this.#listener))),
      ),
    )
  }

  write<T>(work: (tx: Tx) => Awaitable<T>): Promise<T> {
    return this.#write(work, null)
  }

  /** `waiting`: tenants whose stored bytes are written whatever they are. */
  #write<T>(work: (tx: Tx) => Awaitable<T>, waiting: readonly string[] | null): Promise<T> {
    return this.#guarded(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await this.#transaction(work, waiting)
        } catch (error) {
          if (tries === tries_max || !isRetryable(error)) throw error
        }
      }
    }, 'outcome_unknown')
  }

  async #transaction<T>(work: (tx: Tx) => Awaitable<T>, waiting: readonly string[] | null): Promise<T> {
    const now = this.clock.now()
    const effects: (() => void)[] = []
    const count = new LateCount(this.#stored)
    let committing = false
    try {
      const value = await this.#pool.begin(async (connection) => {
        const tx = new PostgresTx(connection, this.#listener, now, effects, this.#stored, count.changes)
        try {
          const done = await work(tx)
          await (waiting ? count.writeWaiting(tx, waiting) : count.write(tx))
          committing = true
          return done
        } finally {
          tx.finished = true
        }
      })
      count.committed()
      runEffects(effects)
      return value as T
    } catch (error) {
      // Lost while the work ran: the server rolls back. Lost after it: COMMIT may or may not have arrived.
      const known = translate('postgres', error)
      const unknown = committing && known instanceof DbError && known.kind === 'lost'
      count.failed(unknown)
      if (unknown) {
        throw new DbError('outcome_unknown', (known as DbError).message, { cause: error })
      }
      throw error
    }
  }

  unwrittenBytes(tenant_id: string): number {
    return this.#stored.unwritten(tenant_id)
  }

  /** The server watches over its own disk. */
  trouble(): Trouble | null {
    return null
  }

  async faults(): Promise<string[]> {
    throw new Error('PostgreSQL is checked with its own tools: pg_amcheck, and data checksums')
  }

  async maintain(): Promise<void> {
    const waiting = this.#stored.waiting()
    for (let at = 0; at < waiting.length; at += counted_together_max)
      await this.#write(() => {}, waiting.slice(at, at + counted_together_max))
  }

  /** `expiry`: what it means that no answer came at all. */
  async #guarded<T>(action: () => Promise<T>, expiry: 'lost' | 'outcome_unknown' = 'lost'): Promise<T> {
    if (this.#under_way >= under_way_max) throw new DbError('busy', 'too many statements are under way')
    this.#under_way += 1
    let timer: Timer | undefined
    const silence = new Promise<never>((_, reject) => {
      const message = 'the database does not answer'
      timer = setTimeout(() => reject(new DbError(expiry, message)), silence_ms_max)
    })
    const acting = action().finally(() => {
      this.#under_way -= 1
    })
    try {
      return await Promise.race([acting, silence])
    } catch (error) {
      throw translate('postgres', error)
    } finally {
      clearTimeout(timer)
      acting.catch(() => {})
    }
  }

  durability(): Promise<Record<string, string | number>> {
    return this.#guarded(() => this.#settings())
  }

  async #settings(): Promise<Record<string, string | number>> {
    const rows = (await this.#pool.unsafe(
      `select name, setting from pg_settings
        where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'server_encoding', 'server_version')
       union all
       select 'collation_c', count(*)::text from pg_collation where collname = 'C'`,
    )) as { name: string; setting: string }[]
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  }

  onStatement(listener: ((name: string) => void) | null): void {
    this.#listener.call = listener
  }

  async close(): Promise<void> {
    this.#database_clock?.stop()
    await this.#pool.close({ timeout: close_timeout_seconds })
  }
}

const sync_ms = 30_000
/** A slower answer says less of the time than the one before it. */
const round_trip_ms_max = 250

/** The server's clock, carried on between two questions by a clock that never jumps. */
class DatabaseClock implements Clock {
  readonly #pool: SQL
  readonly #local: Clock
  #server_ms = 0
  #asked_at = 0
  #timer: Timer | undefined

  constructor(pool: SQL, local: Clock) {
    this.#pool = pool
    this.#local = local
  }

  now(): Millis {
    return Math.floor(this.#server_ms + this.#local.monotonic() - this.#asked_at)
  }

  monotonic(): number {
    return this.#local.monotonic()
  }

  async begin(): Promise<void> {
    await this.#ask(Number.POSITIVE_INFINITY)
    this.#timer = setInterval(() => this.#ask(round_trip_ms_max).catch(() => {}), sync_ms) // away: the last answer serves
  }

  /** Keeps an answer that came within this time: the server's clock was read somewhere in between. */
  async #ask(within_ms: number): Promise<void> {
    const before = this.#local.monotonic()
    const [row] = (await this.#pool.unsafe(
      'select extract(epoch from clock_timestamp())::float8 as now',
    )) as {
      now: number
    }[]
    const after = this.#local.monotonic()
    if (after - before > within_ms) return
    this.#server_ms = row!.now * 1_000
    this.#asked_at = (before + after) / 2
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

class Queries implements Reader {
  constructor(
    private readonly runner: Runner,
    private readonly listener: Listener,
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
    this.listener.call?.(statement.name)
    try {
      return await this.runner.unsafe(textOf(statement), bind(statement, params))
    } catch (error) {
      throw translate('postgres', error)
    }
  }
}

const texts = new WeakMap<Statement<unknown>, string>()

function textOf(statement: Statement<unknown>): string {
  let text = texts.get(statement)
  if (text === undefined) {
    text = postgresText(statement.text)
    texts.set(statement, text)
  }
  return text
}

/** Every integer of ours is bigint in PostgreSQL and stays below 2^53. */
function numbersOf(row: Record<string, unknown>): void {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = Number(value)
  }
}

class PostgresTx extends Queries implements Tx {
  finished = false
  readonly disk_full = false

  constructor(
    connection: Runner,
    listener: Listener,
    readonly now: Millis,
    private readonly effects: (() => void)[],
    private readonly known: StoredBytes,
    private readonly changes: Changes,
  ) {
    super(connection, listener)
  }

  async run(statement: Statement, params: Params): Promise<number> {
    return ((await this.query(statement, params)) as { count: number }).count
  }

  afterCommit(effect: () => void): void {
    this.effects.push(effect)
  }

  stores(tenant_id: string, bytes: number): void {
    this.changes.add(tenant_id, bytes)
  }

  stored(tenant_id: string, told: number): number {
    return this.known.used(tenant_id, told) + this.changes.of(tenant_id)
  }

  protected override async query(statement: Statement<unknown>, params: Params): Promise<unknown> {
    if (this.finished) throw new Error(`${statement.name} on a finished transaction`)
    return super.query(statement, params)
  }
}
