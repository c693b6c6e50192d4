// PostgreSQL driver on Bun.SQL: a pool, READ COMMITTED, one transaction per write.

import type { ReservedSQL, SQL } from 'bun'
import { type Clock, clockOf } from '../base/clock.ts'
import type { FairQueue } from '../base/fair.ts'
import { inTime } from '../base/in-time.ts'
import { limit } from '../base/limit.ts'
import { inBatches } from './backoff.ts'
import { answer_ms_max, connections_default, olderThan, type Settings } from './connection-settings.ts'
import {
  type Awaitable,
  type Db,
  isPatient,
  type Owner,
  type Params,
  type Reader,
  runEffects,
  type Statement,
  type StoredCounter,
  type Trouble,
  type Turn,
  type Tx,
  turnOf,
  turnOfStatement,
  upkeep,
} from './db.ts'
import { isDistributed } from './distributed.ts'
import { DbError, isRetryable, mayBeCommitted, namingServer, translate } from './errors.ts'
import { LateCount } from './late-count.ts'
import type { DbGauges } from './measures.ts'
import type { Member } from './postgres-batch.ts'
import { Batches } from './postgres-batches.ts'
import { DatabaseClock } from './postgres-clock.ts'
import { Complaints } from './postgres-complaints.ts'
import { passing_max as passing_default } from './postgres-lines.ts'
import { channel } from './postgres-listen.ts'
import type { PostgresOptions } from './postgres-options.ts'
import { Outages } from './postgres-outage.ts'
import { connectionQueue } from './postgres-permits.ts'
import { Pool } from './postgres-pool.ts'
import {
  abandoned,
  allowTime,
  type Call,
  databaseBytes,
  PostgresTx,
  Queries,
  silent,
  type Traffic,
} from './postgres-queries.ts'
import { ReadOnly } from './postgres-read-only.ts'
import {
  lostSetting,
  pooled_session,
  requireReady,
  requireSafe,
  settingsInstead,
  settingsOf,
  whole_session,
} from './postgres-session.ts'
import { watchSilence } from './postgres-silence.ts'
import { boundTables, isBoundAs } from './row-security.ts'
import { StoredBytes } from './stored.ts'

/** Bun.SQL before this mixed up prepared statements and transactions (oven-sh/bun 30494, 32004, 33985). */
const bun_least = '1.4.5'
const tries_max = limit(
  'postgres.tries',
  4,
  'attempts',
  'How often a transaction that PostgreSQL refused because of another one is tried. Past it 503.',
)
const readiness_ms_max = limit(
  'postgres.readiness_ms',
  1_500,
  'milliseconds',
  'Bounds how long /readyz waits for PostgreSQL before it says that the database does not answer.',
)
const start_ms_max = limit(
  'postgres.start_ms',
  10_000,
  'milliseconds',
  'Bounds how long a start waits for each of its first answers of PostgreSQL; past it the start fails.',
)
const counted_together_max = limit(
  'postgres.counted_tenants',
  20,
  'rows',
  'Tenants whose stored bytes one transaction writes.',
)
const close_timeout_seconds = 1

/** Opens a pool. Throws on an unsafe set-up or when the server cannot be reached. */
export async function openPostgres(url: string, options: PostgresOptions): Promise<Db> {
  if (olderThan(Bun.version, bun_least)) {
    throw new Error(`PostgreSQL needs Bun ${bun_least} or newer; this is ${Bun.version}`)
  }
  const db = new PostgresDb(url, options)
  try {
    return await usable(db)
  } catch (error) {
    await db.close()
    const session = settingsInstead(options.session ?? whole_session, error)
    if (session === pooled_session) return openPostgres(url, { ...options, session, role: undefined })
    if (session) return openPostgres(url, { ...options, session })
    throw namingServer(url, error)
  }
}

async function usable(db: PostgresDb): Promise<Db> {
  const settings = await db.settle()
  requireSafe(settings, await db.lostSetting())
  await db.begin()
  return db
}

function busy(): DbError {
  return new DbError('busy', 'no connection was free in time')
}

class PostgresDb implements Db {
  readonly engine = 'postgres'
  readonly #pool: Pool
  readonly #outages: Outages
  readonly #complaints: Complaints
  readonly #read_only: ReadOnly
  readonly clock: Clock
  readonly #database_clock: DatabaseClock | null
  readonly #traffic: Traffic = {
    ...{ listener: null, answers: 0, dialect: 'postgres' as const, bound: false, secured: false },
    changed() {},
  }
  #queries: Queries
  readonly #stored: StoredBytes
  readonly #queue: FairQueue
  readonly #batches: Batches
  /** Calls of requests that hold a connection. */
  #requests_running = 0
  /** Calls that have not ended. */
  #under_way = 0
  #onIdle: () => void = () => {}
  #maintained: Promise<void> = Promise.resolve()
  readonly #watch: Timer
  #closed = false
  #is_begun = false

  constructor(url: string, options: PostgresOptions) {
    const {
      clock,
      connections_max = connections_default,
      database_time = false,
      passing_max = passing_default,
      session = whole_session,
      role,
    } = options
    this.#traffic.measures = options.measures
    this.#traffic.bound = options.carries_tenant ?? false
    this.#pool = new Pool({ url, connections_max, session }, role)
    const { host } = new URL(url)
    this.#outages = new Outages(host, clock, this.#pool, options.server_listener)
    this.#complaints = new Complaints(host, clock, options.server_listener)
    this.#read_only = new ReadOnly(this.#pool, () => this.#useNew(() => this.#pool.replace()))
    this.#queries = new Queries(this.#pool.current, this.#traffic)
    this.#queue = connectionQueue(connections_max, clock)
    this.#database_clock = database_time
      ? new DatabaseClock((ask) => this.#guarded({ key: 'clock' }, () => ask(this.#pool.current)), clock)
      : null
    this.clock = clockOf(this.#database_clock ?? clock, options.movable)
    this.#stored = new StoredBytes(clock)
    const around = { clock: this.clock, traffic: this.#traffic, stored: this.#stored }
    this.#batches = new Batches(
      {
        around,
        connected: (key, action) => this.#connected(key, action),
        hasReady: () => this.#queue.hasReady,
        alone: (member) => this.#alone(member),
      },
      passing_max,
    )
    this.#watch = watchSilence(this.#traffic, {
      isAsked: () => this.#is_begun && !this.#closed && this.#requests_running > 0, // a start waits for longer
      onSilence: () => this.#useNew(() => this.#pool.renew()),
    })
  }

  async takeRole(role: string): Promise<boolean> {
    if (this.is_away) throw this.#outages.refusal()
    const judge = (sql: SQL) => isBoundAs(role, new Queries(sql, this.#traffic))
    return this.#pool.take(role, judge, () => {
      Object.assign(this.#traffic, { bound: true, secured: true }) // connections without the role take statements with their tenant as well
      this.#queries = new Queries(this.#pool.current, this.#traffic)
    })
  }

  /** Reads for the first time what the database says of itself: how its tables lie, and its time. */
  async begin(): Promise<void> {
    if (await isDistributed(this)) Object.assign(this.#traffic, { dialect: 'citus', bound: false }) // none is prepared there
    const { bound, secured } = await boundTables(this)
    Object.assign(this.#traffic, { bound: bound || this.#traffic.bound, secured })
    await this.#database_clock?.begin()
    this.#outages.start()
    this.#is_begun = true
  }

  get is_away(): boolean {
    return this.#outages.is_on
  }

  one<Row>(statement: Statement<Row>, params: Params): Promise<Row | null> {
    return this.#guarded(turnOfStatement(statement, params), () => this.#queries.one(statement, params))
  }

  all<Row>(statement: Statement<Row>, params: Params): Promise<Row[]> {
    return this.#guarded(turnOfStatement(statement, params), () => this.#queries.all(statement, params))
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), given?: (q: Reader) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#guarded(turn, () =>
      this.#pool.current.begin('isolation level repeatable read read only', async (connection) => {
        if (turn.ms_max !== undefined) await allowTime(connection, turn.ms_max)
        return work(new Queries(connection, this.#traffic))
      }),
    )
  }

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#batches.pass(turn, () => this.#write(turn, work, null)) ?? this.#batched(turn, work)
  }

  /** Waits for the next batch of its line. */
  #batched<T>(turn: Turn, work: (tx: Tx) => Awaitable<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const call: Call = { place: null, abandoned: false, committing: false }
    const member: Member = { turn, work, call, resolve: resolve as (value: unknown) => void, reject }
    if (this.#closed) return Promise.reject(new DbError('lost', 'the database is closed'))
    if ((!isPatient(turn) && this.#queue.isLate()) || !this.#batches.enter(member)) {
      return Promise.reject(new DbError('busy', 'too many writes are waiting'))
    }
    return this.#inTime(turn, promise, () => (this.#batches.leave(member) ? busy() : this.#abandon(call)))
  }

  /** A member of a batch, in a transaction of its own after all. */
  async #alone({ turn, work, call }: Member): Promise<unknown> {
    call.place = this.#queue.enter(turn.key, turn.row, turn.group, true)
    if (!call.place) throw new DbError('busy', 'too many statements are waiting')
    return this.#act(call, turn, () => this.#tried(call, turn, work, null))
  }

  async #connected<T>(key: string, action: (connection: ReservedSQL) => Promise<T>): Promise<T> {
    // Its members wait already, each no longer than its turn allows.
    const place = this.#queue.enter(key, undefined, undefined, true)
    if (!place) throw new DbError('busy', 'too many statements are waiting')
    return this.#act({ place, abandoned: false, committing: false }, { key }, async () => {
      const connection = await this.#pool.current.reserve()
      try {
        return await action(connection)
      } finally {
        await connection.release()
      }
    })
  }

  /** `waiting`: tenants whose stored bytes are written, however few. */
  #write<T>(turn: Turn, work: (tx: Tx) => Awaitable<T>, waiting: readonly string[] | null): Promise<T> {
    return this.#guarded(turn, (call) => this.#tried(call, turn, work, waiting))
  }

  async #tried<T>(
    call: Call,
    turn: Turn,
    work: (tx: Tx) => Awaitable<T>,
    waiting: readonly string[] | null,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transaction(call, turn, work, waiting)
      } catch (error) {
        if (tries === tries_max || call.abandoned || !isRetryable(error)) throw error
      }
    }
  }

  async #transaction<T>(
    call: Call,
    turn: Turn,
    work: (tx: Tx) => Awaitable<T>,
    waiting: readonly string[] | null,
  ): Promise<T> {
    const now = this.clock.now()
    const effects: (() => void)[] = []
    const count = new LateCount(this.#stored)
    call.committing = false
    const began = this.clock.monotonic()
    try {
      const value = await this.#pool.current.begin(async (connection) => {
        if (turn.ms_max !== undefined) await allowTime(connection, turn.ms_max)
        const tx = new PostgresTx(connection, this.#traffic, call, now, effects, this.#stored, count.changes)
        try {
          const done = await work(tx)
          await (waiting ? count.writeWaiting(tx, waiting) : count.write(tx))
          if (call.abandoned) throw abandoned()
          call.committing = true
          return done
        } catch (error) {
          count.rollBack()
          throw error
        } finally {
          tx.finished = true
        }
      })
      this.#traffic.answers += 1
      this.#traffic.measures?.committed(1, this.clock.monotonic() - began)
      count.committed()
      runEffects(effects)
      return value as T
    } catch (error) {
      // Lost while the work ran: the server rolls back. Lost after it: COMMIT may or may not have arrived.
      const unknown = call.committing && mayBeCommitted(this.#traffic.dialect, error)
      count.failed(unknown)
      if (unknown) throw new DbError('outcome_unknown', (error as Error).message, { cause: error })
      throw error
    }
  }

  storedBytes(tenant_id: string, counter: StoredCounter): number {
    return this.#stored.of(tenant_id, counter)
  }

  trouble(): Trouble | null {
    return this.#read_only.is_on ? { kind: 'read_only', reason: 'the database is read-only' } : null
  }

  async gauges(): Promise<DbGauges> {
    const turn = { key: 'metrics', ms_max: readiness_ms_max }
    const { running: in_use, free: idle, waiting } = this.#queue.counts
    return {
      ...{ disk: null, waiting: waiting + this.#batches.waiting, connections: { in_use, idle } },
      secured: this.#traffic.secured,
      bytes: await this.#guarded(turn, () => databaseBytes(this.#pool.current)).catch(() => null),
    }
  }

  async faults(): Promise<string[]> {
    throw new Error('PostgreSQL is checked with its own tools: pg_amcheck, and data checksums')
  }

  /** Counts that cannot be written keep waiting; the others are written, after those of the call before. Throws the first failure. */
  maintain(): Promise<void> {
    this.#maintained = this.#maintained.catch(() => {}).then(() => this.#writeWaiting())
    return this.#maintained
  }

  #writeWaiting(): Promise<void> {
    const together = this.#traffic.dialect === 'citus' ? 1 : counted_together_max
    return inBatches(this.#stored.waiting(), together, (tenant_ids) =>
      this.#write(upkeep, () => {}, tenant_ids),
    )
  }

  /** Waits for a connection, in fair order, and for the answer; together no longer than the turn allows. */
  async #guarded<T>(turn: Turn, action: (call: Call) => Promise<T>): Promise<T> {
    if (this.#closed) throw new DbError('lost', 'the database is closed')
    const place = this.#queue.enter(turn.key, turn.row, turn.group, isPatient(turn), turn.urgent)
    if (!place) throw new DbError('busy', 'too many statements are waiting')
    const call: Call = { place, abandoned: false, committing: false }
    return this.#inTime(turn, this.#act(call, turn, action), () => this.#abandon(call))
  }

  /** The time of a call, which is longer until the database has answered all that a start asks first. */
  #timeOf(usual_ms_max: number): number {
    return this.#is_begun ? usual_ms_max : start_ms_max
  }

  /** `late` gives the error for a caller whose time is over. */
  async #inTime<T>(turn: Turn, acting: Promise<T>, late: () => DbError): Promise<T> {
    const ms_max = turn.ms_max === undefined ? this.#timeOf(answer_ms_max) : turn.ms_max
    this.#under_way += 1
    try {
      return await (ms_max === null ? acting : inTime(acting, ms_max, late))
    } catch (error) {
      if (this.#is_begun && !this.is_away) this.#complaints.notice(error)
      throw translate('postgres', error)
    } finally {
      this.#under_way -= 1
      if (this.#under_way === 0) this.#onIdle()
    }
  }

  async #act<T>(call: Call, { ms_max }: Turn, action: (call: Call) => Promise<T>): Promise<T> {
    const place = call.place!
    if (place.turn) await place.turn
    const counted = ms_max === undefined ? 1 : 0
    this.#requests_running += counted
    const opened = this.#pool.enter()
    const outages = this.#outages.count
    try {
      if (this.#outages.is_on) throw this.#outages.refusal()
      return await action(call)
    } catch (error) {
      this.#outages.notice(error, outages)
      this.#read_only.notice(error)
      throw error
    } finally {
      this.#pool.leave(opened)
      this.#requests_running -= counted
      this.#queue.leave(place)
    }
  }

  /** The error for the caller. Unless COMMIT was sent, nothing was done, and nothing of it will be. */
  #abandon(call: Call): DbError {
    call.abandoned = true
    if (call.committing) return new DbError('outcome_unknown', silent)
    if (!call.place || call.place.running) return abandoned()
    this.#queue.leave(call.place)
    return busy()
  }

  #useNew(open: () => void): void {
    open()
    this.#queries = new Queries(this.#pool.current, this.#traffic)
  }

  /** Reads on a connection of its own how the server writes. The others, none of which is open yet, keep that. */
  settle(): Promise<Settings> {
    return this.#look(async () => {
      const settings = await this.#pool.aside(settingsOf)
      this.#read_only.judge(settings)
      this.#useNew(() => this.#pool.keep(settings))
      return settings
    })
  }

  durability(): Promise<Settings> {
    return this.#look(async () => {
      const settings = await settingsOf(this.#pool.current)
      this.#read_only.judge(settings)
      await requireReady(this.#pool.current, settings)
      return settings
    })
  }

  /** The reason that connections must not be used although they open; null when there is none. */
  lostSetting(): Promise<string | null> {
    return this.#look(() => lostSetting(this.#pool.current))
  }

  #look<T>(action: () => Promise<T>): Promise<T> {
    return this.#guarded({ key: 'readiness', ms_max: this.#timeOf(readiness_ms_max) }, action)
  }

  notify(text: string): Promise<void> {
    return this.#guarded({ key: 'signals', ms_max: answer_ms_max }, async () => {
      await this.#pool.current.unsafe('select pg_notify($1, $2)', [channel, text])
    })
  }

  onChange(listener: (key: string) => void): void {
    this.#traffic.changed = listener
  }

  onStatement(listener: ((name: string) => void) | null): void {
    this.#traffic.listener = listener
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#idle()
    clearInterval(this.#watch)
    this.#outages.stop()
    this.#read_only.close()
    this.#database_clock?.stop()
    await this.#pool.close(close_timeout_seconds)
  }

  /** Resolves when every call has ended, but within its time. */
  async #idle(): Promise<void> {
    if (this.#under_way === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onIdle = resolve
    const timer = setTimeout(resolve, close_timeout_seconds * 1_000)
    await promise
    clearTimeout(timer)
  }
}
