// The jobs that share one transaction of SQLite.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { sleep } from '../base/sleep.ts'
import type { ChangeListener, StoredCounter } from './db.ts'
import { DbError, translate } from './errors.ts'
import type { Connection } from './sqlite-connection.ts'
import { fatal, type Job, type Outcome } from './sqlite-job.ts'
import { SqliteTx } from './sqlite-tx.ts'
import { add, Changes, type StoredBytes } from './stored.ts'

/** Jobs that come after so much in their commit wait for the next: each megabyte delays the event loop. */
const batch_bytes = 4_096_000
const lock_ms_max = limit(
  'sqlite.lock_ms',
  5_000,
  'milliseconds',
  'How long a write waits for another process that writes to the SQLite file; then it is refused as UNAVAILABLE. Reads continue.',
)
/** A lock that another process has is asked for again this soon. */
const lock_again_ms = 5

export interface Batch {
  writer: Connection
  clock: Clock
  disk_full(): boolean
  /** The reason that nothing may be written any more, which may come while a lock is waited for. */
  unusable(): DbError | null
  /** For a job that is not run. */
  refuse(job: Job, reason: DbError): void
  stored: StoredBytes
  listener: ChangeListener
  /** With the number of the jobs, and about how many bytes they have written. */
  commit(wrote: boolean, jobs: number, bytes: number): void
}

export interface Ran {
  /** Of the first of the jobs; those without one were not begun. */
  outcomes: Outcome[]
  /** Bytes by which all tenants together store more. */
  grown: number
}

/**
 * Runs the jobs in one transaction, from the first, until it is large. Takes those out of the array that it refuses because the lock of
 * the file could not be had in time. Throws when nothing of the transaction is kept, or that is unknown.
 */
export async function runTogether(jobs: Job[], batch: Batch): Promise<Ran> {
  return (await attempt(jobs, batch, false)) ?? (await attempt(jobs, batch, true))!
}

/**
 * Without savepoints a job that fails after it has written spoils the whole transaction: then nothing is kept and the
 * answer is null, and the jobs run again with a savepoint each.
 */
async function attempt(jobs: Job[], batch: Batch, savepoints: boolean): Promise<Ran | null> {
  const { writer, stored, listener, commit } = batch
  if (!writer.beginWrite() && !(await beginInTime(jobs, batch))) return { outcomes: [], grown: 0 }
  const now = batch.clock.now() // others may have written until now
  const disk_full = batch.disk_full()
  const outcomes: Outcome[] = []
  const changes = new Changes()
  let wrote = false
  let bytes = 0
  try {
    for (const { work } of jobs) {
      if (savepoints) writer.exec('savepoint job')
      const tx = new SqliteTx(writer, now, disk_full, stored, changes, listener)
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
        wrote ||= tx.wrote || tx.changed_tables
        bytes += tx.bytes
      }
      if (savepoints) writer.exec('release job')
      if (bytes >= batch_bytes) break
    }
    const counters = await count(writer, changes)
    commit(wrote || counters.size > 0, outcomes.length, bytes)
    for (const [tenant_id, counter] of counters) stored.know(tenant_id, counter)
    return { outcomes, grown: changes.grown }
  } catch (error) {
    writer.rollback()
    throw error
  }
}

/** The event loop goes on meanwhile. False once every job has been refused. */
async function beginInTime(jobs: Job[], batch: Batch): Promise<boolean> {
  do {
    refuseLate(jobs, batch)
    if (jobs.length === 0) return false
    await sleep(lock_again_ms)
  } while (!batch.writer.beginWrite())
  return true
}

/** Takes those that have waited for too long out of the array, and all once nothing may be written any more. */
function refuseLate(jobs: Job[], { clock, unusable, refuse }: Batch): void {
  const since_min = clock.monotonic() - lock_ms_max
  const reason = unusable()
  const isRefused = ({ since }: Job) => reason !== null || since <= since_min
  const refused = jobs.filter(isRefused)
  if (refused.length === 0) return
  jobs.splice(0, jobs.length, ...jobs.filter((job) => !isRefused(job)))
  for (const job of refused)
    refuse(job, reason ?? new DbError('busy', 'another process holds the lock of the SQLite file'))
}

/** One statement for each tenant, however many of its writes share the commit. Returns the counters. */
async function count(writer: Connection, changes: Changes): Promise<Map<string, StoredCounter | null>> {
  const counters = new Map<string, StoredCounter | null>()
  for (const [tenant_id, bytes] of changes.all()) {
    if (bytes !== 0) counters.set(tenant_id, await add(writer, tenant_id, bytes))
  }
  return counters
}
