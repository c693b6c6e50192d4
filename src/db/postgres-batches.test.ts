import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { second_ms } from '../base/clock.ts'
import { type Db, type Tx, unnamedAcrossTenants } from './db.ts'
import { openPostgres } from './postgres.ts'
import type { PostgresOptions } from './postgres-options.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table counters (id text primary key, n bigint not null)',
)
const REFUSE = unnamedAcrossTenants(
  'test.refuse',
  `create function refuse() returns trigger language plpgsql as
   $$ begin if new.n < 0 then raise exception 'refused at COMMIT'; end if; return null; end $$`,
)
const AT_COMMIT = unnamedAcrossTenants(
  'test.at_commit',
  `create constraint trigger refused after insert or update on counters
     deferrable initially deferred for each row execute function refuse()`,
)
const CLEAR = unnamedAcrossTenants('test.clear', 'delete from counters')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADD = unnamedAcrossTenants<{ n: number }>(
  'test.add',
  'update counters set n = n + 1 where id = :id returning n',
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const TRANSACTION = unnamedAcrossTenants<{ id: string }>(
  'test.transaction',
  'select cast(pg_current_xact_id() as text) as id',
)
const IDS = unnamedAcrossTenants<{ id: string }>('test.ids', 'select id from counters order by id')

/** One tenant of each line. */
const tenants = ['tnt_a', 'tnt_b', 'tnt_d', 'tnt_e']
/** Tenants of one line. */
const [good_tenant, bad_tenant] = ['tnt_a', 'tnt_c']

const turnOf = (key: string, line = key) => ({ key, batch: { line } })
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const outcome = (action: Promise<unknown>) =>
  action.then(
    () => 'done',
    (error) => (error.kind as string | undefined) ?? String(error),
  )
const add = async (tx: Tx, id = 'a') => tx.one(ADD, { id })

onPostgres('lines of batches', () => {
  let url: string
  let clock: TestClock
  let db: Db
  beforeAll(async () => {
    url = await newPostgresDatabase()
    clock = new TestClock()
    db = await openPostgres(url, { clock, passing_max: 0 })
    await db.write(async (tx) => {
      for (const statement of [CREATE, REFUSE, AT_COMMIT]) await tx.run(statement, {})
    })
  })
  afterAll(async () => {
    await db.close()
    await dropPostgresDatabase(url)
  })
  beforeEach(async () => {
    clock.advance(1_000 * second_ms)
    await db.write(async (tx) => {
      await tx.run(CLEAR, {})
      for (const id of ['a', ...tenants]) await tx.run(INSERT, { id, n: 0 })
    })
  })
  const counter = async (id = 'a') => (await db.one(FIND, { id }))!.n

  async function withDb(options: Partial<PostgresOptions>, action: (own: Db) => Promise<void>) {
    const own = await openPostgres(url, { clock, passing_max: 0, ...options })
    await action(own)
    await own.close()
  }

  /** Begins a transaction that ends when it is told to. */
  async function hold(own: Db, turn: Parameters<Db['write']>[0]): Promise<() => Promise<unknown>> {
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = outcome(
      own.write(turn as string, async (tx) => {
        await tx.one(FIND, { id: 'a' })
        begun.resolve()
        await held.promise
      }),
    )
    await begun.promise
    return () => {
      held.resolve()
      return holding
    }
  }

  test.each([
    ['many tenants have as many batches as they need for one write each', (i: number) => `tenant ${i}`, 130],
    ['many writes of one tenant have one batch', () => 'one', 64],
  ])('while others wait for a connection, %s before these are served', async (_, keyOf, seen) => {
    await withDb({ connections_max: 1 }, async (own) => {
      const release = await hold(own, 'holder')
      const writes = upTo(130).map((i) => own.write(turnOf(keyOf(i), 'one'), (tx) => add(tx)))
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      const other = own.write('other', (tx) => tx.one(FIND, { id: 'a' }))
      await release()
      expect((await other)!.n).toBe(seen)
      await Promise.all(writes)
      expect(await counter()).toBe(130)
    })
  })

  test('four busy lines on two connections all go on, and so do reads beside them', async () => {
    await withDb({ connections_max: 2 }, async (own) => {
      const repeat = async (action: () => Promise<unknown>) => {
        for (let i = 0; i < 20; i++) await action()
      }
      const callers = tenants.flatMap((tenant) => [
        ...upTo(10).map(() => repeat(() => own.write(turnOf(tenant), (tx) => add(tx, tenant)))),
        repeat(async () => own.one(FIND, { id: tenant })),
      ])
      await Promise.all(callers)
      expect(await Promise.all(tenants.map(counter))).toEqual([200, 200, 200, 200])
    })
  })

  test('a tenant has 64 writes in a batch, and 24 for a second after another tenant wrote', async () => {
    await withDb({}, async (own) => {
      /** The most of its writes that one transaction had. */
      const most = async () => {
        const writing = upTo(130).map(() => own.write(turnOf(good_tenant), (tx) => tx.one(TRANSACTION, {})))
        const ids = (await Promise.all(writing)).map((row) => row!.id)
        return Math.max(...ids.map((id) => ids.filter((other) => other === id).length))
      }
      expect(await most()).toBe(64)
      await own.write(turnOf('tnt_b'), (tx) => tx.one(FIND, { id: 'a' }))
      expect(await most()).toBe(24)
      clock.advance(999)
      expect(await most()).toBe(24)
      clock.advance(1)
      expect(await most()).toBe(64)
    })
  })

  test('a tenant that makes a batch fail soon again runs alone twice as long each time, up to a minute', async () => {
    const failing = async () => {
      const bad = db.write(turnOf(bad_tenant), async (tx) => {
        await add(tx)
        throw new Error('undo')
      })
      const good = db.write(turnOf(good_tenant), (tx) => add(tx))
      expect(await Promise.all([outcome(bad), outcome(good)])).toEqual(['Error: undo', 'done'])
    }
    const isAlone = async () => {
      const besides = upTo(2).map(() => db.write(turnOf(bad_tenant), async (tx) => tx.beside))
      return (await Promise.all(besides))[0] === 0
    }
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      await failing()
      clock.advance(seconds * second_ms - 1)
      expect([seconds, await isAlone()]).toEqual([seconds, true])
      clock.advance(1)
      expect([seconds, await isAlone()]).toEqual([seconds, false])
    }
    // As long again without a failure: it is forgotten.
    clock.advance(60 * second_ms)
    await failing()
    clock.advance(second_ms)
    expect(await isAlone()).toBe(false)
  })

  test('a COMMIT that the server refuses keeps nothing: every member runs alone, and the bad one alone is told', async () => {
    const writes = upTo(20).map((i) =>
      outcome(
        db.write(turnOf(good_tenant), (tx) => tx.run(INSERT, { id: `new ${i + 10}`, n: i === 7 ? -1 : i })),
      ),
    )
    const outcomes = await Promise.all(writes)
    const good = upTo(20).filter((i) => i !== 7)
    expect(good.map((i) => outcomes[i - 1])).toEqual(good.map(() => 'done'))
    expect(outcomes[6]).toContain('refused at COMMIT')
    const ids = (await db.all(IDS, {})).map(({ id }) => id).filter((id) => id.startsWith('new'))
    expect(ids).toEqual(good.map((i) => `new ${i + 10}`))
  })

  test('COMMITs that are refused while batches follow each other cost no other write', async () => {
    const outcomes: string[] = []
    const callers = upTo(40).map(async (caller) => {
      for (let i = 0; i < 25; i++) {
        const is_bad = (caller * 25 + i) % 101 === 0
        const id = `new ${caller} ${i}`
        const write = db.write(turnOf(good_tenant), async (tx) => {
          await tx.run(INSERT, { id, n: is_bad ? -1 : 1 })
          return add(tx)
        })
        outcomes.push(is_bad ? `bad ${await outcome(write)}` : await outcome(write))
      }
    })
    await Promise.all(callers)
    const good = outcomes.filter((one) => !one.startsWith('bad'))
    expect(new Set(good)).toEqual(new Set(['done']))
    expect(outcomes.filter((one) => one === 'bad done')).toEqual([])
    expect([good.length, await counter()]).toEqual([990, 990])
    const ids = (await db.all(IDS, {})).filter(({ id }) => id.startsWith('new'))
    expect(ids.length).toBe(990)
  }, 300_000)

  test('a database that is closed while writes wait for a batch ends them first', async () => {
    const own = await openPostgres(url, { clock, passing_max: 0 })
    const release = await hold(own, turnOf(good_tenant))
    const waiting = upTo(5).map(() => outcome(own.write(turnOf(good_tenant), (tx) => add(tx))))
    const closing = own.close()
    const late = outcome(own.write(turnOf(good_tenant), (tx) => add(tx)))
    await release()
    await closing
    expect(await Promise.all([...waiting, late])).toEqual(['done', 'done', 'done', 'done', 'done', 'lost'])
    expect(await counter()).toBe(5)
  })

  test('a database that is closed while a batch hangs does nothing of what waits, and tells every caller', async () => {
    const own = await openPostgres(url, { clock, passing_max: 0 })
    const release = await hold(own, turnOf(good_tenant))
    const waiting = upTo(5).map(() => outcome(own.write(turnOf(good_tenant), (tx) => add(tx))))
    await own.close()
    const ended = new Set(await Promise.all(waiting))
    await release()
    expect(ended.isSubsetOf(new Set(['lost', 'busy']))).toBe(true)
    expect(await counter()).toBe(0)
  }, 300_000)
})
