// Two calls at once of which the first is held before its commit: what the second one does that comes meanwhile.

import { spyOn } from 'bun:test'
import { type Awaitable, type Db, type Tx, turnOf, unnamedAcrossTenants } from '../../src/db/db.ts'
import { until } from './patience.ts'
import { count_lock_waits } from './postgres.ts'

const waiting = unnamedAcrossTenants<{ n: number }>('test.waiting', count_lock_waits)
// The role of the service is not shown what the connections of its login wait for.
const login = unnamedAcrossTenants('test.login', 'set local role none')

/**
 * Runs `first` up to its first commit, begins `second`, and goes on with `first` when `second` is answered or waits for a row. On
 * SQLite, which writes one after the other, `second` comes behind `first` in any case. Needs more than one connection.
 */
export async function beforeCommitOf<A, B>(
  db: Db,
  first: () => Promise<A>,
  second: () => Promise<B>,
): Promise<[A, B]> {
  const [worked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const write = db.write.bind(db)
  const writing = spyOn(db, 'write').mockImplementationOnce(((owner: never, given: never) => {
    const [turn, run] = turnOf<(tx: Tx) => Awaitable<unknown>>(owner, given)
    return write(turn, async (tx) => {
      const result = await run(tx)
      worked.resolve()
      await released.promise
      return result
    })
  }) as unknown as Db['write'])
  try {
    const answered_first = first()
    await Promise.race([worked.promise, answered_first])
    let is_answered = false
    const answered_second = second().finally(() => {
      is_answered = true
    })
    const waits = () =>
      db.read(async (q) => (await q.all(login, {})) && Number((await q.one(waiting, {}))!.n) > 0)
    if (db.engine === 'postgres') await until(async () => is_answered || (await waits()))
    released.resolve()
    return await Promise.all([answered_first, answered_second])
  } finally {
    released.resolve()
    writing.mockRestore()
  }
}
