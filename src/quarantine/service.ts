// Quarantine: a restored copy is served, and sends nothing until the operator releases it. What the original has done since
// the copy was made is unknown here, and must not be done a second time.

import './errors.ts'
import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { Db, Reader } from '../db/db.ts'
import { hasApplied } from '../db/migrate.ts'
import * as store from './store.ts'

export type { QuarantineRow } from './store.ts'
export const { complete, end, find } = store

const retry_after_seconds = 30
/** It makes the table; releases before it know no quarantine. */
export const first_migration = 'quarantine/0001'

/** Throws QUARANTINED. */
export function requireReleased({ since }: { readonly since: Millis | null }): void {
  if (since === null) return
  throw new ApiError('QUARANTINED', { details: { since: iso(since) }, retry_after_seconds })
}

/** True when the caller may go on with a quarantine whose beginning was interrupted. */
type IsOwn = (q: Reader) => Promise<boolean>

/**
 * From now on nothing is served from this database until it is whole, and nothing sent until it is released. `again`: also one
 * that is in quarantine, for a copy of it. Returns the row that now holds: where `backup_at` is null, a time that was known stays.
 * Throws as `requireEnterable`.
 */
export function enter(
  db: Db,
  backup_at: Millis | null,
  isOwn: IsOwn,
  again = false,
): Promise<store.QuarantineRow> {
  return db.write(async (tx) => {
    if (!(await store.begin(tx, backup_at))) {
      await requireEnterable(tx, isOwn, again)
      await store.beginAgain(tx, backup_at)
    }
    return (await store.find(tx))!
  })
}

/** Throws when the database is in quarantine, and when one has begun that is not the caller's own. */
export async function requireEnterable(q: Reader, isOwn: IsOwn, again = false): Promise<void> {
  const found = await store.find(q)
  if (found === null) return
  if (found.is_whole === 1 && again) return
  if (found.is_whole === 1)
    throw new Error(
      `the database has been in quarantine since ${iso(found.since)}; admin quarantine --again makes a copy of it a copy of its own`,
    )
  if (!(await isOwn(q))) throw new Error(unfinished_message)
}

export const unfinished_message =
  'a restore into this database has not ended, or it is a backup itself: give admin restore the backup and an empty data folder or PostgreSQL database'

/**
 * Throws when the restore of this database has not ended, and when it is a backup. For a database of any release: nothing is
 * changed before it is known to be whole.
 */
export async function requireWhole(db: Db): Promise<store.QuarantineRow | null> {
  const found = (await hasApplied(db, first_migration)) ? await store.find(db) : null
  if (found?.is_whole === 0) throw new Error(unfinished_message)
  return found
}

/**
 * The quarantine as a node knows it. A database enters quarantine before a node has it open, so that only the end is looked
 * for.
 */
export class Quarantine {
  #since: Millis | null = null

  get since(): Millis | null {
    return this.#since
  }

  /** Throws when the restore of this database has not ended, and when it is a backup. */
  async begin(db: Db): Promise<void> {
    this.#since = (await requireWhole(db))?.since ?? null
  }

  /** True when it has just been released. Asks nothing outside of a quarantine. */
  async hasEnded(db: Db): Promise<boolean> {
    if (this.#since === null || (await store.find(db)) !== null) return false
    this.#since = null
    return true
  }
}
