// Logical replication, as docs/postgres.md says: a publication refuses no write, and a database moves to another server.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { blocksOf } from '../../test/support/checkout.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { test_ms_max, until } from '../../test/support/patience.ts'
import { administer, type Cluster, startCluster } from '../../test/support/postgres.ts'
import { TestService, type TestTenant } from '../../test/support/service.ts'
import { systemClock } from '../base/clock.ts'
import { migrations } from '../features.ts'
import { migrate } from './migrate.ts'
import { openPostgres } from './postgres.ts'

const sql = blocksOf('docs/postgres.md', 'sql')
const statementsOf = (word: string) =>
  sql
    .find((block) => block.includes(word))!
    .split(/;\n/)
    .filter((statement) => statement !== '')
const publish = statementsOf('create publication')
const carry = statementsOf('setval')

const UNKNOWN_ROWS = `select relname as name from pg_class c
  where relkind = 'r' and relnamespace = 'public'::regnamespace and relreplident = 'd'
    and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`

onPostgres('Logical replication', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ flags: ['-c', 'wal_level=logical'] })
  }, test_ms_max)
  afterAll(() => cluster.stop())

  async function newDatabase(name: string) {
    await administer(cluster.base_url, `create database ${name}`)
    const ask = (statement: string) => administer(cluster.base_url, statement, name)
    return { url: `${cluster.base_url}/${name}`, ask }
  }
  const newService = () => new TestService({ SECRET_KEY: 'the key that every node has' })
  /** Leaves an event. */
  const add = (service: TestService, { admin_key }: TestTenant, name: string) =>
    service.addAgent(admin_key, name)
  /** Numbers and ids. */
  const eventsOf = async (service: TestService, { admin_key }: TestTenant): Promise<[number, string][]> => {
    const { body } = await service.ask('GET', '/v1/events?limit=100', { key: admin_key })
    return body.items.map(({ seq, id }: { seq: number; id: string }) => [seq, id])
  }

  test('of all tables refuses no write, also where nothing was prepared for it', async () => {
    const { url, ask } = await newDatabase('unprepared')
    const service = await newService().start(url)
    expect(await ask(UNKNOWN_ROWS)).toEqual([])
    await ask('create publication of_all for all tables')
    const tenant = await service.signUp()
    const count = (await eventsOf(service, tenant)).length
    await add(service, tenant, 'agent-two')
    expect(await eventsOf(service, tenant)).toHaveLength(count + 1)
    await service.stop()
  })

  test('moves a database, whose events go on with the next number', async () => {
    const from = await newDatabase('moved_from')
    const old = await newService().start(from.url)
    const tenant = await old.signUp()
    for (const statement of publish) await from.ask(statement)
    await from.ask(`select pg_create_logical_replication_slot('moved', 'pgoutput')`)
    const to = await emptyCopy('moved_to')
    await to.ask(`create subscription moved connection 'dbname=moved_from port=${new URL(from.url).port}
      host=127.0.0.1 user=postgres password=postgres' publication waystation with (create_slot = false)`)
    for (const name of ['agent-two', 'agent-three', 'agent-four']) await add(old, tenant, name)
    const before = await eventsOf(old, tenant)
    await old.stop()

    const [end] = await from.ask('select pg_current_wal_lsn() as lsn')
    const [[, is_copied], [, is_behind]] = [
      [to, `select from pg_subscription_rel where srsubstate <> 'r'`],
      [
        from,
        `select from pg_replication_slots where slot_name = 'moved' and confirmed_flush_lsn < '${end!.lsn}'`,
      ],
    ] as const
    await until(
      async () => (await to.ask(is_copied)).length === 0 && (await from.ask(is_behind)).length === 0,
    )
    await to.ask('drop subscription moved')
    for (const statement of carry) await to.ask(statement)

    const moved = await newService().start(to.url)
    expect(await eventsOf(moved, tenant)).toEqual(before)
    await add(moved, tenant, 'agent-five')
    const after = await eventsOf(moved, tenant)
    expect(after.slice(0, -1)).toEqual(before)
    expect(after.at(-1)![0]).toBe(before.at(-1)![0] + 1)
    expect(await to.ask('select from events group by position having count(*) > 1')).toEqual([])
    await moved.stop()
  })

  /** The tables alone, as pg_dump --schema-only copies them. */
  async function emptyCopy(name: string) {
    const copy = await newDatabase(name)
    const db = await openPostgres(copy.url, { clock: systemClock })
    await migrate(db, migrations)
    await db.close()
    for (const statement of publish.filter((one) => !one.startsWith('create publication')))
      await copy.ask(statement)
    const tables = await copy.ask(`select tablename as name from pg_tables where schemaname = 'public'`)
    await copy.ask(`truncate ${tables.map(({ name }) => name)}`)
    return copy
  }
})
