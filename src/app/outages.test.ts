import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { onPostgres } from '../../test/support/databases.ts'
import { Scraped } from '../../test/support/metrics.ts'
import { becomes, until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase, ownerUrlOf } from '../../test/support/postgres.ts'
import { Door, starting_up } from '../../test/support/postgres-door.ts'
import { few_connections, TestService, type TestTenant } from '../../test/support/service.ts'
import { systemClock } from '../base/clock.ts'
import { type Config, readConfig } from '../config.ts'
import type { Db } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import type { Log } from '../http/answers.ts'
import { Measures } from '../metrics/service.ts'
import { backgroundOf } from './background.ts'
import { away_message, back_message, complaint_message } from './outages.ts'
import { LateRows } from './secured.ts'
import type { AppOptions } from './start.ts'

const failed_message = 'background work failed'
/** Failures of background work, and requests, in an outage. */
const failures_least = 30

onPostgres('The log in an outage of the database', () => {
  let url: string
  let door: Door
  let tenant: TestTenant
  const service = new TestService({ ...few_connections, TICK: 'internal', METRICS: '127.0.0.1:0' })
  beforeAll(async () => {
    url = await newPostgresDatabase()
    door = await Door.before(url)
    await service.start(door.url)
    tenant = await service.signUp()
  })
  afterAll(async () => {
    await service.stop()
    door.close()
    await dropPostgresDatabase(url)
  })

  const put = () => service.ask('PUT', '/v1/kv/outage/key', { key: tenant.api_key, body: { value: 1 } })
  const faults = () => service.logged.filter(({ level }) => level === 'warn' || level === 'error')
  const failures = async () =>
    new Scraped(await (await fetch(service.app.metrics!.url!)).text()).sum(
      'waystation_background_errors_total',
    )!

  test('has one line when it begins, one a minute and one at its end, however much fails; failures are counted', async () => {
    expect((await put()).status).toBe(200)
    door.shut(starting_up)
    await until(() => service.app.db.is_away)
    const before = faults().filter(({ message }) => message === failed_message).length
    const counted = await failures()
    for (let i = 0; i < failures_least; i++) {
      const { status, body, headers } = await put()
      expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '1'])
    }
    await until(async () => (await failures()) >= counted + failures_least)
    const ready = await service.ask('GET', '/readyz')
    expect([ready.status, ready.body.error.details]).toEqual([
      503,
      { reason: 'the database does not answer' },
    ])
    const line = { database: door.host, reason: starting_up.message }
    const away = (seconds: number) => ({
      level: 'error',
      message: away_message,
      fields: { ...line, seconds },
    })
    expect(faults().slice(before)).toEqual([away(0)])
    service.clock.advance(60_000)
    await becomes(() => faults().slice(before), [away(0), away(60)])
    service.clock.advance(1_500)
    door.does = 'pass'
    await until(async () => (await put()).status === 200)
    expect(service.logged.filter(({ message }) => message === back_message)).toEqual([
      { level: 'info', message: back_message, fields: { database: door.host, seconds: 61.5 } },
    ])
    expect(faults().slice(before)).toEqual([away(0), away(60)])
  })

  test('has a line for a call that PostgreSQL had no memory for, which says so', async () => {
    const owner = new SQL({ url: ownerUrlOf(url), max: 1 })
    await owner
      .unsafe(`create function lacks() returns trigger language plpgsql as
        $$ begin raise 'out of shared memory' using errcode = '53200'; end $$;
        create trigger lacks before insert or update on kv_entries for each row execute function lacks()`)
      .simple()
    const { status, body } = await put()
    await owner.unsafe('drop trigger lacks on kv_entries')
    await owner.close()

    expect([status, body.error.code]).toEqual([503, 'UNAVAILABLE'])
    const fields = { database: door.host, code: '53200', reason: 'out of shared memory' }
    expect(service.logged.filter(({ message }) => message === complaint_message)).toEqual([
      { level: 'warn', message: complaint_message, fields },
    ])
  })
})

onPostgres('Tables that row-level security is still to bind', () => {
  let url: string
  let door: Door
  beforeAll(async () => {
    url = await newPostgresDatabase()
    door = await Door.before(url)
    door.does = starting_up
  })
  afterAll(async () => {
    door.close()
    await dropPostgresDatabase(url)
  })

  test.each([
    [true, 'resolves', 0],
    [false, 'rejects', 1],
  ])('are tried again while no outage is known: with is_away %p a try %s', async (is_away, end, tries) => {
    const config = readConfig({ DATABASE_URL: door.url, DATABASE_CONNECTIONS: '2' })
    const options = { clock: systemClock } as AppOptions
    const before = door.count
    const trying = new LateRows(config, options, { is_away } as Db).secure()
    expect(
      await trying.then(
        () => 'resolves',
        () => 'rejects',
      ),
    ).toBe(end)
    expect(Math.min(1, door.count - before)).toBe(tries)
  })
})

describe('A failure of background work', () => {
  const cases: [name: string, error: Error, is_away: boolean, lines: number][] = [
    ['that the outage explains has no line', new DbError('lost', 'away'), true, 0],
    ['that lost its connection has one while others open', new DbError('lost', 'killed'), false, 1],
    ['of another kind has one in an outage as well', new Error('a fault'), true, 1],
    ['on a damaged file has none, because that was said', new DbError('damaged', 'it is'), false, 0],
  ]
  test.each(cases)('%s, and is counted', (_, error, is_away, lines) => {
    const logged: string[] = []
    const record = (_: object, message: string) => void logged.push(message)
    const log: Log = { debug: record, info: record, warn: record, error: record }
    const measures = new Measures()
    const given = { held: () => false, beforeLook: undefined, measures, tracer: null }
    const db = { is_away, trouble: () => null } as unknown as Db
    backgroundOf({ tick: 'internal' } as Config, db, log, given).onError(error)
    expect(logged).toEqual(Array.from({ length: lines }, () => failed_message))
    expect(measures.background_errors.value).toBe(1)
  })
})
