import { Database } from 'bun:sqlite'
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import '../app.ts' // every store registers its statements
import type { TestClock } from '../../test/support/clock.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { until } from '../../test/support/patience.ts'
import { sqlitePlanOf } from '../../test/support/plan-engines.ts'
import { migrations } from '../features.ts'
import {
  bind,
  type Db,
  type Params,
  runEffects,
  type Statement,
  sql,
  statements,
  type Tx,
  turnOfStatement,
  unnamedAcrossTenants,
} from './db.ts'
import { postgresText, render, sqliteTextOf } from './dialect.ts'
import { DbError } from './errors.ts'
import { sqlitePath } from './open.ts'

const service_statements = [...statements.values()]

/** These read a whole table on purpose: the operator's list of tenants, and the start-up's check of plans in use. */
const whole_table = ['tenants.all', 'tenants.plans']

const SCHEMA = [
  `create table counters (id {text} primary key, n {integer} not null) {keyed}`,
  `create table owners (id {text} primary key) {keyed}`,
  `create table owned (id {text} primary key, owner {text} not null
     references owners (id) deferrable initially deferred) {keyed}`,
]
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADD = unnamedAcrossTenants('test.add', 'update counters set n = n + :n where id = :id')
const ADDED = unnamedAcrossTenants<{ n: number }>(
  'test.added',
  'update counters set n = n + :n where id = :id returning n',
)
const ADDED_TO = {
  ...ADDED,
  read_back: unnamedAcrossTenants<{ n: number }>('test.added', 'select n from counters where id = :id'),
}
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const ALL = unnamedAcrossTenants<{ id: string; n: number }>(
  'test.all',
  'select id, n from counters order by id',
)
const OWN = unnamedAcrossTenants('test.own', 'insert into owned (id, owner) values (:id, :owner)')

const EMPTY = ['owned', 'counters'].map((table) => unnamedAcrossTenants('test.empty', `delete from ${table}`))

async function createTables(db: Db): Promise<void> {
  for (const text of SCHEMA) {
    await db.write((tx) => tx.run(unnamedAcrossTenants('test.create', render(db.engine, text)), {}))
  }
}

/** One counter, `a`, that stands at 1. */
async function reset(db: Db): Promise<void> {
  for (const statement of EMPTY) await db.write((tx) => tx.run(statement, {}))
  await db.write((tx) => tx.run(INSERT, { id: 'a', n: 1 }))
}

async function nOf(db: Db, id: string): Promise<number | undefined> {
  return (await db.one(FIND, { id }))?.n
}

async function failureOf(action: () => unknown): Promise<unknown> {
  try {
    await action()
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

forEachDatabase('a database', (databases) => {
  let db: Db
  let clock: TestClock
  let url: string
  beforeAll(async () => {
    ;({ db, clock, url } = await databases.open())
    await createTables(db)
  })
  beforeEach(() => reset(db))

  describe('statements', () => {
    test('every statement of the service is taken by the engine', async () => {
      const check = checker(url)
      const refused: string[] = []
      for (const statement of service_statements) {
        const refusal = await check.refusal(statement)
        if (refusal) refused.push(`${statement.name}: ${refusal}`)
      }
      await check.close()
      expect(refused).toEqual([])
      expect(new Set(service_statements.map(({ name }) => name)).size).toBe(service_statements.length)
    })

    test('a statement the engine does not know is found by that check', async () => {
      const check = checker(url)
      expect(
        await check.refusal(unnamedAcrossTenants('x', 'select nothing from tenants where tenant_id = :a')),
      ).toMatch(/nothing/)
      await check.close()
    })

    test('a write whose row is read back answers as with a returning clause', async () => {
      await db.write(async (tx) => {
        expect(await tx.one(ADDED_TO, { id: 'a', n: 2 })).toEqual({ n: 3 })
        expect([...(await tx.all(ADDED_TO, { id: 'a', n: 1 }))]).toEqual([{ n: 4 }])
        expect(await tx.one(ADDED_TO, { id: 'absent', n: 1 })).toBeNull()
        expect([...(await tx.all(ADDED_TO, { id: 'absent', n: 1 }))]).toEqual([])
      })
      expect(await nOf(db, 'a')).toBe(4)
    })

    test('one answers the first row or null, all every row, run the number of rows changed', async () => {
      await db.write(async (tx) => {
        expect(await tx.one(FIND, { id: 'a' })).toEqual({ n: 1 })
        expect(await tx.one(FIND, { id: 'absent' })).toBeNull()
        expect(await tx.run(INSERT, { id: 'b', n: 2 })).toBe(1)
        expect(await tx.run(ADD, { id: 'absent', n: 1 })).toBe(0)
        expect(await tx.one(ADDED, { id: 'b', n: 5 })).toEqual({ n: 7 })
        expect([...(await tx.all(ALL, {}))]).toEqual([
          { id: 'a', n: 1 },
          { id: 'b', n: 7 },
        ])
      })
      expect(await db.one(FIND, { id: 'absent' })).toBeNull()
      expect([...(await db.all(FIND, { id: 'absent' }))]).toEqual([])
    })

    test.each([0, 2 ** 31, -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER])(
      'the whole number %d comes back as it was stored',
      async (n) => {
        await db.write((tx) => tx.run(INSERT, { id: 'big', n }))
        expect(await nOf(db, 'big')).toBe(n)
      },
    )

    test('text is ordered by its bytes', async () => {
      const ids = ['Z', 'a', 'aa', 'a-', 'B', 'ä', '_', '\u{1f600}', '\uffee']
      for (const id of ids) {
        if (id !== 'a') await db.write((tx) => tx.run(INSERT, { id, n: 1 }))
      }
      const bytewise = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      expect((await db.all(ALL, {})).map(({ id }) => id)).toEqual(bytewise)
    })
  })

  describe('read', () => {
    test('several statements of one read see one state of the database', async () => {
      const seen = await db.read(async (q) => {
        const before = (await q.one(FIND, { id: 'a' }))!.n
        await db.write((tx) => tx.run(ADD, { id: 'a', n: 10 }))
        return [before, (await q.one(FIND, { id: 'a' }))!.n, (await q.all(ALL, {}))[0]!.n]
      })
      expect(seen).toEqual([1, 1, 1])
      expect(await db.read(async (q) => (await q.one(FIND, { id: 'a' }))!.n)).toBe(11)
    })

    test('a read that throws answers its error and leaves the next read as good as ever', async () => {
      const error = new Error('from the work')
      expect(await failureOf(() => db.read(() => Promise.reject(error)))).toBe(error)
      expect(
        await failureOf(() =>
          db.read(() => {
            throw error
          }),
        ),
      ).toBe(error)
      expect(await db.read((q) => q.one(FIND, { id: 'a' }))).toEqual({ n: 1 })
    })

    test('a read cannot write', async () => {
      await failureOf(() => db.read((q) => q.one(ADDED, { id: 'a', n: 1 })))
      expect(await nOf(db, 'a')).toBe(1)
    })

    test('one and all never see an open transaction', async () => {
      const seen: unknown[] = []
      await db.write(async (tx) => {
        await tx.run(ADD, { id: 'a', n: 10 })
        seen.push(
          (await db.one(FIND, { id: 'a' }))!.n,
          (await db.all(ALL, {})).map(({ n }) => n),
        )
        await tx.run(ADD, { id: 'a', n: 100 })
      })
      expect(seen).toEqual([1, [1]])
      expect(await nOf(db, 'a')).toBe(111)
    })
  })

  describe('write', () => {
    test('answers what the work answers, and all of it is there afterwards', async () => {
      const answer = await db.write(async (tx) => {
        await tx.run(INSERT, { id: 'b', n: 2 })
        await tx.run(INSERT, { id: 'c', n: 3 })
        return 'done'
      })
      expect(answer).toBe('done')
      expect(await nOf(db, 'b')).toBe(2)
      expect(await nOf(db, 'c')).toBe(3)
    })

    test.each([
      ['before it wrote', async (_: Tx) => {}],
      ['after it wrote', async (tx: Tx) => void (await tx.run(ADD, { id: 'a', n: 10 }))],
      [
        'after it wrote twice',
        async (tx: Tx) => {
          await tx.run(INSERT, { id: 'b', n: 2 })
          await tx.one(ADDED, { id: 'a', n: 10 })
        },
      ],
    ])('work that throws %s undoes all it did, and its error is what the caller gets', async (_, begin) => {
      const error = new Error('from the work')
      const failed = await failureOf(() =>
        db.write(async (tx) => {
          await begin(tx)
          throw error
        }),
      )
      expect(failed).toBe(error)
      expect([...(await db.all(ALL, {}))]).toEqual([{ id: 'a', n: 1 }])
    })

    test('a transaction whose COMMIT is refused leaves nothing behind', async () => {
      const effects: string[] = []
      await failureOf(() =>
        db.write(async (tx) => {
          tx.afterCommit(() => effects.push('ran'))
          await tx.run(ADD, { id: 'a', n: 10 })
          await tx.run(OWN, { id: 'thing', owner: 'nobody' })
        }),
      )
      expect(await nOf(db, 'a')).toBe(1)
      expect(effects).toEqual([])
      await db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
      expect(await nOf(db, 'a')).toBe(2)
    })

    test('a statement on a finished transaction throws, committed or not', async () => {
      const kept: Tx[] = []
      await db.write((tx) => void kept.push(tx))
      await failureOf(() =>
        db.write((tx) => {
          kept.push(tx)
          throw new Error('undo')
        }),
      )
      expect(kept.length).toBe(2)
      for (const tx of kept) {
        const late = [
          () => tx.run(ADD, { id: 'a', n: 1 }),
          () => tx.one(ADDED, { id: 'a', n: 1 }),
          () => tx.all(ALL, {}),
        ]
        for (const call of late) {
          expect(String(await failureOf(async () => call()))).toMatch(/test\.\w+ on a finished transaction/)
        }
      }
      expect(await nOf(db, 'a')).toBe(1)
    })

    test('the time of a transaction is that of the clock when it began, and does not move', async () => {
      const before = clock.now()
      const times = await db.write((tx) => {
        const first = tx.now
        clock.advance(5_000)
        return [first, tx.now]
      })
      expect(times).toEqual([before, before])
      expect(await db.write((tx) => tx.now)).toBe(before + 5_000)
    })

    test('200 writers of one row lose nothing', async () => {
      await Promise.all(
        Array.from({ length: 200 }, () =>
          db.write(async (tx) => {
            await tx.run(ADD, { id: 'a', n: 1 })
          }),
        ),
      )
      expect(await nOf(db, 'a')).toBe(201)
    })
  })

  describe('afterCommit', () => {
    test('runs in order, once the effect can be seen and before the caller is answered', async () => {
      const order: string[] = []
      let seen: unknown
      await db
        .write(async (tx) => {
          tx.afterCommit(() => {
            order.push('first')
            seen = db.one(FIND, { id: 'a' })
          })
          tx.afterCommit(() => order.push('second'))
          await tx.run(ADD, { id: 'a', n: 10 })
          order.push('work')
        })
        .then(() => order.push('answer'))
      expect(order).toEqual(['work', 'first', 'second', 'answer'])
      expect(await seen).toEqual({ n: 11 })
    })

    test('does not run when the work fails', async () => {
      const ran: string[] = []
      await failureOf(() =>
        db.write(async (tx) => {
          tx.afterCommit(() => ran.push('effect'))
          await tx.run(ADD, { id: 'a', n: 10 })
          throw new Error('undo')
        }),
      )
      await db.write((tx) => tx.afterCommit(() => ran.push('of the next')))
      expect(ran).toEqual(['of the next'])
    })
  })

  describe('errors', () => {
    const duplicate = (tx: Tx) => tx.run(INSERT, { id: 'a', n: 2 })

    test('a unique violation is a DbError of kind unique, with the driver’s error as its cause', async () => {
      const error = (await failureOf(() => db.write(duplicate))) as DbError
      expect(error).toBeInstanceOf(DbError)
      expect(error.kind).toBe('unique')
      expect(error.cause).toBeInstanceOf(Error)
    })

    test('work that catches a failed statement sees the same DbError as a caller would', async () => {
      let caught: unknown
      await failureOf(() =>
        db.write(async (tx) => {
          caught = await failureOf(() => duplicate(tx))
          throw new Error('undo')
        }),
      )
      expect(caught).toBeInstanceOf(DbError)
      expect((caught as DbError).kind).toBe('unique')
    })

    test('a lock that cannot be had in time is a DbError of kind busy, and nothing was done', async () => {
      const release = await lockRow(url)
      const refused = failureOf(() => db.write((tx) => tx.run(ADD, { id: 'a', n: 10 })))
      const error = (await whileTimePasses(clock, refused)) as DbError
      await release()
      expect(error).toBeInstanceOf(DbError)
      expect(error.kind).toBe('busy')
      expect(await nOf(db, 'a')).toBe(1)
      await db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
      expect(await nOf(db, 'a')).toBe(2)
    })

    test('an error that callers need not tell apart comes as the driver threw it', async () => {
      const error = await failureOf(() => db.write((tx) => tx.run(INSERT, { id: 'b', n: null })))
      expect(error).toBeInstanceOf(Error)
      expect(error).not.toBeInstanceOf(DbError)
      expect(String(error)).toMatch(/not.null/i)
    })

    test('a missing parameter is a bug and throws, wherever the statement runs', async () => {
      for (const call of [
        () => db.one(FIND, {}),
        () => db.all(FIND, {}),
        () => db.write((tx) => tx.run(INSERT, { id: 'b' })),
        () => db.read((q) => q.one(FIND, {})),
      ]) {
        expect(String(await failureOf(async () => call()))).toMatch(/test\.\w+: no value for :(id|n)/)
      }
    })
  })

  test('the listener hears the name of every statement as it runs, until it is taken off', async () => {
    const names: string[] = []
    db.onStatement((name) => names.push(name))
    await db.one(FIND, { id: 'a' })
    await db.all(ALL, {})
    await db.write(async (tx) => {
      await tx.run(ADD, { id: 'a', n: 1 })
      await tx.one(ADDED, { id: 'a', n: 1 })
    })
    await db.read((q) => q.one(FIND, { id: 'a' }))
    db.onStatement(null)
    await db.one(FIND, { id: 'a' })
    expect(names).toEqual(['test.find', 'test.all', 'test.add', 'test.added', 'test.find'])
  })

  test('close finishes what is under way; afterwards a write is refused as lost', async () => {
    const { db: closing } = await databases.open()
    await createTables(closing)
    await reset(closing)
    const writes = Array.from({ length: 50 }, () => closing.write((tx) => tx.run(ADD, { id: 'a', n: 1 })))
    await closing.close()
    expect(await Promise.all(writes)).toEqual(Array(50).fill(1))
    const error = (await failureOf(() => closing.write((tx) => tx.run(ADD, { id: 'a', n: 1 })))) as DbError
    expect(error).toBeInstanceOf(DbError)
    expect(error.kind).toBe('lost')
    await closing.close()
  })

  test('the durability settings are those that the engine reports', async () => {
    expect(await db.durability()).toMatchObject(
      {
        sqlite: { journal_mode: 'wal', log_flush: 'before every answer', foreign_keys: 1 },
        postgres: { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', server_encoding: 'UTF8' },
      }[databases.engine],
    )
  })
})

describe('definitions', () => {
  test('a statement waits in the line of the hash that it looks up, else of its tenant, else of its name', () => {
    const turn = (name: string, params: Params) => turnOfStatement(statements.get(name)!, params)
    expect(turn('agents.find', { tenant_id: 'ten_a', agent_id: 'a' })).toEqual({ key: 'ten_a' })
    expect(turn('tenants.all', {})).toEqual({ key: 'tenants.all' })
    const lookups: [name: string, params: Params][] = [
      ['lookups.find', { hash: 'h1', kind: 'key' }],
      ['lookups.find', { hash: 'h2', kind: 'key' }],
      ['credentials.find', { tenant_id: 'ten_a', hash: 'h1', now: 0 }],
      ['credentials.find', { tenant_id: 'ten_a', hash: 'h2', now: 0 }],
      ['inbox.by_token', { tenant_id: 'ten_a', token_hash: 'h1', now: 0 }],
      ['inbox.by_token', { tenant_id: 'ten_a', token_hash: 'h2', now: 0 }],
    ]
    const lines = lookups.map(([name, params]) => turn(name, params).key)
    expect(new Set([...lines, 'ten_a']).size).toBe(7)
    expect(lookups.map(([name, params]) => turn(name, params).group)).toEqual(lookups.map(([name]) => name))
  })

  test('a search for due work is patient, in a line for each tenant and destination', () => {
    const key = (name: string, params: Params) => {
      const turn = turnOfStatement(statements.get(name)!, params)
      expect(turn.patient).toBe(true)
      return turn.key
    }
    const searches: [name: string, params: Params][] = [
      ['jobs.due', { now: 0, rows_max: 1 }],
      ['jobs.due_of_tenant', { tenant_id: 'ten_a', now: 0, rows_max: 1 }],
      ['jobs.due_of_tenant', { tenant_id: 'ten_b', now: 0, rows_max: 1 }],
      ['jobs.due_in_lane', { tenant_id: 'ten_a', destination: 'http://a.test', now: 0, rows_max: 1 }],
      ['jobs.due_in_lane', { tenant_id: 'ten_a', destination: 'http://b.test', now: 0, rows_max: 1 }],
    ]
    expect(new Set(searches.map((search) => key(...search))).size).toBe(searches.length)
  })

  test('two statements cannot have one name', () => {
    expect(() => sql('tenants.find', 'select 1')).toThrow('two statements are named tenants.find')
  })

  test('a refused definition does not replace the first', () => {
    const before = statements.get('tenants.find')
    expect(() => sql('tenants.find', 'select 1')).toThrow()
    expect(statements.get('tenants.find')).toBe(before!)
  })

  test.each([
    ['select a from t where b = :b', 'select a from t where b = $1', ['b'], false],
    [
      'update t set a = :a where b = :b and c <> :a',
      'update t set a = $1 where b = $2 and c <> $1',
      ['a', 'b'],
      true,
    ],
    ['insert into t values (:x, :long_name)', 'insert into t values ($1, $2)', ['x', 'long_name'], true],
    ['  \n delete from t ', 'delete from t', [], true],
    ['  \n SELECT 1 ', 'SELECT 1', [], false],
  ] as [string, string, string[], boolean][])(
    '%j is numbered and sorted into reads and writes',
    (text, numbered, params, writes) => {
      const statement = unnamedAcrossTenants('x', text)
      expect({ text: statement.text, params: [...statement.params], writes: statement.writes }).toEqual({
        text: numbered,
        params,
        writes,
      })
    },
  )

  test('bind puts values in the order of their numbers and refuses a missing one', () => {
    const statement = unnamedAcrossTenants('x', 'select :b, :a, :b')
    expect(bind(statement, { a: 1, b: null, unused: 3 })).toEqual([null, 1])
    expect(() => bind(statement, { b: 1 })).toThrow('x: no value for :a')
  })

  test('names are noun.verb', () => {
    const odd = [...statements.keys()].filter((name) => !/^[a-z_]+\.[a-z_]+$/.test(name))
    expect(odd).toEqual([])
    expect(statements.size).toBeGreaterThan(40)
  })

  test('runEffects runs every effect in order', () => {
    const ran: number[] = []
    runEffects([() => ran.push(1), () => ran.push(2)])
    expect(ran).toEqual([1, 2])
  })
})

describe('plans of statements on SQLite', () => {
  let plans: Map<string, string[]>
  beforeAll(() => {
    const connection = new Database(':memory:')
    const schema = migrations.map(({ text }) => render('sqlite', text)).join(';')
    connection.run(schema)
    plans = new Map(
      service_statements.map((statement) => [statement.name, sqlitePlanOf(connection, statement)]),
    )
    connection.close()
  })

  /** Names of statements with such a step. */
  const having = (step: RegExp) =>
    [...plans].flatMap(([name, steps]) => (steps.some((detail) => step.test(detail)) ? [name] : []))

  test('no statement reads a whole table, save those that are meant to', () => {
    const tables =
      'tenants|quota_usage|credentials|agents|approval_keys|kv_entries|audit_\\w+|idempotency_keys'
    expect(having(new RegExp(`^SCAN (${tables}|[a-z])( |$)`)).toSorted()).toEqual(whole_table)
  })

  test('no statement sorts what an index has in order, save those that are meant to', () => {
    // The list of counters sorts the keys that it passes, 10,100 at most, to take the last of them; numbering sorts the 500 events of
    // a step by workflow, and the list of a workflow's inboxes the page that it numbers.
    expect(having(/TEMP B-TREE FOR ORDER BY/).toSorted()).toEqual([
      ...['inbox.list_workflow', 'journal.number', 'ratelimit.list', 'tenants.all'],
    ])
  })
})

interface Checker {
  /** Why the engine does not take this statement, or null when it does. */
  refusal(statement: Statement<unknown>): Promise<string | null>
  close(): Promise<void>
}

/** Asks the engine itself, on a connection beside the driver. */
function checker(url: string): Checker {
  const path = sqlitePath(url)
  return path === null ? postgresChecker(url) : sqliteChecker(path)
}

function sqliteChecker(path: string): Checker {
  const connection = new Database(path)
  return {
    async refusal(statement) {
      const { params, read_back } = statement
      try {
        const { paramsCount } = connection.prepare(sqliteTextOf(statement))
        if (paramsCount !== params.length) return `${paramsCount} parameters`
        return read_back ? this.refusal(read_back) : null
      } catch (error) {
        return String(error)
      }
    },
    async close() {
      connection.close()
    },
  }
}

function postgresChecker(url: string): Checker {
  const connection = new SQL({ url, max: 1 })
  return {
    async refusal({ text, params }) {
      try {
        await connection.unsafe(`prepare checked as ${postgresText(text)}`).simple()
        const [row] = await connection.unsafe(
          `select array_length(parameter_types, 1) as count from pg_prepared_statements where name = 'checked'`,
        )
        await connection.unsafe('deallocate checked').simple()
        return (row.count ?? 0) === params.length ? null : `${row.count} parameters`
      } catch (error) {
        return String(error)
      }
    },
    async close() {
      await connection.close()
    },
  }
}

/** PostgreSQL itself counts the time that a lock may take, SQLite's driver does by the clock. */
async function whileTimePasses<T>(clock: TestClock, work: Promise<T>): Promise<T> {
  let is_done = false
  const settled = work.finally(() => {
    is_done = true
  })
  await until(() => {
    clock.advance(1_000)
    return is_done
  })
  return settled
}

/** Somebody else holds what a write of counter `a` needs. */
async function lockRow(url: string): Promise<() => Promise<void>> {
  const path = sqlitePath(url)
  if (path === null) {
    const other = new SQL({ url, max: 1 })
    await other.unsafe('begin').simple()
    await other.unsafe(`select n from counters where id = 'a' for update`)
    return async () => {
      await other.unsafe('rollback').simple()
      await other.close()
    }
  }
  const other = new Database(path)
  other.run('begin immediate')
  return async () => {
    other.run('rollback')
    other.close()
  }
}
