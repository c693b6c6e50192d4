// Writes that share a transaction of PostgreSQL: they run at the same time on one connection, and their statements are
// sent without waiting for each other's answers.

import type { ReservedSQL } from 'bun'
import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { answer_ms_max } from './connection-settings.ts'
import {
  type Awaitable,
  MustRunAlone,
  type Params,
  type Statement,
  type StoredCounter,
  type Turn,
  type Tx,
} from './db.ts'
import { DbError, isLost, mayBeCommitted, stateOf, translate } from './errors.ts'
import { LateCount } from './late-count.ts'
import { abandoned, type Call, PostgresTx, Queries, type Runner, type Traffic } from './postgres-queries.ts'
import { Changes, type StoredBytes } from './stored.ts'

const line_lock_ms_max = limit(
  'postgres.batch_lock_ms',
  1_000,
  'milliseconds',
  'Bounds the wait for the lock that the batches of one line, on all nodes, take in turn; past it the writes run alone.',
)
const row_lock_ms_max = limit(
  'postgres.batch_row_lock_ms',
  250,
  'milliseconds',
  'Bounds the wait of a batch for the lock of a row; past it its writes run alone. Below the second after which PostgreSQL looks for deadlocks (deadlock_timeout) unless it is set otherwise, so that a batch is never part of one.',
)

/** PostgreSQL refuses every statement of a transaction in which one has failed. */
const in_failed_sql_transaction = '25P02'

/** A write that waits for a batch, or is part of one. */
export interface Member {
  turn: Turn
  work: (tx: Tx) => Awaitable<unknown>
  call: Call
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** How a member ended in a batch that was committed. `alone`: it is still to be run. */
export type Ended = { value: unknown; effects: (() => void)[] } | { error: unknown } | 'alone'

/** Nothing of the batch was kept, and all its members run alone. */
export class BatchFailed extends Error {
  override name = 'BatchFailed'

  /** The `line` of those that made it fail: their tenants. */
  constructor(readonly culprits: readonly string[]) {
    super('a batch failed')
  }
}

/** The lock of the line was not to be had in time. */
export class LineLocked extends BatchFailed {
  override name = 'LineLocked'

  constructor() {
    super([])
  }
}

export interface Surroundings {
  clock: Clock
  traffic: Traffic
  stored: StoredBytes
}

/** Members that have ended and are to be committed. */
interface Ready {
  members: readonly Member[]
  ended: readonly Ended[]
  count: LateCount
}

/** The first number of all locks of batches, so that they meet no other program's. */
const lock_class = 1_937_006_964

/** The lock of a line, until the transaction ends. The only place that knows what is locked. */
export const locks = {
  wait: (lock: number) =>
    `select pg_try_advisory_xact_lock(${lock_class}, ${lock}) as had;
     select set_config('lock_timeout', '${line_lock_ms_max}', true), pg_advisory_xact_lock(${lock_class}, ${lock}),
            set_config('lock_timeout', '${row_lock_ms_max}', true)`,
  /** The rows lie on a worker, which is told only what `set local` sets. */
  wait_on_citus: (lock: number) =>
    `${locks.wait(lock)}; set local citus.propagate_set_commands = 'local'; set local lock_timeout = ${row_lock_ms_max}`,
  /** False in `had` when another node has it, or waits for it. */
  attempt: `select set_config('lock_timeout', '${row_lock_ms_max}', true),
                   pg_try_advisory_xact_lock(${lock_class}, $1::int) as had`,
}

/** Batches of a session before BEGIN and COMMIT are sent as prepared statements. */
const simple_batches = 1

/** Batches that begin with a wait for the lock once another node had it, so that few are undone for it. */
const contended_batches = 8

/**
 * Batches of one line on one connection, one after the other.
 *
 * Bun sends a statement that is not prepared yet after those that are, whatever their order was. So the first batches
 * begin with one simple query whose answer is awaited. Once BEGIN and COMMIT have been answered as prepared statements,
 * COMMIT, the next BEGIN and the first statements of its members are sent together. On Citus every batch begins as the
 * first ones do.
 */
export class Session {
  #batches = 0
  /** Set when the next transaction has begun: true once its lock is had. */
  #begun: Promise<boolean | Error> | null = null
  #is_prepared = false
  /** Of the batch whose commit was sent and not answered. */
  #committing: Changes | null = null
  /** Batches whose lock is waited for because another node has batches of this line. */
  #contended = 0

  constructor(
    private readonly connection: ReservedSQL,
    private readonly lock: number,
    private readonly around: Surroundings,
  ) {}

  /** True when the next batch may begin with the commit of this one. */
  get overlaps(): boolean {
    return this.#is_prepared && this.#contended === 0
  }

  /**
   * Runs the members in one transaction, up to its commit. Throws BatchFailed when nothing is kept and they run alone,
   * and a DbError when the connection is lost.
   */
  run(members: readonly Member[]): Promise<Ready> {
    return this.#inTime(this.#run(members))
  }

  /** With `goes_on` the next batch begins at once; only while `overlaps`. */
  commit(ready: Ready, goes_on: boolean): Promise<void> {
    return this.#inTime(this.#commit(ready, goes_on))
  }

  /** By then no caller waits any more. A connection on which the server says nothing would stop the line for ever. */
  async #inTime<T>(step: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.connection.close({ timeout: 0 }).catch(() => {}), answer_ms_max)
    try {
      return await step
    } finally {
      clearTimeout(timer)
    }
  }

  get #is_distributed(): boolean {
    return this.around.traffic.dialect === 'citus'
  }

  async #run(members: readonly Member[]): Promise<Ready> {
    this.#batches += 1
    const begun = this.#begun
    this.#begun = null
    if (begun) {
      const [had, attempt] = await Promise.all([begun, this.#attempt(members)])
      if (had === true) return this.#checked(attempt)
      await this.#undo(attempt)
      if (had !== false) throw failureOf(had)
      this.#contended = contended_batches
    }
    const prepares =
      !begun && this.#batches > simple_batches + 1 && this.#contended === 0 && !this.#is_distributed
    if (!(prepares && (await this.#beginPrepared()))) await this.#begin()
    return this.#checked(await this.#attempt(members))
  }

  /**
   * False when another node has the lock. Its answer is awaited: until it is prepared, statements that are sent later
   * may overtake it.
   */
  async #beginPrepared(): Promise<boolean> {
    try {
      await this.connection`begin`
      this.around.traffic.answers += 1
      const had = await this.#tryLock()
      if (typeof had !== 'boolean') throw had
      this.#is_prepared ||= had
      if (had) return true
    } catch (error) {
      await this.#rollBack()
      throw failureOf(error)
    }
    await this.#rollBack()
    this.#contended = contended_batches
    return false
  }

  async #commit({ members, count }: Ready, goes_on: boolean): Promise<void> {
    for (const { call } of members) call.committing = true
    this.#committing = count.changes
    const sent = this.#batches > simple_batches ? this.connection`commit` : this.connection.unsafe('commit')
    const answer = sent.execute()
    if (goes_on) {
      const began = this.connection`begin`.execute()
      const locked = this.#tryLock()
      this.#begun = began.then(() => locked, asError)
    }
    try {
      const { command } = (await answer) as { command: string }
      this.around.traffic.answers += 1
      // An aborted transaction answers COMMIT with ROLLBACK and without an error.
      if (command !== 'COMMIT') throw new BatchFailed([])
      this.#committing = null
    } catch (error) {
      this.#committing = null
      const unknown = !(error instanceof BatchFailed) && mayBeCommitted(this.around.traffic.dialect, error)
      count.rollBack()
      count.failed(unknown)
      if (!unknown) throw new BatchFailed([])
      throw new DbError('outcome_unknown', (error as Error).message, { cause: error })
    }
    count.committed()
  }

  #tryLock(): Promise<boolean | Error> {
    const lock = this.connection.unsafe(locks.attempt, [this.lock]).execute()
    return lock.then((rows: { had: boolean }[]) => rows[0]!.had, asError)
  }

  /** Waits for the lock. */
  async #begin(): Promise<void> {
    const wait = this.#is_distributed ? locks.wait_on_citus : locks.wait
    try {
      const answers = await this.connection.unsafe(`begin; ${wait(this.lock)}`)
      this.around.traffic.answers += 1
      const [{ had }] = answers[1] as [{ had: boolean }]
      this.#contended = had ? Math.max(0, this.#contended - 1) : contended_batches
    } catch (error) {
      this.#contended = contended_batches
      await this.#rollBack()
      const failure = failureOf(error)
      throw failure instanceof BatchFailed ? new LineLocked() : failure
    }
  }

  async #attempt(members: readonly Member[]): Promise<Attempt> {
    const { clock, traffic, stored } = this.around
    const count = new LateCount(stored)
    const now = clock.now()
    const committing = (tenant_id: string) => this.#committing?.of(tenant_id) ?? 0
    const shared = { traffic, now, stored, changes: count.changes, committing, beside: members.length - 1 }
    const txs = members.map(({ call }) => new MemberTx(this.connection, call, shared))
    const ended = await Promise.all(members.map((member, i) => runOne(member, txs[i]!)))
    return { members, ended, count, txs }
  }

  /** Throws when one failed after it had written, or made the server abort the transaction. */
  async #checked(attempt: Attempt): Promise<Ready> {
    const { members, ended, count, txs } = attempt
    try {
      const lost = txs.find((tx) => tx.lost !== null)
      if (lost) throw lost.lost
      if (txs.some(({ failed }) => failed)) {
        throw new BatchFailed(
          members.filter((_, i) => txs[i]!.is_culprit).map(({ turn }) => turn.batch!.line),
        )
      }
      await count.write(new Queries(this.connection, this.around.traffic))
      if (members.some(({ call }, i) => call.abandoned && txs[i]!.wrote)) throw new BatchFailed([])
    } catch (error) {
      await this.#undo(attempt)
      throw failureOf(error)
    }
    return { members, ended, count }
  }

  async #undo({ count }: Attempt): Promise<void> {
    count.rollBack()
    count.failed(false)
    await this.#rollBack()
  }

  /** A connection that is lost has rolled back. */
  async #rollBack(): Promise<void> {
    await this.connection.unsafe('rollback').catch(() => {})
  }
}

interface Attempt extends Ready {
  txs: readonly MemberTx[]
}

function asError(error: unknown): Error {
  return error as Error
}

/** A connection that is lost is every member's failure; after anything else they run alone. */
function failureOf(error: unknown): unknown {
  const known = translate('postgres', error)
  if (known instanceof BatchFailed || isLost(known)) return known
  return new BatchFailed([])
}

async function runOne({ work, call }: Member, tx: MemberTx): Promise<Ended> {
  try {
    return { value: await work(tx), effects: tx.effects }
  } catch (error) {
    if (tx.wrote) tx.fail(!call.abandoned)
    tx.undo()
    return error instanceof MustRunAlone ? 'alone' : { error: translate('postgres', error) }
  } finally {
    tx.finished = true
  }
}

interface Shared {
  traffic: Traffic
  now: Millis
  stored: StoredBytes
  /** Of all members. */
  changes: Changes
  /** The bytes by which the batch before changes a tenant's, while its commit is not answered. */
  committing(tenant_id: string): number
  beside: number
}

class MemberTx extends PostgresTx {
  override readonly beside: number
  wrote = false
  /** True when nothing of the batch can be kept. */
  failed = false
  /** True for one that made the batch fail. */
  is_culprit = false
  /** The error of a connection that is gone. */
  lost: unknown = null
  readonly #own = new Changes()
  readonly #committing: Shared['committing']

  constructor(connection: Runner, call: Call, shared: Shared) {
    const { traffic, now, stored, changes, committing, beside } = shared
    super(connection, traffic, call, now, [], stored, changes)
    this.#committing = committing
    this.beside = beside
  }

  override stored(tenant_id: string, counted: StoredCounter): number {
    return super.stored(tenant_id, counted) + this.#committing(tenant_id)
  }

  override stores(tenant_id: string, bytes: number): void {
    this.#own.add(tenant_id, bytes)
    super.stores(tenant_id, bytes)
  }

  fail(is_culprit: boolean): void {
    this.is_culprit ||= is_culprit && !this.failed
    this.failed = true
  }

  /** It was refused and has written nothing. */
  undo(): void {
    for (const [tenant_id, bytes] of this.#own.all()) this.changes.add(tenant_id, -bytes)
  }

  protected override async query(statement: Statement<unknown>, params: Params): Promise<unknown> {
    if (this.call.abandoned) throw abandoned()
    let answer: unknown
    try {
      answer = await super.query(statement, params)
    } catch (error) {
      if (isLost(error)) this.lost = error
      else this.fail(stateOf(error) !== in_failed_sql_transaction)
      throw error
    }
    if (statement.writes && (answer as { count: number }).count > 0) this.wrote = true
    return answer
  }
}
