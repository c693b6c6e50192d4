import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { systemClock } from '../base/clock.ts'
import { unnamedAcrossTenants } from './db.ts'
import { openPostgres } from './postgres.ts'
import { connected } from './postgres-copy.ts'
import { channel, PostgresListener } from './postgres-listen.ts'
import { setForRole } from './postgres-session.ts'
import { addressOf } from './postgres-url.ts'

const DATABASE = unnamedAcrossTenants<{ name: string }>('test.database', 'select current_database() as name')

test('a URL names its database decoded, or none', () => {
  for (const [url, database] of [
    ['postgres://localhost/one', 'one'],
    ['postgres://localhost/My%20db%251?sslmode=disable', 'My db%1'],
    ['postgres://localhost/', undefined],
    ['postgres://localhost', undefined],
  ] as const)
    expect([url, addressOf(url)]).toEqual([url, database === undefined ? { url } : { url, database }])
})

onPostgres('The database of a URL', () => {
  let url: string
  let name: string
  const before = process.env.PGDATABASE
  beforeAll(async () => {
    url = await newPostgresDatabase()
    name = new URL(url).pathname.slice(1)
    process.env.PGDATABASE = 'of_another_program'
  })
  afterAll(async () => {
    if (before === undefined) delete process.env.PGDATABASE
    else process.env.PGDATABASE = before
    await dropPostgresDatabase(url)
  })

  test('is the one that is served, whatever PGDATABASE says', async () => {
    const db = await openPostgres(url, { clock: systemClock, database_time: true })
    expect(await db.one(DATABASE, {})).toEqual({ name })
    await db.close()
  })

  test('is the one that is copied, filled and vacuumed', async () => {
    const found = await connected(url, (connection) => connection.unsafe('select current_database() as name'))
    expect([...found]).toEqual([{ name }])
  })

  test('is the one whose role gets its settings', async () => {
    const statements = await setForRole(url, null)
    expect(statements.filter((text) => !text.includes(`in database ${name} `))).toEqual([])
  })

  test('is the one that is listened to', async () => {
    const sql = new SQL({ url, database: name, max: 1 })
    const listener = new PostgresListener({
      ...{ url, clock: systemClock, onText() {}, onHeard() {} },
      send: async (text) => void (await sql`select pg_notify(${channel}, ${text})`),
    })
    await listener.start()
    await until(() => listener.trouble === null)
    await listener.close()
    await sql.close()
  })
})
