// SQLite driver with group commit: writes queue, and once per turn of the event loop the queue runs as one
// transaction with one COMMIT, which is one fsync. Only then are the callers answered. That makes a durable write
// cost little more than a relaxed one.

import type { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, realpathSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import {
  type Awaitable,
  type Db,
  type Owner,
  type Params,
  type Reader,
  runEffects,
  type Statement,
  type StoredCounter,
  service,
  type Trouble,
  type Tx,
  turnOf,
} from './db.ts'
import { log_bytes, unsafeSqlite } from './dialect.ts'
import { Disk, type DiskOptions } from './disk.ts'
import { DbError, isIoError, translate } from './errors.ts'
import { explained, sizeOf, spaceOf } from './space.ts'
import { Connection, TurnConnection } from './sqlite-connection.ts'
import { lockInRoom } from './sqlite-lock.ts'
import { SqliteTx } from './sqlite-tx.ts'
import { add, Changes, StoredBytes } from './stored.ts'

const queue_max = limit(
  'sqlite.waiting_writes',
  2_000,
  'requests',
  'Bounds the writes that wait for a commit; a tenant may have as many as there is room left for, so one alone has half. Past it a write is refused as UNAVAILABLE.',
)

/** A larger file is not checked at the start, which would take long. */
const checked_bytes_max = limit(
  'db.checked_bytes',
  1_073_741_824,
  'bytes',
  'A SQLite file up to this size is checked at every start; `npm run admin -- check` checks a file of any size, and more thoroughly.',
)

const faults_listed_max = limit(
  'db.faults_listed',
  100,
  'rows',
  'Faults of a damaged file that `npm run admin -- check` lists.',
)

export interface SqliteOptions {
  clock: Clock
  /** True to take the lock that only one server may have. */
  exclusive: boolean
  /** The disk failed under a write: the process must stop serving and exit. */
  onFatal: (error: unknown) => void
  /** Called once, when some of the file is found to be damaged. Reads continue as far as they can, writes do not. */
  onDamaged?: (error: unknown) => void
  /** Called when the room on the disk is unknown: the last known state holds until the next look. */
  onDiskUnknown?: (error: unknown) => void
  disk?: Partial<DiskOptions>
}

interface Job {
  work: (tx: Tx) => Awaitable<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

type Outcome = { ok: true; value: unknown; effects: (() => void)[] | null } | { ok: false; error: unknown }

/** Opens the file (`:memory:` is allowed). Throws when it is in use, on an unsafe set-up, or unreadable. */
export function openSqlite(path: string, options: SqliteOptions): Db {
  if (path === ':memory:') return new SqliteDb(path, null, null, options)
  let lock: Database | null = null
  try {
    mkdirSync(dirname(path), { recursive: true })
    const file = existsSync(path) ? realpathSync(path) : path
    if (!options.exclusive) return new SqliteDb(path, null, null, options)
    const disk_options = { reserve_bytes: null, space: spaceOf, ...options.disk }
    lock = lockInRoom(file, disk_options.space)
    // Not before: the reserve may be that of a service that runs.
    const disk = new Disk(file, disk_options)
    return new SqliteDb(path, lock, disk, options)
  } catch (error) {
    lock?.close()
    throw explained(error, path)
  }
}

class SqliteDb implements Db {
  readonly engine = 'sqlite'
  readonly #path: string
  readonly #in_memory: boolean
  readonly #lock: Database | null
  /** Null in memory, and for a command beside the server. */
  readonly #disk: Disk | null
  readonly #stored: StoredBytes
  #damaged = false
  readonly #onDamaged: (error: unknown) => void
  readonly #onDiskUnknown: (error: unknown) => void
  readonly clock: Clock
  readonly #onFatal: (error: unknown) => void
  /** Writes only, one transaction at a time. */
  readonly #writer: Connection
  /** Single statements: each sees the last commit, never an open transaction. */
  readonly #reader: Connection
  /** The same; null in memory. */
  readonly #turn_reader: TurnConnection | null
  /** Reads of several statements, one after the other, each in a transaction of its own. */
  readonly #snapshot: Connection
  #reads: Promise<unknown> = Promise.resolve()
  #queue: Job[] = []
  /** Writes in the queue by owner. */
  readonly #queued = new Map<string, number>()
  readonly #queued_of_group = new Map<string, number>()
  #flushing: Promise<void> | null = null
  #closed = false

  constructor(path: string, lock: Database | null, disk: Disk | null, options: SqliteOptions) {
    const { clock, onFatal, onDamaged = () => {}, onDiskUnknown = () => {} } = options
    const in_memory = path === ':memory:'
    this.#path = path
    this.#in_memory = in_memory
    this.#lock = lock
    this.#disk = disk
    this.clock = clock
    this.#stored = new StoredBytes(clock)
    this.#onFatal = onFatal
    this.#onDamaged = onDamaged
    this.#onDiskUnknown = onDiskUnknown
    this.#writer = new Connection(path)
    this.#turn_reader = in_memory ? null : new TurnConnection(path, setImmediate)
    this.#reader = this.#turn_reader ?? this.#writer
    this.#snapshot = in_memory ? this.#writer : new Connection(path)
    if (in_memory) return
    for (const connection of [this.#writer, this.#reader, this.#snapshot]) {
      const unsafe = unsafeSqlite(this.#settings(connection))
      if (unsafe) throw new Error(`refusing to serve from ${path}: ${unsafe}`)
    }
    this.#reader.exec('pragma query_only = on')
    this.#snapshot.exec('pragma query_only = on')
    for (const connection of [this.#writer, this.#reader, this.#snapshot]) {
      connection.onDamaged = (error) => this.#foundDamaged(error)
    }
    if (options.exclusive) this.#checkQuickly()
    if (options.exclusive && !this.#damaged) this.#requireWritable()
    if (disk) disk.look(this.#reusableBytes())
  }

  /** Finds a file that can be read and not written now, rather than at the first request. */
  #requireWritable(): void {
    this.#writer.exec('begin immediate')
    try {
      this.#writer.exec(`pragma user_version = ${this.#writer.value('pragma user_version')}`)
      this.#writer.exec('commit')
    } catch (error) {
      this.#writer.rollback()
      throw error
    }
  }

  #checkQuickly(): void {
    if (sizeOf(this.#path) > checked_bytes_max) return
    try {
      const found = this.#writer.value('pragma quick_check(1)')
      if (found !== 'ok') this.#foundDamaged(new DbError('damaged', String(found)))
    } catch (error) {
      if ((translate('sqlite', error) as DbError).kind !== 'damaged') throw error
      this.#foundDamaged(error)
    }
  }

  #foundDamaged(error: unknown): void {
    if (this.#damaged) return
    this.#damaged = true
    this.#onDamaged(error)
  }

  /**
   * The free room within the database's files, less what they will still take of the disk: a checkpoint makes the
   * file as large as its pages, and the log grows to the size at which it is checkpointed.
   */
  #reusableBytes(): number {
    const page = Number(this.#reader.value('pragma page_size'))
    const free = Number(this.#reader.value('pragma freelist_count')) * page
    const pages = Number(this.#reader.value('pragma page_count')) * page
    const file_grows = Math.max(0, pages - sizeOf(this.#path))
    const log_grows = Math.max(0, log_bytes - sizeOf(`${this.#path}-wal`))
    return free - file_grows - log_grows
  }

  trouble(): Trouble | null {
    if (this.#damaged) return { kind: 'damaged', reason: 'the database file is damaged' }
    if (this.#disk?.full) return { kind: 'full', reason: 'the disk is nearly full' }
    return null
  }

  async faults(): Promise<string[]> {
    try {
      const found = this.#reader.values(`pragma integrity_check(${faults_listed_max})`)
      return found.length === 1 && found[0] === 'ok' ? [] : found.map(String)
    } catch (error) {
      if (translate('sqlite', error) instanceof DbError) return [(error as Error).message]
      throw error
    }
  }

  storedBytes(_tenant_id: string, counter: StoredCounter): number {
    return counter.used
  }

  async maintain(): Promise<void> {
    if (!this.#disk || this.#closed || this.#damaged) return
    this.#disk.look(this.#reusableBytes())
    if (!this.#disk.full) await this.#disk.keepReserve()
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
    // Not by turnOf: on the hottest path its objects would cost as much as the queue.
    const work = typeof owner === 'function' ? owner : given!
    const key = typeof owner === 'string' ? owner : typeof owner === 'function' ? service.key : owner.key
    const group = typeof owner === 'object' ? owner.group : undefined
    if (this.#closed) return Promise.reject(new DbError('lost', 'the database is closed'))
    if (this.#damaged) return Promise.reject(new DbError('damaged', 'the database file is damaged'))
    const room = queue_max - this.#queue.length
    const queued = this.#queued.get(key) ?? 0
    const of_group = group === undefined ? 0 : (this.#queued_of_group.get(group) ?? 0)
    if (queued >= room || of_group >= 3 * room)
      return Promise.reject(new DbError('busy', 'too many writes are waiting'))
    this.#queued.set(key, queued + 1)
    if (group !== undefined) this.#queued_of_group.set(group, of_group + 1)
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
        this.#queued_of_group.clear()
        await this.#commitTogether(jobs)
        if (!this.#in_memory && this.#writer.needs_checkpoint) await this.#checkpointInTurn()
        this.#flushing = this.#queue.length > 0 ? this.#nextTurn() : null
        done()
      })
    })
  }

  /**
   * A checkpoint by itself, in a turn after the one that answered: large texts fill the log within a few commits, and the
   * commit that found it full would hold everybody up for as long as all of it takes. Nothing durable waits for it.
   */
  async #checkpointInTurn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#turn_reader?.endTurn()
    try {
      this.#writer.checkpoint()
    } catch (error) {
      if (isIoError(error)) this.#onFatal(error)
      else if ((translate('sqlite', error) as DbError).kind === 'damaged') this.#foundDamaged(error)
    }
  }

  async #commitTogether(jobs: Job[]): Promise<void> {
    const now = this.clock.now()
    let outcomes: Outcome[]
    try {
      outcomes = await this.#attemptWithReserve(jobs, now)
    } catch (error) {
      this.#abandon(jobs, error)
      return
    }
    jobs.forEach((job, i) => {
      settle(job, outcomes[i]!)
    })
    this.#lookWhenDue()
  }

  /** After all callers are answered: a commit is not a failure, no matter what the disk says. */
  #lookWhenDue(): void {
    if (!this.#disk?.look_due) return
    try {
      this.#disk.look(this.#reusableBytes())
    } catch (error) {
      this.#onDiskUnknown(error)
    }
  }

  /**
   * When the disk is full, all jobs are run once more: with what was reserved, and what grows refuses itself. The
   * checkpoint makes the room that the log takes usable again, if there is enough for the checkpoint itself.
   */
  async #attemptWithReserve(jobs: Job[], now: Millis): Promise<Outcome[]> {
    try {
      return await this.#attemptAll(jobs, now)
    } catch (error) {
      if (!this.#disk || (translate('sqlite', error) as DbError).kind !== 'full') throw error
      this.#disk.exhausted()
      this.#turn_reader?.endTurn()
      try {
        this.#writer.checkpoint()
      } catch {
        // The second attempt decides what the callers get.
      }
      return this.#attemptAll(jobs, now)
    }
  }

  async #attemptAll(jobs: Job[], now: Millis): Promise<Outcome[]> {
    return (await this.#attempt(jobs, now, false)) ?? (await this.#attempt(jobs, now, true))!
  }

  /**
   * Runs all jobs in one transaction. Without savepoints a job that fails after it has written spoils the whole
   * transaction: then nothing is kept and the answer is null, and the jobs run again with a savepoint each.
   */
  async #attempt(jobs: Job[], now: Millis, savepoints: boolean): Promise<Outcome[] | null> {
    const writer = this.#writer
    writer.exec('begin immediate')
    const outcomes: Outcome[] = []
    const changes = new Changes()
    const disk_full = this.#disk?.full ?? false
    try {
      for (const { work } of jobs) {
        if (savepoints) writer.exec('savepoint job')
        const tx = new SqliteTx(writer, now, disk_full, this.#stored, changes)
        try {
          const result = work(tx)
          const value = result instanceof Promise ? await result : result
          outcomes.push({ ok: true, value, effects: tx.effects })
          if (tx.changes) changes.addAll(tx.changes)
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
      const counters = await this.#count(changes)
      this.#turn_reader?.endTurn()
      writer.exec('commit')
      for (const [tenant_id, counter] of counters) this.#stored.know(tenant_id, counter)
      this.#disk?.grew(changes.grown)
      return outcomes
    } catch (error) {
      writer.rollback()
      throw error
    }
  }

  /** One statement for each tenant, however many of its writes share the commit. Returns the counters. */
  async #count(changes: Changes): Promise<Map<string, StoredCounter | null>> {
    const counters = new Map<string, StoredCounter | null>()
    for (const [tenant_id, bytes] of changes.all()) {
      if (bytes !== 0) counters.set(tenant_id, await add(this.#writer, tenant_id, bytes))
    }
    return counters
  }

  /** Nothing of this batch was kept, or that is unknown. */
  #abandon(jobs: Job[], error: unknown): void {
    const io_error = isIoError(error)
    const reason = io_error
      ? new DbError('outcome_unknown', 'the disk failed while writing', { cause: error })
      : translate('sqlite', error)
    if (reason instanceof DbError && reason.kind === 'damaged') this.#foundDamaged(error)
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
      this.#turn_reader?.endTurn()
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

/** True for an error after which the transaction as a whole cannot continue. */
function fatal(error: unknown): boolean {
  return isIoError(error) || (error instanceof DbError && (error.kind === 'full' || error.kind === 'damaged'))
}
