import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { Operator } from '../../test/support/admin.ts'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import {
  dropPostgresDatabase,
  newPostgresDatabase,
  on_citus,
  pretendDistributed,
} from '../../test/support/postgres.ts'
import { TestService } from '../../test/support/service.ts'
import { migrations } from '../features.ts'
import { unnamed, unnamedAcrossTenants } from './db.ts'
import { distribute, isDistributed } from './distributed.ts'
import { migrate } from './migrate.ts'
import { openPostgres } from './postgres.ts'

onPostgres('a distributed database', () => {
  test('nodes of a release with a new table that start together distribute it once, and all of them start', async () => {
    const url = await newPostgresDatabase()
    await pretendDistributed(url)
    const dbs = await Promise.all(
      Array.from({ length: 4 }, () => openPostgres(url, { clock: new TestClock(), connections_max: 2 })),
    )
    const [db] = dbs
    expect(await isDistributed(db!)).toBe(true)
    const TABLES = unnamedAcrossTenants<{ name: string }>(
      'test.tables',
      'select c.relname as name from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid',
    )
    const tablesOf = async () => (await db!.all(TABLES, {})).map(({ name }) => name)
    const before = await tablesOf()
    const distributed: string[] = []
    for (const each of dbs)
      each.onStatement((name) => {
        if (name === 'citus.distribute') distributed.push(name)
      })
    const text = 'create table late_rows (tenant_id {text} not null primary key)'
    const released = [...migrations, { name: 'late/0001', text }]
    const versions = await Promise.all(dbs.map((each) => migrate(each, released)))
    expect(new Set(versions)).toEqual(new Set([released.length]))
    const tables = await tablesOf()
    expect(tables).toContain('late_rows')
    expect(new Set(tables).size).toBe(tables.length)
    await migrate(db!, released)
    expect(distributed.length).toBe(tables.length - before.length)
    await Promise.all(dbs.map((each) => each.close()))
    await dropPostgresDatabase(url)
  })

  test('is made by the owner of the database alone, who is asked for before the first table; later another login starts', async () => {
    const url = await newPostgresDatabase()
    await pretendDistributed(url)
    const owner = await openPostgres(url, { clock: new TestClock(), connections_max: 2 })
    const tell = (text: string) =>
      owner.write('test', (tx) => Promise.resolve(tx.run(unnamed('test.tell', text), {})))
    const login = `login_${new URL(url).pathname.slice(1, 20)}`
    await tell(`create role ${login} login password 'secret'`)
    await tell(`grant select on all tables in schema public to ${login}`)
    const as_login = new URL(url)
    as_login.username = login
    as_login.password = 'secret'
    const other = await openPostgres(String(as_login), { clock: new TestClock(), connections_max: 2 })
    const database = as_login.pathname.slice(1)
    await expect(distribute(other)).rejects.toThrow(
      `only the owner of the database ${database} can set how Citus plans its statements`,
    )
    expect((await distribute(owner)).length).toBeGreaterThan(0)
    expect(await distribute(other)).toEqual([])
    await other.close()
    await tell(`drop owned by ${login}`)
    await tell(`drop role ${login}`)
    await owner.close()
    await dropPostgresDatabase(url)
  })

  // A table that is locked stands in for a server that is away: what asks all servers fails.
  test.each([
    ['still starts on a distributed database', true],
    ['is refused on one PostgreSQL', false],
  ])('a service that cannot read which plans are in use %s', async (_, is_distributed) => {
    const url = await newPostgresDatabase()
    if (is_distributed) await pretendDistributed(url)
    const service = new TestService({ ROW_LEVEL_SECURITY: 'off', SECRET_KEY: 'the same at both starts' })
    await service.start(url)
    await service.stop()
    const held = new SQL({ url, max: 1 })
    const lock = await held.reserve()
    await lock.unsafe('begin; lock table tenants in access exclusive mode').simple()
    const started = await service.start(url).then(
      () => 'started',
      (error: Error) => error.message,
    )
    await lock.unsafe('rollback')
    expect(started).toMatch(is_distributed || on_citus ? /^started$/ : /lock timeout/)
    if (started === 'started') await service.stop()
    await lock.release()
    await held.close()
    await dropPostgresDatabase(url)
  })

  test('is not backed up, and nothing is left of the attempt', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'waystation-distributed-'))
    const url = await newPostgresDatabase()
    await pretendDistributed(url)
    const operator = new Operator({ DATABASE_URL: url, DATA_DIR: folder })
    expect(await operator.refusal('backup', join(folder, 'copy.db'))).toBe(
      'waystation admin: Citus has no single state across its servers: back up with its own tools',
    )
    expect(readdirSync(folder)).toEqual([])
    await dropPostgresDatabase(url)
    rmSync(folder, { recursive: true })
  })
})
