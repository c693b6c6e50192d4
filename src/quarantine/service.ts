// Quarantine: a restored copy is served, and sends nothing until the operator releases it. What the original has done since
// the copy was made is unknown here, and must not be done a second time.

import './errors.ts'
import { iso, type Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { Db, Reader } from '../db/db.ts'
import * as store from './store.ts'

export type { QuarantineRow } from './store.ts'
export const { complete, end, find } = store

const retry_after_seconds = 30

/** Throws QUARANTINED. */
export function requireReleased({ since }: { readonly since: Millis | null }): void {
  if (since === null) return
  throw new ApiError('QUARANTINED', { details: { since: iso(since) }, retry_after_seconds })
}

/** True when the caller may go on with a quarantine whose beginning was interrupted. */
type IsOwn = (q: Reader) => Promise<boolean>

/**
 * From now on nothing is served from this database until it is whole, and nothing sent until it is released. Throws as
 * `requireEnterable`.
 */
export async function enter(db: Db, backup_at: Millis | null, isOwn: IsOwn): Promise<void> {
  await db.write(async (tx) => {
    if (await store.begin(tx, backup_at)) return
    await requireEnterable(tx, isOwn)
    await store.beginAgain(tx, backup_at)
  })
}

/** Throws when the database is in quarantine, and when one has begun that is not the caller's own. */
export async function requireEnterable(q: Reader, isOwn: IsOwn): Promise<void> {
  const found = await store.find(q)
  if (found === null) return
  if (found.is_whole === 1) throw new Error(`the database is in quarantine since ${iso(found.since)}`)
  if (!(await isOwn(q))) throw new Error(unfinished_message)
}

const unfinished_message =
  'a restore into this database has not ended, or it is a backup itself: give admin restore the backup and an empty data folder or PostgreSQL database'

/** Throws when the restore of this database has not ended, and when it is a backup. */
export async function requireWhole(db: Db): Promise<store.QuarantineRow | null> {
  const found = await store.find(db)
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
