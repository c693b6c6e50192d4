// Every statement on service_settings.

import { type Reader, sql, type Tx } from '../db/db.ts'

const INSERT_CHECK = sql(
  'secrets.insert_check',
  `insert into service_settings (name, value) values ('secret_key_check', :value) on conflict do nothing`,
)

const FIND_CHECK = sql<{ value: string }>(
  'secrets.find_check',
  `select value from service_settings where name = 'secret_key_check'`,
)

export function checkValue(q: Reader) {
  return q.one(FIND_CHECK, {})
}

/** Keeps the value unless another node was first; returns the one that is kept. */
export async function keepCheckValue(tx: Tx, value: string) {
  await tx.run(INSERT_CHECK, { value })
  return tx.one(FIND_CHECK, {})
}
