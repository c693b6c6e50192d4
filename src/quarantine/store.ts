// Every statement on quarantine.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'

export interface QuarantineRow {
  since: Millis
  backup_at: Millis | null
  is_whole: 0 | 1
}

const FIND = sql<QuarantineRow>(
  'quarantine.find',
  "select since, backup_at, is_whole from quarantine where name = 'restored'",
)

const BEGIN = sql(
  'quarantine.begin',
  `insert into quarantine (name, since, backup_at, is_whole) values ('restored', :now, :backup_at, 0)
   on conflict do nothing`,
)

const BEGIN_AGAIN = sql(
  'quarantine.begin_again',
  `update quarantine set since = :now, backup_at = coalesce(:backup_at, backup_at), is_whole = 0
    where name = 'restored'`,
)

const COMPLETE = sql('quarantine.complete', "update quarantine set is_whole = 1 where name = 'restored'")

const END = sql('quarantine.end', "delete from quarantine where name = 'restored' and is_whole = 1")

/** Null when the database is not in quarantine. */
export function find(q: Reader) {
  return q.one(FIND, {})
}

/** False when it is in quarantine already. */
export async function begin(tx: Tx, backup_at: Millis | null): Promise<boolean> {
  return (await tx.run(BEGIN, { now: tx.now, backup_at })) === 1
}

/** For one that was interrupted, and for a copy of one. */
export function beginAgain(tx: Tx, backup_at: Millis | null) {
  return tx.run(BEGIN_AGAIN, { now: tx.now, backup_at })
}

export function complete(tx: Tx) {
  return tx.run(COMPLETE, {})
}

/** False when it is not in quarantine, or not everything is there. */
export async function end(tx: Tx): Promise<boolean> {
  return (await tx.run(END, {})) === 1
}
