// SQLite driver with group commit: writes queue, and the queue runs as one transaction when the flush before has
// returned. Callers are answered, and readers see the commit, when the flush that covers it has returned.

import type { Database } from 'bun:sqlite'
import { dirname } from 'node:path'
import { type Clock, clockOf, systemClock } from '../base/clock.ts'
import { flushFolder, makeFolder } from '../base/folder.ts'
import { unsafeSqlite } from './connection-settings.ts'
import {
  type Awaitable,
  type ChangeListener,
  type Db,
  isPatient,
  type Owner,
  type Params,
  type Reader,
  type Statement,
  type StoredCounter,
  service,
  type Trouble,
  type Tx,
  turnOf,
} from './db.ts'
import { Disk, type DiskOptions } from './disk.ts'
import { DbError, isIoError, translate } from './errors.ts'
import type { DbGauges, DbMeasures } from './measures.ts'
import { OpenFiles } from './open-files.ts'
import { explained, reusableIn, sizeOf, spaceOf } from './space.ts'
import { runTogether } from './sqlite-batch.ts'
import { faultsIn, quickFault, requireWritable, settingsOf } from './sqlite-check.ts'
import { Checkpoints, UnsafeThread } from './sqlite-checkpoint.ts'
import { Connection, SnapshotConnection } from './sqlite-connection.ts'
import { LogFlush, type Sync } from './sqlite-flush.ts'
import { type Job, type Outcome, settle } from './sqlite-job.ts'
import { fileAt, lockInRoom } from './sqlite-lock.ts'
import { WriteQueue } from './sqlite-queue.ts'
import { WriteRoom } from './sqlite-room.ts'
import { Snapshots } from './sqlite-snapshots.ts'
import { StoredBytes } from './stored.ts'

export interface SqliteOptions {
  clock: Clock
  /** True: its clock is a MovedClock. */
  movable?: boolean
  /** True to take the lock that only one server may have. */
  exclusive: boolean
  /** The disk failed under a write: the process must stop serving and exit. */
  onFatal: (error: unknown) => void
  /** Called once, when some of the file is found to be damaged. Reads continue as far as they can, writes do not. */
  onDamaged?: (error: unknown) => void
  /** Called when the room on the disk is unknown: the last known state holds until the next look. */
  onDiskUnknown?: (error: unknown) => void
  disk?: Partial<DiskOptions>
  /** Flushes the log, instead of fdatasync(2). */
  sync?: Sync | undefined
  measures?: DbMeasures | undefined
}

/** Opens the file (`:memory:` is allowed). Throws when it is in use, on an unsafe set-up, or unreadable. */
export function openSqlite(path: string, options: SqliteOptions): Db {
  if (path === ':memory:') return new SqliteDb(path, null, null, options)
  let lock: Database | null = null
  const disk_options = { reserve_bytes: null, space: spaceOf, ...options.disk }
  try {
    makeFolder(dirname(path))
    const file = fileAt(path)
    if (!options.exclusive) return new SqliteDb(file, null, null, options)
    lock = lockInRoom(file, disk_options.space)
    // Not before: the reserve may be that of a service that runs.
    const disk = new Disk(file, disk_options)
    return new SqliteDb(file, lock, disk, options)
  } catch (error) {
    lock?.close()
    throw explained(error, path, disk_options.space)
  }
}

class SqliteDb implements Db {
  readonly engine = 'sqlite'
  readonly is_away = false
  readonly #path: string
  readonly #in_memory: boolean
  readonly #lock: Database | null
  /** Null in memory, and for a command beside the server. */
  readonly #disk: Disk | null
  readonly #stored: StoredBytes
  #damaged = false
  /** Null where nobody looks after them: in memory, and for a command beside the server. */
  readonly #files: OpenFiles | null
  readonly #onDamaged: (error: unknown) => void
  readonly #onDiskUnknown: (error: unknown) => void
  readonly clock: Clock
  /** How long the disk takes is real time, unless a test stands in for the disk. */
  readonly #disk_clock: Clock
  readonly #onFatal: (error: unknown) => void
  readonly #measures: DbMeasures | undefined
  /** Writes only, one transaction at a time. */
  readonly #writer: Connection
  /** Null in memory, where the writer reads too. */
  readonly #snapshots: Snapshots | null
  /** Null in memory and for a command beside the server: there a commit is durable when it returns. */
  readonly #flush: LogFlush | null
  readonly #checkpoints: Checkpoints | null
  readonly #queue = new WriteQueue()
  /** Writes that were committed and are not on the disk yet, in the order of their commits. */
  #unanswered: { commit: number; jobs: Job[]; outcomes: Outcome[] }[] = []
  readonly #room = new WriteRoom()
  #committing: Promise<void> | null = null
  #closed = false
  #failed = false
  #listener: ((name: string) => void) | null = null
  readonly #changes: ChangeListener = { changed() {} }

  constructor(path: string, lock: Database | null, disk: Disk | null, options: SqliteOptions) {
    const { clock, onFatal, onDamaged = () => {}, onDiskUnknown = () => {} } = options
    const in_memory = path === ':memory:'
    this.#path = path
    this.#in_memory = in_memory
    this.#lock = lock
    this.#disk = disk
    this.clock = clockOf(clock, options.movable)
    this.#disk_clock = options.sync ? clock : systemClock
    this.#stored = new StoredBytes(clock)
    this.#onFatal = onFatal
    this.#measures = options.measures
    this.#onDamaged = onDamaged
    this.#onDiskUnknown = onDiskUnknown
    this.#writer = new Connection(path)
    this.#snapshots = in_memory ? null : new Snapshots(() => this.#openReader(), this.#filesAreThere)
    if (!in_memory) this.#prepare(this.#writer)
    if (options.exclusive && !in_memory) {
      const fault = quickFault(this.#writer, path)
      if (fault) this.#foundDamaged(fault)
      else requireWritable(this.#writer)
    }
    this.#writer.waitForNoLock()
    const flushes = options.exclusive && !in_memory && !this.#damaged
    this.#flush = flushes ? this.#flushOfLog(options.sync) : null
    this.#checkpoints = flushes ? this.#checkpointsOf(this.#flush!) : null
    this.#files = flushes ? new OpenFiles(['', '-wal', '-shm', '.lock'].map((end) => path + end)) : null
    if (disk) disk.look(reusableIn(this.#path, this.#reader))
  }

  /**
   * False once one of them was removed or replaced: what is written to it is lost when the process ends. A new connection would
   * make a file in its place, or get another one, and take the log that is in use for the log of that one.
   */
  readonly #filesAreThere = (): boolean => this.#files?.areThere() ?? true

  #openReader(): SnapshotConnection {
    const connection = new SnapshotConnection(this.#path)
    this.#prepare(connection)
    connection.exec('pragma query_only = on')
    return connection
  }

  /** Throws when its settings could lose a write. */
  #prepare(connection: Connection): void {
    const unsafe = unsafeSqlite(settingsOf(connection, this.#path))
    if (unsafe) throw new Error(`refusing to serve from ${this.#path}: ${unsafe}`)
    connection.onDamaged = (error) => this.#foundDamaged(error)
    connection.listener = this.#listener
  }

  /** From now on a commit returns before it is on the disk, and the flush follows. */
  #flushOfLog(sync: Sync | undefined): LogFlush {
    flushFolder(dirname(this.#path)) // the log may have been made by a process that was killed before it flushed its name
    const flush = new LogFlush(`${this.#path}-wal`, {
      clock: this.#disk_clock,
      sync,
      onFlushed: this.#measures && ((ms) => this.#measures!.flushed(ms)),
      onBegin: () => this.#snapshots!.take(),
      onDurable: (commit) => this.#onDurable(commit),
      onFailure: (error) => this.#onFlushFailure(error),
    })
    // NORMAL leaves out the flush of a commit alone: the log is still flushed before a checkpoint, and the file after it.
    this.#writer.exec('pragma synchronous = normal')
    this.#writer.exec('pragma wal_autocheckpoint = 0')
    return flush
  }

  #checkpointsOf(flush: LogFlush): Checkpoints {
    return new Checkpoints(this.#path, {
      logPages: () => (this.#writer.in_transaction ? 0 : this.#writer.logPages()),
      copy: () => this.#writer.checkpoint(),
      idle: () => flush.idle(),
      settle: async (ms_max) => {
        if (!this.#flush?.pending) await this.#snapshots!.settle(ms_max)
      },
      mayOpen: this.#filesAreThere,
      clock: this.#disk_clock,
      onError: (thrown) => {
        const error = this.#disk!.judged(thrown)
        if (isIoError(error) || error instanceof UnsafeThread) this.#onFatal(error)
        else if ((translate('sqlite', error) as DbError).kind === 'damaged') this.#foundDamaged(error)
      },
    })
  }

  /** While a commit is not on the disk, what readers see stays as it is. */
  #releaseSnapshots(): void {
    if (!this.#flush?.pending) this.#snapshots?.release()
  }

  #onDurable(commit: number): void {
    this.#snapshots!.show(this.#flush!.pending)
    while (this.#unanswered.length > 0 && this.#unanswered[0]!.commit <= commit) {
      const { jobs, outcomes } = this.#unanswered.shift()!
      this.#answer(jobs, outcomes)
    }
    if (!this.#closed && !this.#damaged) this.#checkpoints!.runWhenDue()
  }

  get #stalled(): boolean {
    return (this.#flush?.stalled || this.#checkpoints?.stalled) ?? false
  }

  /** After a failed flush nothing that the operating system holds can be trusted. */
  #onFlushFailure(error: unknown): void {
    this.#failed = true
    const reason = new DbError('outcome_unknown', 'the disk failed while writing', { cause: error })
    this.#snapshots!.stop(closed())
    for (const { jobs } of this.#unanswered.splice(0)) for (const job of jobs) this.#reject(job, reason)
    this.#onFatal(error)
  }

  #foundDamaged(error: unknown): void {
    if (this.#damaged) return
    this.#damaged = true
    this.#onDamaged(error)
  }

  trouble(): Trouble | null {
    if (this.#damaged) return { kind: 'damaged', reason: 'the database file is damaged' }
    if (!this.#closed && !this.#filesAreThere()) return { kind: 'removed', reason: this.#files!.removed! }
    if (this.#failed) return { kind: 'stalled', reason: 'the disk has failed' }
    if (this.#stalled) return { kind: 'stalled', reason: 'the disk does not answer' }
    if (this.#disk?.full) return { kind: 'full', reason: 'the disk is nearly full' }
    return null
  }

  gauges(): DbGauges {
    const is_known = this.#disk !== null && this.#filesAreThere() // a folder that is gone is on no disk
    const disk = is_known ? { free_bytes: this.#disk.free, reserve_bytes: this.#disk.reserve_bytes } : null
    const bytes = this.#in_memory ? 0 : sizeOf(this.#path) + sizeOf(`${this.#path}-wal`)
    return { bytes, disk, waiting: this.#room.waiting, connections: null, secured: null }
  }

  async takeRole(): Promise<boolean> {
    return false
  }

  async faults(): Promise<string[]> {
    return faultsIn(this.#reader)
  }

  storedBytes(_tenant_id: string, counter: StoredCounter): number {
    return counter.used
  }

  async maintain(): Promise<void> {
    if (!this.#disk || this.#closed || this.#damaged) return
    if (!this.#filesAreThere()) return
    this.#disk.look(reusableIn(this.#path, this.#reader))
    await this.#disk.keepReserve()
  }

  get #reader(): Connection {
    return this.#snapshots?.current ?? this.#writer
  }

  one<Row>(statement: Statement<Row>, params: Params): Awaitable<Row | null> {
    if (this.#mustWait()) return this.#committing!.then(() => this.#writer.one(statement, params))
    return this.#reader.one(statement, params)
  }

  all<Row>(statement: Statement<Row>, params: Params): Awaitable<Row[]> {
    if (this.#mustWait()) return this.#committing!.then(() => this.#writer.all(statement, params))
    return this.#reader.all(statement, params)
  }

  /** In memory there is one connection, and its open transaction must not be seen. */
  #mustWait(): boolean {
    return this.#in_memory && this.#committing !== null
  }

  read<T>(owner: Owner | ((q: Reader) => Awaitable<T>), given?: (q: Reader) => Awaitable<T>): Promise<T> {
    const [turn, work] = turnOf(owner, given)
    return this.#snapshots ? this.#snapshots.current.hold(work) : this.write(turn, work)
  }

  write<T>(owner: Owner | ((tx: Tx) => Awaitable<T>), given?: (tx: Tx) => Awaitable<T>): Promise<T> {
    // Not by turnOf: on the hottest path its objects would cost as much as the queue.
    const work = typeof owner === 'function' ? owner : given!
    const key = typeof owner === 'string' ? owner : typeof owner === 'function' ? service.key : owner.key
    const group = typeof owner === 'object' ? owner.group : undefined
    const urgent = typeof owner === 'object' && owner.urgent === true
    const refusal = this.#refusal(
      key,
      group,
      typeof owner !== 'string' && (typeof owner === 'function' || isPatient(owner)),
    )
    if (refusal) return Promise.reject(refusal)
    return new Promise<T>((resolve, reject) => {
      const since = this.clock.monotonic()
      this.#queue.add({
        key,
        group,
        urgent,
        since,
        work,
        resolve: resolve as (value: unknown) => void,
        reject,
      })
      this.#committing ??= this.#nextTurn()
    })
  }

  /** Null when there is room for one more write, which then counts. */
  #refusal(key: string, group: string | undefined, is_patient: boolean): DbError | null {
    const unusable = this.#closed ? closed() : this.#unusable()
    if (unusable) return unusable
    if (this.#stalled) return new DbError('busy', 'the disk does not answer')
    return this.#room.enter(key, group, is_patient)
      ? null
      : new DbError('busy', 'too many writes are waiting')
  }

  readonly #unusable = (): DbError | null => {
    if (this.#failed) return closed()
    if (this.#damaged) return new DbError('damaged', 'the database file is damaged')
    return this.#files?.removed ? new DbError('damaged', this.#files.removed) : null
  }

  #nextTurn(): Promise<void> {
    return new Promise((done) => {
      setImmediate(async () => {
        await this.#flush?.idle() // so that each flush covers one commit, of all that came meanwhile
        await this.#queue.gather()
        await this.#checkpoints?.hold
        await this.#commitTogether(this.#queue.take())
        this.#committing = this.#queue.is_empty ? null : this.#nextTurn()
        done()
      })
    })
  }

  async #commitTogether(taken: Job[]): Promise<void> {
    const unusable = this.#unusable()
    if (unusable) {
      for (const job of taken) this.#reject(job, unusable)
      return
    }
    const began = this.#measures ? this.#disk_clock.monotonic() : 0
    let outcomes: Outcome[]
    try {
      outcomes = await this.#attemptWithReserve(taken)
    } catch (error) {
      this.#abandon(taken, error)
      return
    }
    if (outcomes.length === 0) return // all were refused
    const jobs = taken.splice(0, outcomes.length)
    this.#measures?.committed(jobs.length, this.#disk_clock.monotonic() - began)
    if (taken.length > 0) this.#queue.putBack(taken)
    // Also what failed, or wrote nothing: it may have seen a commit that is not on the disk yet.
    if (this.#flush?.pending) this.#unanswered.push({ commit: this.#flush.written, jobs, outcomes })
    else this.#answer(jobs, outcomes)
  }

  #answer(jobs: Job[], outcomes: Outcome[]): void {
    this.#queue.answered()
    jobs.forEach((job, i) => {
      this.#room.leave(job)
      settle(job, outcomes[i]!)
    })
    this.#lookWhenDue()
  }

  #reject(job: Job, reason: unknown): void {
    this.#room.leave(job)
    job.reject(reason)
  }

  /** After all callers are answered: a commit is not a failure, no matter what the disk says. */
  #lookWhenDue(): void {
    if (!this.#disk?.look_due) return
    try {
      this.#disk.look(reusableIn(this.#path, this.#reader))
    } catch (error) {
      this.#onDiskUnknown(error)
    }
  }

  /**
   * When the disk is full, all jobs are run once more: with what was reserved, and what grows refuses itself. The
   * checkpoint makes the room that the log takes usable again, if there is enough for the checkpoint itself.
   */
  async #attemptWithReserve(jobs: Job[]): Promise<Outcome[]> {
    try {
      return await this.#attemptAll(jobs)
    } catch (error) {
      if (!this.#disk || (translate('sqlite', error) as DbError).kind !== 'full') throw error
      this.#disk.exhausted()
      await this.#checkpoints?.idle()
      await this.#flush?.idle()
      this.#releaseSnapshots()
      try {
        this.#writer.checkpoint()
      } catch {
        // The second attempt decides what the callers get.
      }
      return this.#attemptAll(jobs)
    }
  }

  async #attemptAll(jobs: Job[]): Promise<Outcome[]> {
    const batch = {
      writer: this.#writer,
      clock: this.clock,
      disk_full: () => this.#disk?.full ?? false,
      unusable: this.#unusable,
      refuse: (job: Job, reason: DbError) => this.#reject(job, reason),
      stored: this.#stored,
      listener: this.#changes,
      commit: (wrote: boolean, jobs: number, bytes: number) => {
        this.#checkpoints?.count(jobs, bytes)
        this.#commit(wrote)
      },
    }
    const { outcomes, grown } = await runTogether(jobs, batch).catch((error) => {
      throw this.#disk?.judged(error) ?? error
    })
    this.#disk?.grew(grown)
    return outcomes
  }

  /** With a flush off the loop that follows, what is shown stays as it is until then. */
  #commit(wrote: boolean): void {
    if (this.#failed) throw closed()
    const flush = wrote ? this.#flush : null
    const kept = flush !== null && !flush.pending && flush.waits_for_disk
    if (!this.#flush) this.#snapshots?.release()
    if (kept) this.#snapshots!.keep()
    try {
      this.#writer.exec('commit')
    } catch (error) {
      if (kept) this.#snapshots!.release()
      throw error
    }
    flush?.wrote()
    if (this.#failed) throw new DbError('outcome_unknown', 'the disk failed while writing')
  }

  /** Nothing of this batch was kept, or that is unknown. */
  #abandon(jobs: Job[], error: unknown): void {
    const io_error = isIoError(error)
    const reason = io_error
      ? new DbError('outcome_unknown', 'the disk failed while writing', { cause: error })
      : translate('sqlite', error)
    if (reason instanceof DbError && reason.kind === 'damaged') this.#foundDamaged(error)
    for (const job of jobs) this.#reject(job, reason)
    if (io_error) this.#onFatal(error)
  }

  durability(): Record<string, string | number> {
    const settings = settingsOf(this.#writer, this.#in_memory ? null : this.#path)
    return { ...settings, ...(this.#flush ? { log_flush: 'before every answer' } : {}) }
  }

  async notify(): Promise<void> {}

  onChange(listener: (key: string) => void): void {
    this.#changes.changed = listener
  }

  onStatement(listener: ((name: string) => void) | null): void {
    this.#listener = listener
    for (const connection of [this.#writer, ...(this.#snapshots?.all ?? [])]) connection.listener = listener
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    while (this.#committing) await this.#committing
    await this.#flush?.idle()
    await this.#checkpoints?.close()
    await this.#snapshots?.close()
    // Not by a command beside the server: it would wait for the server's readers, and the server's writes for it.
    if (this.#lock && !this.#failed) this.#writer.copyLog((error) => this.#disk!.judged(error))
    this.#flush?.close()
    this.#writer.close()
    this.#lock?.close()
  }
}

function closed(): DbError {
  return new DbError('lost', 'the database is closed')
}
