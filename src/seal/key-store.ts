// Every statement on seal_keys.

import { type Reader, sql, type Tx } from '../db/db.ts'

export interface KeyRow {
  number: number
  public_key: string
  /** Sealed. */
  private_key: string
  /** Which journal it signs for: 1, and one more after each restore from a backup. */
  epoch: number
}

const LIST_KEYS = sql<KeyRow>(
  'seal.keys',
  'select number, public_key, private_key, epoch from seal_keys order by number desc limit :rows_max',
)

const ADD_KEY = sql(
  'seal.add_key',
  `insert into seal_keys (number, public_key, private_key, epoch, created_at)
   values (:number, :public_key, :private_key, :epoch, :now) on conflict do nothing`,
)

/** The newest first. */
export function keys(q: Reader, rows_max: number) {
  return q.all(LIST_KEYS, { rows_max })
}

/** False when another node has made the key of this number. */
export async function addKey(tx: Tx, key: KeyRow) {
  return (await tx.run(ADD_KEY, { ...key, now: tx.now })) > 0
}
