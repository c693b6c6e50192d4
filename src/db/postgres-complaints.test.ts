import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { endOf, onPostgres } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { Door } from '../../test/support/postgres-door.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { openPostgres } from './postgres.ts'

const FIND = unnamedAcrossTenants('test.find', 'select 1 as one')
const END = unnamedAcrossTenants('test.end', 'select pg_terminate_backend(pg_backend_pid())')
const END_IDLE = unnamedAcrossTenants(
  'test.end_idle',
  `select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`,
)
const short_of_memory = { code: '53200', reason: 'out of shared memory' }

function raise(state: string, reason: string) {
  const text = `do 'begin raise exception ''${reason}'' using errcode = ''${state}''; end'`
  return unnamedAcrossTenants(`test.raise_${state.toLowerCase()}`, text)
}

onPostgres('A complaint of PostgreSQL', () => {
  let url: string
  let db: Db
  let clock: TestClock
  let told: object[]
  const server_listener = { onAway() {}, onBack() {}, onComplaint: (one: object) => void told.push(one) }

  beforeAll(async () => {
    url = await newPostgresDatabase()
  })
  beforeEach(async () => {
    clock = new TestClock()
    told = []
    db = await openPostgres(url, { clock, connections_max: 2, server_listener })
  })
  afterEach(() => db.close())
  afterAll(() => dropPostgresDatabase(url))

  const server = () => new URL(url).host
  const fail = (state: string, reason: string) =>
    endOf(() => db.write((tx) => tx.run(raise(state, reason), {})))

  test('is told when it comes, and once a minute for each code, with what the server says', async () => {
    const run_short = () => fail(short_of_memory.code, short_of_memory.reason)
    expect(await run_short()).toBe(`busy: ${short_of_memory.reason}`)
    const first = { server: server(), ...short_of_memory }
    expect(told).toEqual([first])
    clock.advance(59_999)
    await run_short()
    expect(told).toEqual([first])
    expect(await fail('53100', 'no space left')).toBe('full: no space left')
    const second = { server: server(), code: '53100', reason: 'no space left' }
    expect(told).toEqual([first, second])
    clock.advance(1)
    await run_short()
    expect(told).toEqual([first, second, first])
  })

  test('is a connection that the server ends, while others go on', async () => {
    expect(await endOf(() => db.one(END, {}))).toMatch(/^lost: /)
    const reason = 'terminating connection due to administrator command'
    expect(told).toEqual([{ server: server(), code: '57P01', reason }])
    expect(await endOf(() => db.one(FIND, {}))).toBe('done')
    expect(db.is_away).toBe(false)
  })

  test('is not a new connection that the server refuses, of which no call fails while others are there', async () => {
    const door = await Door.before(url)
    const few = await openPostgres(door.url, { clock, connections_max: 2, server_listener })
    door.does = { state: '53300', message: 'sorry, too many clients already' }
    expect(await endOf(() => few.one(END, {}))).toMatch(/^lost: /)
    told = []
    const { count } = door
    const ends: string[] = []
    await until(async () => {
      ends.push(...(await Promise.all([1, 2].map(() => endOf(() => few.one(FIND, {}))))))
      return door.count > count
    })
    expect([new Set(ends), told, few.is_away]).toEqual([new Set(['done']), [], false])
    await few.close()
    door.close()
  })

  test('is not a connection that ends without a word, or while nothing runs on it', async () => {
    const door = await Door.before(url)
    const few = await openPostgres(door.url, { clock, connections_max: 1, server_listener })
    const cut = endOf(() =>
      few.write(async (tx) => {
        await tx.one(FIND, {})
        door.cut()
        return tx.one(FIND, {})
      }),
    )
    expect(await cut).toMatch(/^lost: /)
    expect(await endOf(() => few.one(FIND, {}))).toBe('done')
    expect(await endOf(() => db.one(END_IDLE, {}))).toBe('done')
    expect(await endOf(() => few.one(FIND, {}))).toBe('done')
    expect(told).toEqual([])
    await few.close()
    door.close()
  })

  test('is told of writes that share a transaction as well', async () => {
    const { code, reason } = short_of_memory
    const ends = await Promise.all(Array.from({ length: 20 }, () => fail(code, reason)))
    expect(new Set(ends)).toEqual(new Set([`busy: ${reason}`]))
    expect(told).toEqual([{ server: server(), code, reason }])
  })

  test('is not told of a failure that concerns the statement alone, or another transaction', async () => {
    for (const state of ['23505', '40001', '40P01', '55P03', '57014', '25006', '22012', 'P0001'])
      expect(await fail(state, 'of the statement')).toContain('of the statement')
    expect(told).toEqual([])
  })
})
