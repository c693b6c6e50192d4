import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { type Wire, wireTo } from '../../test/support/crash-postgres.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase, pretendDistributed } from '../../test/support/postgres.ts'
import { second_ms } from '../base/clock.ts'
import { type Db, MustRunAlone, type Turn, type Tx, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openPostgres } from './postgres.ts'
import { locks } from './postgres-batch.ts'
import { lineOf } from './postgres-lines.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table counters (id text primary key, n bigint not null)',
)
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADD = unnamedAcrossTenants<{ n: number; xid: string }>(
  'test.add',
  'update counters set n = n + :n where id = :id returning n, cast(pg_current_xact_id() as text) as xid',
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')

interface Added {
  n: number
  xid: string
}

async function kindOf(action: Promise<unknown>): Promise<string> {
  try {
    await action
    return 'done'
  } catch (error) {
    return error instanceof DbError ? error.kind : String(error)
  }
}

const turnOf = (key: string, more: Partial<Turn> = {}): Turn => ({ key, batch: { line: key }, ...more })

async function add(tx: Tx, id = 'a', n = 1): Promise<Added> {
  return (await tx.one(ADD, { id, n }))!
}

/** Tenants of one line. */
const [good_tenant, bad_tenant] = ['tnt_a', 'tnt_c']

const many = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

onPostgres('writes that share transactions', () => {
  let url: string
  let db: Db
  let clock: TestClock
  beforeAll(async () => {
    url = await newPostgresDatabase()
    clock = new TestClock()
    db = await openPostgres(url, { clock, passing_max: 0 })
    await db.write((tx) => tx.run(CREATE, {}))
  })
  afterAll(async () => {
    await db.close()
    await dropPostgresDatabase(url)
  })
  const counter = async (id = 'a') => (await db.one(FIND, { id }))!.n
  beforeEach(async () => {
    // Writes of a key that made a batch fail run alone for a moment.
    clock.advance(10 * second_ms)
    const known = unnamedAcrossTenants('test.clear', 'delete from counters')
    await db.write((tx) => tx.run(known, {}))
    for (const id of ['a', 'b']) await db.write((tx) => tx.run(INSERT, { id, n: 0 }))
  })

  test('what comes at once is one transaction, 64 writes at most, and each sees those before it', async () => {
    const besides: number[] = []
    const added = await Promise.all(
      many(100, () =>
        db.write(turnOf('one'), (tx) => {
          besides.push(tx.beside)
          return add(tx)
        }),
      ),
    )
    expect(added.map(({ n }) => n)).toEqual(many(100, (i) => i + 1))
    const of_each = Object.values(Object.groupBy(added, ({ xid }) => xid)).map((group) => group!.length)
    expect(of_each).toEqual([64, 36])
    expect(new Set(besides)).toEqual(new Set([63, 35]))
  })

  test('what comes while a batch is under way is the next one', async () => {
    const held = Promise.withResolvers<void>()
    const first = db.write(turnOf('one'), async (tx) => {
      await held.promise
      return add(tx)
    })
    await db.one(FIND, { id: 'a' })
    const next = many(5, () => db.write(turnOf('one'), (tx) => add(tx)))
    held.resolve()
    const { xid } = await first
    const xids = new Set((await Promise.all(next)).map((one) => one.xid))
    expect([xids.size, xids.has(xid)]).toEqual([1, false])
  })

  test('few at once have transactions of their own, and a batch begins when they are more', async () => {
    const own = await openPostgres(url, { clock })
    const round = async (count: number) => {
      const added = await Promise.all(many(count, () => own.write(turnOf('one'), (tx) => add(tx))))
      return Object.values(Object.groupBy(added, ({ xid }) => xid)).map((group) => group!.length)
    }
    expect(await round(3)).toEqual([1, 1, 1])
    expect((await round(13)).toSorted()).toEqual([1, 1, 1, 10])
    // Until a batch had few.
    while ((await round(2)).length < 2);
    const apart = turnOf('one', { row: 'a', batch: { line: 'one', apart: true } })
    for (let i = 0; i < 20; i++) {
      await round(13)
      await Promise.all(many(3, () => own.write(apart, (tx) => add(tx))))
    }
    await own.close()
  })

  test('a write without `batch` has a transaction of its own', async () => {
    const added = await Promise.all(many(4, () => db.write('one', (tx) => add(tx))))
    expect(new Set(added.map(({ xid }) => xid)).size).toBe(4)
  })

  test('a write that is apart shares none with others of its row', async () => {
    const [put, apart] = [
      turnOf('one', { row: 'a' }),
      turnOf('one', { row: 'a', batch: { line: 'one', apart: true } }),
    ]
    const added = await Promise.all([put, put, apart, put].map((turn) => db.write(turn, (tx) => add(tx))))
    const [one, two, three, four] = added.map(({ xid }) => xid)
    expect(one).toBe(two!)
    expect(new Set([one, three, four]).size).toBe(3)
    expect(added.map(({ n }) => n)).toEqual([1, 2, 3, 4])
  })

  test('one that is refused before it writes is refused alone: the others are committed with what they count', async () => {
    let effects = 0
    const writes = many(20, (i) =>
      db.write(turnOf('one'), async (tx) => {
        await tx.one(FIND, { id: 'a' })
        tx.afterCommit(() => {
          effects += 1
        })
        tx.stores('one', 10)
        if (i % 2) throw new Error('refused')
        return add(tx)
      }),
    )
    const kinds = await Promise.all(writes.map(kindOf))
    expect(kinds).toEqual(many(20, (i) => (i % 2 ? 'Error: refused' : 'done')))
    expect([await counter(), effects]).toEqual([10, 10])
    expect(db.storedBytes('one', { used: 0, writes: 0 })).toBe(100)
  })

  test('bytes are counted exactly within a batch, and between batches that follow each other', async () => {
    const limit = 10_000
    const kinds = await Promise.all(
      many(150, async () => {
        const own: string[] = []
        for (let i = 0; i < 10; i++) {
          const write = db.write(turnOf('bytes'), async (tx) => {
            if (tx.stored('bytes', { used: 0, writes: 0 }) + 10 > limit) throw new Error('full')
            tx.stores('bytes', 10)
            return add(tx)
          })
          own.push(await kindOf(write))
        }
        return own
      }),
    )
    const done = kinds.flat().filter((kind) => kind === 'done').length
    expect([done, await counter()]).toEqual([limit / 10, limit / 10])
    expect(db.storedBytes('bytes', { used: 0, writes: 0 })).toBe(limit)
  })

  const failures: [string, (tx: Tx) => Promise<unknown>, string][] = [
    [
      'throws after it has written',
      async (tx) => {
        await add(tx)
        throw new Error('undo')
      },
      'Error: undo',
    ],
    ['is refused by the server', (tx) => Promise.resolve(tx.run(INSERT, { id: 'a', n: 1 })), 'unique'],
  ]
  test.each(failures)(
    'one that %s is undone, the others are kept, and its key writes alone for a second',
    async (_, fail, kind) => {
      let runs = 0
      let effects = 0
      const good = many(10, () =>
        db.write(turnOf(good_tenant), (tx) => {
          runs += 1
          tx.afterCommit(() => {
            effects += 1
          })
          return add(tx)
        }),
      )
      const bad = kindOf(db.write(turnOf(bad_tenant), fail))
      const added = await Promise.all(good)
      expect(await bad).toBe(kind)
      expect([runs, effects, await counter()]).toEqual([20, 10, 10])
      expect(new Set(added.map(({ xid }) => xid)).size).toBe(10)
      const beside = (key: string) =>
        Promise.all(many(2, () => db.write(turnOf(key), async (tx) => tx.beside)))
      expect([await beside(bad_tenant), await beside(good_tenant)]).toEqual([
        [0, 0],
        [1, 1],
      ])
      clock.advance(second_ms)
      expect(await beside(bad_tenant)).toEqual([1, 1])
    },
  )

  test('one that can only be decided alone runs after the others', async () => {
    const seen: number[] = []
    const writes = many(4, (i) =>
      db.write(turnOf('one'), async (tx) => {
        if (i === 0 && tx.beside > 0) throw new MustRunAlone()
        const { n } = await add(tx)
        if (i === 0) seen.push(tx.beside, n)
        return n
      }),
    )
    expect(await Promise.all(writes)).toEqual([4, 1, 2, 3])
    expect(seen).toEqual([0, 4])
  })

  test('a statement that fails and is caught keeps nothing of the batch: the others run again', async () => {
    const careless = kindOf(
      db.write(turnOf(bad_tenant), (tx) =>
        Promise.resolve(tx.run(INSERT, { id: 'a', n: 1 })).catch(() => {}),
      ),
    )
    const good = many(5, () => db.write(turnOf(good_tenant), (tx) => add(tx)))
    await Promise.all([careless, ...good])
    expect(await counter()).toBe(5)
  })

  test('one whose caller gives up takes what it wrote with it, and the others are kept', async () => {
    const slow = Promise.withResolvers<void>()
    const abandoned = kindOf(
      db.write({ ...turnOf(bad_tenant), ms_max: 1_000 }, async (tx) => {
        await add(tx, 'b')
        await slow.promise
        return 'late'
      }),
    )
    const good = many(3, () => db.write(turnOf(good_tenant), (tx) => add(tx)))
    expect(await abandoned).toBe('lost')
    slow.resolve()
    await Promise.all(good)
    expect([await counter('a'), await counter('b')]).toEqual([3, 0])
  })

  test('one that waits longer than its caller is not run', async () => {
    const held = Promise.withResolvers<void>()
    const first = db.write(turnOf('one'), async (tx) => {
      await held.promise
      return add(tx)
    })
    await db.one(FIND, { id: 'a' })
    let runs = 0
    const late = db.write({ ...turnOf('one'), ms_max: 100 }, (tx) => {
      runs += 1
      return add(tx)
    })
    expect(await kindOf(late)).toBe('busy')
    held.resolve()
    await first
    expect([await counter(), runs]).toEqual([1, 0])
  })

  test('too many that wait are refused as busy, and another tenant is served', async () => {
    const held = Promise.withResolvers<void>()
    const first = db.write(turnOf('busy'), () => held.promise)
    await db.one(FIND, { id: 'a' })
    const waiting = many(1_001, () => kindOf(db.write(turnOf('busy'), async () => 'done')))
    const other = kindOf(db.write(turnOf('other'), async () => 'done'))
    held.resolve()
    await first
    const kinds = await Promise.all(waiting)
    expect([kinds.filter((kind) => kind === 'busy').length > 0, await other]).toEqual([true, 'done'])
    expect(new Set(kinds)).toEqual(new Set(['done', 'busy']))
  })

  test('where another node holds the line, its writes run alone after a second, and for five', async () => {
    const other = new SQL({ url, max: 1 })
    const node = await other.reserve()
    await node.unsafe(`begin; ${locks.wait(lineOf('one'))}`)
    const besides = () =>
      Promise.all(
        many(3, () =>
          db.write(turnOf('one'), async (tx) => {
            await add(tx)
            return tx.beside
          }),
        ),
      )
    expect(await besides()).toEqual([0, 0, 0])
    expect(await counter()).toBe(3)
    await node.unsafe('rollback')
    clock.advance(5 * second_ms - 1)
    expect(await besides()).toEqual([0, 0, 0])
    clock.advance(1)
    expect(await besides()).toEqual([2, 2, 2])
    node.release()
    await other.close()
  })

  test('a row that another transaction holds delays those who need it, and no other tenant of the line', async () => {
    const other = new SQL({ url, max: 1 })
    const node = await other.reserve()
    await node.unsafe(`begin; update counters set n = n + 100 where id = 'a'`)
    const waits = db.write(turnOf(bad_tenant), (tx) => add(tx, 'a'))
    const goes = db.write(turnOf(good_tenant), (tx) => add(tx, 'b'))
    expect((await goes).n).toBe(1)
    await node.unsafe('commit')
    expect((await waits).n).toBe(101)
    node.release()
    await other.close()
  })

  test('a thousand batches in a row, some of which fail, keep every write that was answered, once', async () => {
    const failing = 97
    let [done, undone] = [0, 0]
    await Promise.all(
      many(100, async (caller) => {
        for (let i = 0; i < 60; i++) {
          clock.advance(100)
          const fails = (caller * 60 + i) % failing === 0
          const kind = await kindOf(
            db.write(
              turnOf(`key ${caller % 7}`, { patient: true, batch: { line: `line ${caller % 2}` } }),
              async (tx) => {
                await add(tx, caller % 3 ? 'a' : 'b')
                if (caller % 5 === 0) await tx.one(FIND, { id: 'a' })
                if (fails) throw new Error('undo')
              },
            ),
          )
          if (kind === 'done') done += 1
          else undone += 1
        }
      }),
    )
    expect([(await counter('a')) + (await counter('b')), undone]).toEqual([done, Math.ceil(6_000 / failing)])
  }, 300_000)
})

onPostgres('a batch whose connection is cut', () => {
  let url: string
  let wire: Wire
  let db: Db
  beforeAll(async () => {
    url = await newPostgresDatabase()
    wire = await wireTo(url)
    db = await openPostgres(wire.url, { clock: new TestClock(), connections_max: 2, passing_max: 0 })
    await db.write((tx) => tx.run(CREATE, {}))
    await db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
  })
  afterAll(async () => {
    await db.close()
    wire.close()
    await dropPostgresDatabase(url)
  })
  const writes = () => Promise.all(many(10, () => kindOf(db.write(turnOf('one'), (tx) => add(tx)))))
  const counter = async () => (await db.one(FIND, { id: 'a' }))!.n

  test.each([
    ['before COMMIT reached the server', /commit\0/, 'cut_before', 'outcome_unknown', 0],
    ['after the server had committed', /commit\0/, 'cut_after', 'outcome_unknown', 10],
    ['before BEGIN', /begin;/, 'cut_before', 'lost', 0],
    ['at a statement of the work', /update counters|^B/s, 'cut_before', 'lost', 0],
    ['with the answers to its statements', /update counters|^B/s, 'cut_after', 'lost', 0],
  ] as const)('%s: every member is told, and later writes go well', async (_, word, fate, kind, kept) => {
    const before = await counter()
    let cut = false
    wire.tap = (bytes) => {
      if (cut || !word.test(bytes.toString('latin1'))) return 'pass'
      cut = true
      return fate
    }
    expect(new Set(await writes())).toEqual(new Set([kind]))
    wire.tap = () => 'pass'
    expect(await counter()).toBe(before + kept)
    expect(new Set(await writes())).toEqual(new Set(['done']))
    expect(await counter()).toBe(before + kept + 10)
  })

  test.each([
    ['before COMMIT reached the server', 'cut_before', 0],
    ['after the server had committed', 'cut_after', 10],
  ] as const)('%s, while others wait: those go well on another connection', async (_, fate, kept) => {
    const before = await counter()
    let others: Promise<string[]> | null = null
    wire.tap = (bytes) => {
      if (others || !/commit\0/.test(bytes.toString('latin1'))) return 'pass'
      others = writes()
      return fate
    }
    expect(new Set(await writes())).toEqual(new Set(['outcome_unknown']))
    expect(new Set(await others)).toEqual(new Set(['done']))
    wire.tap = () => 'pass'
    expect(await counter()).toBe(before + kept + 10)
  })

  test('while batches follow each other: none that was answered is gone, and none is there twice', async () => {
    for (const word of [/commit|begin/i, /^B/s, /update counters/]) {
      for (const fate of ['cut_before', 'cut_after'] as const) {
        const before = await counter()
        let pieces = 0
        wire.tap = (bytes) => (word.test(bytes.toString('latin1')) && ++pieces === 40 ? fate : 'pass')
        const kinds = (
          await Promise.all(
            many(40, async () => {
              const own: string[] = []
              for (let i = 0; i < 20; i++) own.push(await kindOf(db.write(turnOf('one'), (tx) => add(tx))))
              return own
            }),
          )
        ).flat()
        wire.tap = () => 'pass'
        const count = (kind: string) => kinds.filter((other) => other === kind).length
        const kept = (await counter()) - before
        expect(kept).toBeGreaterThanOrEqual(count('done'))
        expect(kept).toBeLessThanOrEqual(count('done') + count('outcome_unknown'))
        expect(count('done') + count('outcome_unknown') + count('lost')).toBe(kinds.length)
      }
    }
  }, 300_000)

  test('by a server that says nothing at COMMIT: every member is told that its outcome is unknown, and nothing is there twice', async () => {
    const before = await counter()
    wire.tap = (bytes) => (/commit\0/.test(bytes.toString('latin1')) ? 'swallow' : 'pass')
    expect(new Set(await writes())).toEqual(new Set(['outcome_unknown']))
    wire.tap = () => 'pass'
    expect(await counter()).toBe(before)
    expect(new Set(await writes())).toEqual(new Set(['done']))
    expect(await counter()).toBe(before + 10)
  }, 300_000)

  test('by a server that says nothing: every member is answered in time, and later ones go well', async () => {
    const before = await counter()
    wire.tap = () => 'swallow'
    expect(new Set(await writes())).toEqual(new Set(['lost']))
    wire.tap = () => 'pass'
    expect(await counter()).toBe(before)
    expect(new Set(await writes())).toEqual(new Set(['done']))
  }, 300_000)
})

onPostgres('writes on a distributed database', () => {
  let url: string
  let db: Db
  let batched: Db
  const clock = new TestClock()
  beforeAll(async () => {
    url = await newPostgresDatabase()
    await pretendDistributed(url)
    db = await openPostgres(url, { clock })
    batched = await openPostgres(url, { clock, passing_max: 0 })
    for (const text of [
      'create table counters (id text primary key, n bigint not null)',
      `create function refuse() returns trigger language plpgsql as
         $$ begin raise exception 'refused at commit' using errcode = new.id; end $$`,
      `create constraint trigger refuses after insert on counters deferrable initially deferred
         for each row when (new.id !~ '[a-z]') execute function refuse()`,
    ])
      await db.write((tx) => tx.run(unnamedAcrossTenants('test.create', text), {}))
    await db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
  })
  afterAll(async () => {
    await db.close()
    await batched.close()
    await dropPostgresDatabase(url)
  })

  test.each([
    ['XX000', 'outcome_unknown'],
    ['57014', 'outcome_unknown'],
    ['23503', 'PostgresError: refused at commit'],
    ['40P01', 'busy'],
    ['40001', 'busy'],
  ])('an error %s at COMMIT is answered as %s', async (state, kind) => {
    const insert = async (tx: Tx): Promise<unknown> => tx.run(INSERT, { id: state, n: 0 })
    const works = [insert, (tx: Tx): Promise<unknown> => add(tx)]
    expect(await kindOf(db.write('one', insert))).toBe(kind)
    const kinds = await Promise.all(works.map((work) => kindOf(batched.write(turnOf('one'), work))))
    expect(kinds).toEqual([kind, kind === 'outcome_unknown' ? kind : 'done'])
    clock.advance(10 * second_ms)
  })

  test('a batch holds one tenant, and one after the other keep every write', async () => {
    const tenants = [good_tenant, bad_tenant, 'tnt_b']
    await batched.write((tx) => Promise.all(tenants.map((id) => tx.run(INSERT, { id, n: 0 }))))
    for (let round = 1; round <= 5; round++) {
      const added = await Promise.all(
        many(30, async (i) => {
          const tenant = tenants[i % 3]!
          return { tenant, ...(await batched.write(turnOf(tenant), (tx) => add(tx, tenant))) }
        }),
      )
      const batches = Object.values(Object.groupBy(added, ({ xid }) => xid))
      expect(
        batches.map((batch) => [batch!.length, new Set(batch!.map(({ tenant }) => tenant)).size]),
      ).toEqual(many(3, () => [10, 1]))
      expect(Math.max(...added.map(({ n }) => n))).toBe(10 * round)
    }
  })

  test('every batch bounds its wait for a row on the workers', async () => {
    const SETTING = unnamedAcrossTenants<{ on_workers: string }>(
      'test.setting',
      `select current_setting('citus.propagate_set_commands') || ' ' || current_setting('lock_timeout') as on_workers`,
    )
    const seen = await Promise.all(
      many(200, () => batched.write(turnOf('one'), async (tx) => (await tx.one(SETTING, {}))!.on_workers)),
    )
    expect(new Set(seen)).toEqual(new Set(['local 250ms']))
  })
})
