// The jobs that share one transaction of SQLite.

import type { Clock, Millis } from '../base/clock.ts'
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
  'How long writes wait for another process that writes to the SQLite file; past it they are refused as UNAVAILABLE. Reads go on.',
)
/** A lock that another process has is asked for again this soon. */
const lock_again_ms = 5

export interface Batch {
  writer: Connection
  /** Of the time that a lock may take. */
  clock: Clock
  now: Millis
  disk_full: boolean
  stored: StoredBytes
  listener: ChangeListener
  /** With the number of the jobs, and about how many bytes of text they have written. */
  commit(wrote: boolean, jobs: number, bytes: number): void
}

export interface Ran {
  /** Of the first of the jobs; those without one were not begun. */
  outcomes: Outcome[]
  /** Bytes by which all tenants together store more. */
  grown: number
}

/** Runs the jobs in one transaction, from the first, until it is large. Throws when nothing of it is kept, or that is unknown. */
export async function runTogether(jobs: Job[], batch: Batch): Promise<Ran> {
  return (await attempt(jobs, batch, false)) ?? (await attempt(jobs, batch, true))!
}

/**
 * Without savepoints a job that fails after it has written spoils the whole transaction: then nothing is kept and the
 * answer is null, and the jobs run again with a savepoint each.
 */
async function attempt(jobs: Job[], batch: Batch, savepoints: boolean): Promise<Ran | null> {
  const { writer, now, disk_full, stored, listener, commit } = batch
  if (!writer.beginWrite()) await beginInTime(batch)
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

/** The event loop goes on meanwhile. Throws a DbError when the lock cannot be had in time. */
async function beginInTime({ writer, clock }: Batch): Promise<void> {
  const since = clock.monotonic()
  do {
    if (clock.monotonic() - since >= lock_ms_max)
      throw new DbError('busy', 'another process holds the lock of the SQLite file')
    await sleep(lock_again_ms)
  } while (!writer.beginWrite())
}

/** One statement for each tenant, however many of its writes share the commit. Returns the counters. */
async function count(writer: Connection, changes: Changes): Promise<Map<string, StoredCounter | null>> {
  const counters = new Map<string, StoredCounter | null>()
  for (const [tenant_id, bytes] of changes.all()) {
    if (bytes !== 0) counters.set(tenant_id, await add(writer, tenant_id, bytes))
  }
  return counters
}
