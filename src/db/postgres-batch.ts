// Writes that share a transaction of PostgreSQL: they run at the same time on one connection, and their statements are
// sent without waiting for each other's answers.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Awaitable, MustRunAlone, type Params, type Statement, type Turn, type Tx } from './db.ts'
import { DbError, translate } from './errors.ts'
import { LateCount } from './late-count.ts'
import { abandoned, type Call, PostgresTx, Queries, type Runner, type Traffic } from './postgres-queries.ts'
import { Changes, type StoredBytes } from './stored.ts'

const line_lock_ms_max = limit(
  'postgres.batch_lock_ms',
  1_000,
  'milliseconds',
  'Bounds the wait for the lock that batches of one line have one after the other, on all nodes; past it the writes run alone.',
)
const row_lock_ms_max = limit(
  'postgres.batch_row_lock_ms',
  250,
  'milliseconds',
  'Bounds the wait of a batch for the lock of a row; past it its writes run alone. Below the time after which PostgreSQL looks for deadlocks, so that a batch is never part of one.',
)

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

  /** Keys of the turns of those that made it fail. */
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

/** The first number of all locks of batches, so that they meet no other program's. */
const lock_class = 1_937_006_964

/** Takes the lock of the line until the transaction ends. The only place that knows what is locked. */
function lockOf(line: number): string {
  return `select pg_advisory_xact_lock(${lock_class}, ${line})`
}

/**
 * As one simple query whose answer is awaited: Bun sends a statement that is not prepared yet after those that are,
 * whatever their order was.
 */
function beginOf(line: number): string {
  return `begin; set local lock_timeout = ${line_lock_ms_max}; ${lockOf(line)}; set local lock_timeout = ${row_lock_ms_max}`
}

/**
 * Runs the members in one transaction. Returns how each ended, in their order. Throws BatchFailed when nothing was
 * kept, and a DbError that is every member's: lost, or outcome_unknown.
 */
export async function runBatch(
  connection: Runner,
  line: number,
  members: readonly Member[],
  around: Surroundings,
): Promise<Ended[]> {
  await begin(connection, line)
  around.traffic.answers += 1
  const count = new LateCount(around.stored)
  let ended: Ended[]
  try {
    ended = await runAll(connection, members, around, count)
    await count.write(new Queries(connection, around.traffic))
    if (members.some(({ call }, i) => call.abandoned && wrote(ended[i]!))) throw new BatchFailed([])
  } catch (error) {
    count.rollBack()
    count.failed(false)
    await Promise.resolve(connection.unsafe('rollback', [])).catch(() => {})
    throw failureOf(error)
  }
  await commit(connection, members, count)
  around.traffic.answers += 1
  return ended
}

function wrote(ended: Ended): boolean {
  return ended !== 'alone' && 'value' in ended
}

async function begin(connection: Runner, line: number): Promise<void> {
  try {
    await connection.unsafe(beginOf(line), [])
  } catch (error) {
    await Promise.resolve(connection.unsafe('rollback', [])).catch(() => {})
    const failure = failureOf(error)
    throw failure instanceof BatchFailed ? new LineLocked() : failure
  }
}

/** A connection that is lost is every member's failure; after anything else they run alone. */
function failureOf(error: unknown): unknown {
  const known = translate('postgres', error)
  if (known instanceof BatchFailed || (known instanceof DbError && known.kind === 'lost')) return known
  return new BatchFailed([])
}

/** An aborted transaction answers COMMIT with ROLLBACK and without an error. */
async function commit(connection: Runner, members: readonly Member[], count: LateCount): Promise<void> {
  for (const { call } of members) call.committing = true
  let tag: string
  try {
    tag = ((await connection.unsafe('commit', [])) as { command: string }).command
  } catch (error) {
    const known = translate('postgres', error)
    const unknown = known instanceof DbError && known.kind === 'lost'
    count.rollBack()
    count.failed(unknown)
    if (unknown) throw new DbError('outcome_unknown', known.message, { cause: error })
    throw new BatchFailed([])
  }
  if (tag !== 'COMMIT') {
    count.rollBack()
    count.failed(false)
    throw new BatchFailed([])
  }
  count.committed()
}

/** Throws when one failed after it had written, or made the server abort the transaction. */
async function runAll(
  connection: Runner,
  members: readonly Member[],
  { clock, traffic, stored }: Surroundings,
  count: LateCount,
): Promise<Ended[]> {
  const now = clock.now()
  const txs = members.map(
    ({ call }) =>
      new MemberTx(connection, {
        traffic,
        call,
        now,
        stored,
        changes: count.changes,
        beside: members.length - 1,
      }),
  )
  const ended = await Promise.all(members.map((member, i) => runOne(member, txs[i]!)))
  const lost = txs.find((tx) => tx.lost !== null)
  if (lost) throw lost.lost
  if (txs.some(({ failed }) => failed)) {
    throw new BatchFailed(members.filter((_, i) => txs[i]!.is_culprit).map(({ turn }) => turn.key))
  }
  return ended
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

/** PostgreSQL refuses every statement of a transaction in which one has failed: in_failed_sql_transaction. */
function isAfterAnother(failure: unknown): boolean {
  return (failure as { errno?: string } | null)?.errno === '25P02'
}

interface Shared {
  traffic: Traffic
  call: Call
  now: Millis
  stored: StoredBytes
  /** Of all members. */
  changes: Changes
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

  constructor(connection: Runner, { traffic, call, now, stored, changes, beside }: Shared) {
    super(connection, traffic, call, now, [], stored, changes)
    this.beside = beside
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
      if (error instanceof DbError && error.kind === 'lost') this.lost = error
      else this.fail(!isAfterAnother(error))
      throw error
    }
    if (statement.writes && (answer as { count: number }).count > 0) this.wrote = true
    return answer
  }
}
