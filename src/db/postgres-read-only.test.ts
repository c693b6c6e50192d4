// A PostgreSQL that takes no writes. Sessions that began while a database was read-only stay so once it is no longer, as
// connections to an old primary do after a failover.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { onPostgres } from '../../test/support/databases.ts'
import { scrape } from '../../test/support/metrics.ts'
import { until } from '../../test/support/patience.ts'
import {
  administer,
  dropPostgresDatabase,
  newPostgresDatabase,
  ownerUrlOf,
} from '../../test/support/postgres.ts'
import { few_connections, TestService, type TestTenant } from '../../test/support/service.ts'

onPostgres('A database that becomes read-only', () => {
  let url: string
  let tenant: TestTenant
  const service = new TestService({ ...few_connections, TICK: 'internal', METRICS: '127.0.0.1:0' })
  beforeAll(async () => {
    url = await newPostgresDatabase()
    await service.start(url)
    tenant = await service.signUp()
  })
  afterAll(async () => {
    await service.stop()
    await dropPostgresDatabase(url)
  })

  const name = () => url.slice(url.lastIndexOf('/') + 1)
  const tell = (statement: string) =>
    administer(ownerUrlOf(url).slice(0, ownerUrlOf(url).lastIndexOf('/')), statement)
  /** Every session from now on, and those that are there begin again. */
  async function set(read_only: 'on' | 'off'): Promise<void> {
    await tell(`alter database ${name()} set default_transaction_read_only = ${read_only}`)
    if (read_only === 'on')
      await tell(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name()}'`)
  }
  const key = () => tenant.api_key
  const put = () => service.ask('PUT', '/v1/kv/read-only/key', { key: key(), body: { value: 1 } })
  const get = () => service.ask('GET', '/v1/kv/read-only/key', { key: key() })
  const ready = () => service.ask('GET', '/readyz')
  const trouble = async () =>
    (await scrape(service)).sum('waystation_database_trouble', { kind: 'read_only' })
  // That sessions were ended is said as well, where one of them had something to do.
  const said = () =>
    service.logged
      .filter(({ message }) => /^the database .*\bwrites\b/.test(message))
      .map(({ level, message }) => [level, message])
  const explained = () =>
    service.logged.filter(({ fields }) => String(fields.error).includes('read-only transaction'))

  test('answers 503 to writes and goes on with reads, says so, and takes writes again on new connections by itself', async () => {
    expect([(await put()).status, (await ready()).status, await trouble()]).toEqual([200, 200, 0])
    await set('on')
    await until(() => service.app.db.trouble()?.kind === 'read_only')
    const { status, body, headers } = await put()
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '1'])
    const { status: unready, body: why } = await ready()
    expect([unready, why.error.details]).toEqual([503, { reason: 'the database is read-only' }])
    expect([(await get()).body.version, await trouble()]).toEqual([1, 1])

    await until(() => said().length === 1)

    await set('off')
    await until(async () => (await ready()).status === 200)
    for (let i = 0; i < 10; i++) expect((await put()).status).toBe(200)
    await until(() => said().length === 2)
    expect([explained(), said(), await trouble()]).toEqual([
      [],
      [
        ['error', 'the database is read-only: writes are refused until one that accepts them is reached'],
        ['info', 'the database accepts writes again'],
      ],
      0,
    ])
  })
})
