import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import {
  administer,
  dropPostgresDatabase,
  newPostgresDatabase,
  ownerUrlOf,
} from '../../test/support/postgres.ts'
import { postgres_session } from './connection-settings.ts'
import { unnamed } from './db.ts'
import { openPostgres } from './postgres.ts'
import { beginning, connected } from './postgres-copy.ts'
import { settingsInstead, whole_session } from './postgres-session.ts'

/** As an operator sets them for all programs of a database. */
const of_database = {
  idle_session_timeout: '30s',
  transaction_timeout: '30s',
  row_security: 'off',
  extra_float_digits: '-10',
}

const SHOWN = unnamed<{ name: string; setting: string }>(
  'test.shown',
  `select name, setting from pg_settings where name in (${Object.keys(whole_session)
    .map((name) => `'${name}'`)
    .join(', ')})`,
)

const unrecognized = (name: string) => `unrecognized configuration parameter "${name}"`
const unbekannter = (name: string) => `unbekannter Konfigurationsparameter »${name}«`

onPostgres('A database with settings for all programs', () => {
  let url: string
  beforeAll(async () => {
    url = await newPostgresDatabase()
    const at = ownerUrlOf(url).lastIndexOf('/')
    for (const [name, value] of Object.entries(of_database))
      await administer(
        ownerUrlOf(url).slice(0, at),
        `alter database ${url.slice(at + 1)} set ${name} = '${value}'`,
      )
  })
  afterAll(() => dropPostgresDatabase(url))

  test('gives connections the settings of the service', async () => {
    const db = await openPostgres(url, { clock: new TestClock(), connections_max: 1 })
    const shown = Object.fromEntries((await db.all(SHOWN, {})).map(({ name, setting }) => [name, setting]))
    await db.close()
    expect(shown).toEqual(whole_session)
  })

  test('gives the exact time, however it writes fractions', async () => {
    const connection = new SQL({ url, max: 1, bigint: true })
    const microseconds = async () => {
      const [row] = await connection.unsafe(
        'select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now',
      )
      return Number(row.now)
    }
    const before = await microseconds()
    const db = await openPostgres(url, { clock: new TestClock(), connections_max: 1, database_time: true })
    const now = db.clock.now()
    const after = await microseconds()
    await db.close()
    await connection.close()
    expect(now).toBeGreaterThanOrEqual(Math.floor(before / 1_000))
    expect(now).toBeLessThanOrEqual(Math.floor(after / 1_000))
  })

  test('lets a backup, and what else the operator runs, take as long as it needs', async () => {
    const names = ['row_security', 'statement_timeout', 'transaction_timeout']
    const shown = (connection: SQL) =>
      Promise.all(names.map(async (name) => Object.values((await connection.unsafe(`show ${name}`))[0])[0]))
    await connected(url, async (connection) => {
      expect(await shown(connection)).toEqual(['on', '0', '0'])
    })
    // Through a pooler the connection does not begin with them.
    const pooled = new SQL({ url, max: 1 })
    expect((await shown(pooled))[2]).toBe('30s')
    await pooled.begin(async (connection) => {
      await connection.unsafe(beginning().replace('begin ;', ''))
      expect(await shown(connection)).toEqual(['on', '0', '0'])
    })
    await pooled.close()
  })
})

test.each([
  ['en', unrecognized],
  ['de', unbekannter],
])('An older server gets what it knows, whatever its language: %s', (_, worded) => {
  const unknown = (name: string) =>
    Object.assign(new Error(worded(name)), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '42704' })
  const before_17 = settingsInstead(whole_session, unknown('transaction_timeout'))!
  const before_14 = settingsInstead(before_17, unknown('idle_session_timeout'))!
  expect(before_17).toEqual({ ...postgres_session, idle_session_timeout: '0' })
  expect(before_14).toEqual(postgres_session)
  expect(settingsInstead(before_14, unknown('idle_session_timeout'))).toBeNull()
  expect(settingsInstead(whole_session, unknown('statement_timeout'))).toBeNull()
  const other = Object.assign(unknown('transaction_timeout'), { errno: '57014' })
  expect(settingsInstead(whole_session, other)).toBeNull()
})
