// On PostgreSQL, where statements wait for connections and are refused when others have waited for too long.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { known_kinds } from '../../test/support/job-bench.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { connections_default } from '../db/connection-settings.ts'
import { type Db, unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { openPostgres } from '../db/postgres.ts'
import { ConcurrencyLimiter } from './concurrency.ts'
import { anyDue } from './due-store.ts'
import { RoundRobin } from './round-robin.ts'
import * as search from './search-store.ts'

const FIND = unnamedAcrossTenants('test.find', 'select count(*) as n from agents')

const TENANTS = unnamedAcrossTenants(
  'test.tenants',
  `insert into tenants (tenant_id, name, owner_email, plan, status, signing_secret, created_at)
   select 'ten_' || n, 'ten_' || n, 'owner@example.com', 'free', 'active', '', 0 from generate_series(10, 99) n`,
)

// The last tenant has jobs for many receivers, each of the others has one.
const JOBS = unnamedAcrossTenants(
  'test.jobs',
  `insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts, paused,
                     starts_at_once, goes_on)
   select 'ten_' || least(n, 73), 'schedule', 'sch_' || n, 'evt', 'http://' || n || '.test', 0, 0, 0, 0, 0, 0, 0
     from generate_series(10, 104) n`,
)

/** `done`, or the kind of failure. */
function endOf(acting: unknown): Promise<string> {
  return Promise.resolve(acting).then(
    () => 'done',
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )
}

onPostgres('The search for due work', () => {
  const clock = new TestClock()
  let url: string
  let db: Db
  beforeAll(async () => {
    url = await newPostgresDatabase()
    db = await openPostgres(url, { clock })
  })
  afterAll(async () => {
    await db.close()
    await dropPostgresDatabase(url)
  })

  test('waits for a connection while requests are refused because others wait for too long', async () => {
    const gate = Promise.withResolvers<void>()
    const holding = Array.from({ length: connections_default }, (_, i) =>
      db.write(`holder ${i}`, () => gate.promise),
    )
    const first = endOf(db.read('a tenant', (q) => q.one(FIND, {})))
    clock.advance(1_001)
    const second = endOf(db.read('another', (q) => q.one(FIND, {})))
    clock.advance(100)
    const now = clock.now()
    expect(await endOf(db.one(FIND, {}))).toBe('busy')
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

  test('of many tenants and receivers has a few turns of those who come back all the time, not one turn for each', async () => {
    await db.write(upkeep, async (tx) => {
      await tx.run(TENANTS, {})
      await tx.run(JOBS, {})
    })
    let over = false
    const turns = new Array<number>(5 * connections_default).fill(0)
    const coming = turns.map(async (_, i) => {
      for (; !over; turns[i]! += 1) await db.read(`busy ${i}`, (q) => q.one(FIND, {}))
    })
    const errors: unknown[] = []
    const round_robin = new RoundRobin(db, (error) => errors.push(error))
    try {
      const found = await round_robin.next(clock.now(), new ConcurrencyLimiter())
      expect(errors).toEqual([])
      expect(new Set(found.map(({ source_id }) => source_id)).size).toBe(64 + 31)
      expect(Math.max(...turns)).toBeLessThan(16)
    } finally {
      over = true
      await Promise.all(coming)
    }
  })
})
