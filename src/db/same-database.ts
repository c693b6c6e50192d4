// Two logins of PostgreSQL may lead to one database, by whatever names and poolers, or to two.

import { newId } from '../base/ids.ts'
import { type Db, unnamed } from './db.ts'

const HOLD = unnamed<{ held: unknown }>(
  'same_database.hold',
  'select pg_advisory_xact_lock(hashtextextended(:name, 0)) as held',
)
const TRY = unnamed<{ is_free: boolean }>(
  'same_database.try',
  'select pg_try_advisory_xact_lock(hashtextextended(:name, 0)) as is_free',
)

/** Writes nothing: a lock that one of them holds is held for the other as well, in the same database alone. */
export function areOneDatabase(one: Db, other: Db): Promise<boolean> {
  const name = newId('req', one.clock.now())
  return one.write(async (tx) => {
    await tx.one(HOLD, { name })
    return !(await other.one(TRY, { name }))!.is_free
  })
}
