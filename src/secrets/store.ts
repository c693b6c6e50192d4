// Every statement on service_settings.

import { type Reader, sql, type Tx } from '../db/db.ts'

/** The key that seals, the one that a rotation is under way to, and the one that the last rotation has replaced: check values. */
type KeyName = 'secret_key_check' | 'secret_key_next' | 'secret_key_retired'
type Name = KeyName | 'fingerprint_key'

const KEEP = sql(
  'secrets.keep',
  'insert into service_settings (name, value) values (:name, :value) on conflict do nothing',
)

/** Holds the row, so that the end of a rotation waits for the beginning of another, and the other way around. */
const LOCK_CHECK = sql(
  'secrets.lock_check',
  "update service_settings set value = value where name = 'secret_key_check' and value = :check",
)

const REPLACE_CHECK = sql(
  'secrets.replace_check',
  "update service_settings set value = :check where name = 'secret_key_check' and value = :retired",
)

const REMOVE = sql('secrets.remove', 'delete from service_settings where name = :name')

const FIND = sql<{ value: string }>('secrets.find', 'select value from service_settings where name = :name')

/** The lock keeps the end of a rotation behind this transaction. */
const SEALING = sql<{ value: string }>(
  'secrets.sealing',
  "select value from service_settings where name = 'secret_key_check' {shared}",
)

/** The check value of the key that seals until this transaction ends; null for a database that no service has opened. */
export async function sealing(tx: Tx): Promise<string | null> {
  return (await tx.one(SEALING, {}))?.value ?? null
}

/** Null when it is not set. */
export async function setting(q: Reader, name: Name): Promise<string | null> {
  return (await q.one(FIND, { name }))?.value ?? null
}

/** Keeps the value unless another node was first; returns the one that is kept. */
export async function keep(tx: Tx, name: Name, value: string): Promise<string> {
  await tx.run(KEEP, { name, value })
  return (await setting(tx, name))!
}

/** False when another key seals. */
export async function lockCheck(tx: Tx, check: string): Promise<boolean> {
  return (await tx.run(LOCK_CHECK, { check })) === 1
}

/** The key of `check` seals instead of the retired one. Changes nothing when that has happened before. */
export async function endRotation(tx: Tx, { check, retired }: { check: string; retired: string }) {
  if ((await tx.run(REPLACE_CHECK, { check, retired })) === 0) return
  for (const name of ['secret_key_next', 'secret_key_retired']) await tx.run(REMOVE, { name })
  await keep(tx, 'secret_key_retired', retired)
}
