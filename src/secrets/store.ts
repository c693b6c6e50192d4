// Every statement on service_settings.

import { type Reader, sql, type Tx } from '../db/db.ts'

type Name = 'secret_key_check' | 'secret_key_next' | 'fingerprint_key'

const KEEP = sql(
  'secrets.keep',
  'insert into service_settings (name, value) values (:name, :value) on conflict do nothing',
)

const SET = sql('secrets.set', 'update service_settings set value = :value where name = :name')

const REMOVE = sql('secrets.remove', 'delete from service_settings where name = :name')

const FIND = sql<{ value: string }>('secrets.find', 'select value from service_settings where name = :name')

/** Null when it is not set. */
export async function setting(q: Reader, name: Name): Promise<string | null> {
  return (await q.one(FIND, { name }))?.value ?? null
}

/** Keeps the value unless another node was first; returns the one that is kept. */
export async function keep(tx: Tx, name: Name, value: string): Promise<string> {
  await tx.run(KEEP, { name, value })
  return (await setting(tx, name))!
}

export function set(tx: Tx, name: Name, value: string) {
  return tx.run(SET, { name, value })
}

export function remove(tx: Tx, name: Name) {
  return tx.run(REMOVE, { name })
}
