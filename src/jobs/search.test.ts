import { expect, test } from 'bun:test'
import { forEachDatabase } from '../../test/support/databases.ts'
import { known_kinds } from '../../test/support/job-bench.ts'
import { connections_default } from '../db/connection-settings.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { anyDue } from './due-store.ts'
import * as search from './search-store.ts'

const FIND = unnamedAcrossTenants('test.find', 'select count(*) as n from agents')

/** `done`, or the kind of failure. */
function endOf(acting: unknown): Promise<string> {
  return Promise.resolve(acting).then(
    () => 'done',
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )
}

forEachDatabase('The search for due work', (databases) => {
  test('waits for a connection while requests are refused because others wait for too long', async () => {
    const { db, clock } = await databases.open()
    const gate = Promise.withResolvers<void>()
    const is_queued = databases.engine === 'postgres'
    const holding = Array.from({ length: is_queued ? connections_default : 0 }, (_, i) =>
      db.write(`holder ${i}`, () => gate.promise),
    )
    const first = endOf(db.read('a tenant', (q) => q.one(FIND, {})))
    clock.advance(1_001)
    const second = endOf(db.read('another', (q) => q.one(FIND, {})))
    clock.advance(100)
    const now = clock.now()
    const refused = endOf(db.one(FIND, {}))
    if (is_queued) expect(await refused).toBe('busy')
    const searches = [
      search.due(db, now, 10),
      search.dueAtOnce(db, now, 10),
      search.nextAt(db, now),
      search.tenants(db, '', 10),
      search.lanes(db, 'ten_a', '', 10),
      search.dueOfTenant(db, 'ten_a', now, 10),
      search.dueInLane(db, 'ten_a', '', now, 10),
      anyDue(db, now, known_kinds),
    ].map(endOf)
    gate.resolve()
    expect(new Set(await Promise.all([first, second, ...searches]))).toEqual(new Set(['done']))
    await Promise.all(holding)
  })
})
