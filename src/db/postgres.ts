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
  type Tx,
} from './db.ts'
import { isRetryable, olderThan, postgres_session, translate, unsafePostgres } from './dialect.ts'

/** Bun.SQL before this mixed up prepared statements and transactions (oven-sh/bun 30494, 32004, 33985). */
const bun_least = '1.4.5'
const tries_max = 4
/** Past this many statements and transactions under way new ones are refused as busy. */
const under_way_max = 2_000
const connect_timeout_seconds = 2
const close_timeout_seconds = 5

export interface PostgresOptions {
  clock: Clock
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
  readonly #clock: Clock
  readonly #listener: Listener = { call: null }
  readonly #queries: Queries
  #under_way = 0

  constructor(url: string, { clock, connections_max = 10 }: PostgresOptions) {
    this.#clock = clock
    this.#pool = new SQL({
      url,
      max: connections_max,
      bigint: true,
      connectionTimeout: connect_timeout_seconds,
      connection: postgres_session,
    })
    this.#queries = new Queries(this.#pool, this.#listener)
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
    return this.#guarded(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await this.#transaction(work)
        } catch (error) {
          if (tries === tries_max || !isRetryable(error)) throw error
        }
      }
    })
  }

  async #transaction<T>(work: (tx: Tx) => Awaitable<T>): Promise<T> {
    const now = this.#clock.now()
    const effects: (() => void)[] = []
    let committing = false
    try {
      const value = await this.#pool.begin(async (connection) => {
        const tx = new PostgresTx(connection, this.#listener, now, effects)
        try {
          const done = await work(tx)
          committing = true
          return done
        } finally {
          tx.finished = true
        }
      })
      runEffects(effects)
      return value as T
    } catch (error) {
      // Lost while the work ran: the server rolls back. Lost after it: COMMIT may or may not have arrived.
      const known = translate('postgres', error)
      if (committing && known instanceof DbError && known.kind === 'lost') {
        throw new DbError('outcome_unknown', known.message, { cause: error })
      }
      throw error
    }
  }

  async #guarded<T>(action: () => Promise<T>): Promise<T> {
    if (this.#under_way >= under_way_max) throw new DbError('busy', 'too many statements are under way')
    this.#under_way += 1
    try {
      return await action()
    } catch (error) {
      throw translate('postgres', error)
    } finally {
      this.#under_way -= 1
    }
  }

  async durability(): Promise<Record<string, string | number>> {
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
    await this.#pool.close({ timeout: close_timeout_seconds })
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
      return await this.runner.unsafe(statement.text, bind(statement, params))
    } catch (error) {
      throw translate('postgres', error)
    }
  }
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

  constructor(
    connection: Runner,
    listener: Listener,
    readonly now: Millis,
    private readonly effects: (() => void)[],
  ) {
    super(connection, listener)
  }

  async run(statement: Statement, params: Params): Promise<number> {
    return ((await this.query(statement, params)) as { count: number }).count
  }

  afterCommit(effect: () => void): void {
    this.effects.push(effect)
  }

  protected override async query(statement: Statement<unknown>, params: Params): Promise<unknown> {
    if (this.finished) throw new Error(`${statement.name} on a finished transaction`)
    return super.query(statement, params)
  }
}
