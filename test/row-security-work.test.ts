// Row-level security beside requests: with the conditions on the tenant taken out of every statement, due jobs and
// sweeps of one tenant leave another's rows as they are.

import { afterAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { routes } from '../src/features.ts'
import { isAuthenticated, type Keyring, newKeyring, ready, titled } from './support/contract.ts'
import { onPostgres } from './support/databases.ts'
import { plant, rowsOf, tables } from './support/mutants.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { cron_secret, few_connections, TestService } from './support/service.ts'

/** No tenant that signs up has this id. */
const canary = 'ten_00000000000000000000canary'
const day_ms = 86_400_000
/** Milliseconds; nothing of the canary falls due before. */
const far = 100 * 365 * day_ms

/** Ends no tenant, no freeze, and moves no time: the tenant of the work needs its rows and its clock. */
const left_out = ['deleteTenant', 'restoreTenant', 'freezeTenant', 'resumeTenant']

const columns_of = `select column_name as name, data_type as type from information_schema.columns
  where table_schema = 'public' and table_name = $1 and is_identity = 'NO' order by ordinal_position`

/** Columns of text in a unique index that does not begin with the tenant. */
const unique_of = `select distinct a.attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
  where i.indrelid = $1::regclass and i.indisunique and not exists
    (select 1 from pg_attribute t where t.attrelid = i.indrelid and t.attname = 'tenant_id' and t.attnum = any (i.indkey))`

/** Copies every row of a tenant for the canary, with all times put off. */
async function addCanary(all: SQL, tenant_id: string): Promise<void> {
  await all.unsafe('set session_replication_role = replica')
  for (const { name: table } of await all.unsafe(tables)) {
    const unique = (await all.unsafe(unique_of, [table])).map(({ name }: { name: string }) => name)
    const columns: { name: string; type: string }[] = await all.unsafe(columns_of, [table])
    const values = columns.map(({ name, type }) => {
      if (name === 'tenant_id') return `'${canary}'`
      if (unique.includes(name) && type === 'text' && name !== 'kind') return `'canary ' || ${name}`
      if (type === 'bigint') return `case when ${name} > 1000000000000 then ${name} + ${far} else ${name} end`
      return name
    })
    const names = columns.map(({ name }) => name).join(', ')
    await all.unsafe(
      `insert into ${table} (${names}) select ${values.join(', ')} from ${table} where tenant_id = $1`,
      [tenant_id],
    )
  }
  await all.unsafe('reset session_replication_role')
}

interface Work {
  /** Tables in which the canary has rows. */
  watched: string[]
  /** Those of them in which its rows changed while a month went by. */
  changed: string[]
  /** Those in which they changed when the other tenant was removed for good. */
  purged: string[]
}

let planted = false

/** Runs ticks for a month on a tenant with a record of each kind, and then on its removal. */
async function work(environment: Record<string, string>): Promise<Work> {
  const service = new TestService({ ...few_connections, METRICS: '127.0.0.1:0', ...environment })
  service.engine = 'postgres'
  service.background = false
  const url = await newPostgresDatabase()
  await service.start(url)
  const all = new SQL({ url, max: 1 })
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
  // Without the wall a tick may get lost in rows of others, and end without an answer.
  const plantedTick = environment.ROW_LEVEL_SECURITY === 'off' ? () => tick().catch(() => {}) : tick
  try {
    const own = await filled(service)
    await addCanary(all, own.tenant_id)
    for (let i = 0; i < 4; i++) await tick() // what is due of the canary at once, such as numbers of its events
    const before = await rowsOf(all, canary)
    await tick()
    expect(await rowsOf(all, canary)).toEqual(before)
    const spend = async (days: number, ticks: number) => {
      service.clock.advance(days * day_ms)
      planted = true
      for (let i = 0; i < ticks; i++) await plantedTick()
      planted = false
    }
    for (const days of [0.1, 1, 8, 36]) await spend(days, 3)
    const watched = Object.keys(before).filter((table) => before[table]!.length > 0)
    const since = async (rows: typeof before) => {
      const now = await rowsOf(all, canary)
      return watched.filter((table) => !Bun.deepEquals(rows[table], now[table]))
    }
    const changed = await since(before)
    const ended = await service.ask('DELETE', `/v1/tenants/${own.tenant_id}`, {
      key: own.keys.admin,
      body: { confirm: 'DELETE ALL DATA' },
    })
    expect(ended.status).toBe(202)
    const left = await rowsOf(all, canary)
    await spend(31, 12)
    expect((await rowsOf(all, own.tenant_id)).tenants).toEqual([])
    return { watched, changed, purged: await since(left) }
  } finally {
    planted = false
    await all.close()
    await service.stop()
    await dropPostgresDatabase(url)
  }
}

/** A tenant with what each route needs to answer. */
async function filled(service: TestService): Promise<Keyring> {
  const own = await newKeyring(service)
  for (const [, named] of titled(routes.filter(isAuthenticated)))
    if (!left_out.includes(named.name) && !named.route.path.startsWith('/v1/clock'))
      await ready(service, named, own)
  return own
}

onPostgres('Due work and sweeps without a condition on the tenant', () => {
  afterAll(plant(() => planted))

  test('change nothing of another tenant behind row-level security', async () => {
    const { watched, changed, purged } = await work({ ROW_LEVEL_SECURITY: 'required' })
    expect(watched.length).toBeGreaterThan(25)
    expect([changed, purged]).toEqual([[], []])
  }, 300_000)

  test('change rows of another tenant in these tables without it', async () => {
    const { watched, changed, purged } = await work({ ROW_LEVEL_SECURITY: 'off' })
    expect(changed).toEqual([
      ...['checkpoints', 'dlq_operations', 'event_heads', 'inbox_messages', 'inboxes', 'jobs', 'quota_usage'],
    ])
    expect(watched.filter((table) => ![...changed, ...purged].includes(table))).toEqual([])
  }, 300_000)
})
