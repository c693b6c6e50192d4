import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { endOf, onPostgres } from '../../test/support/databases.ts'
import { unhurried, until } from '../../test/support/patience.ts'
import { administer, dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { Door, type Refusal, starting_up } from '../../test/support/postgres-door.ts'
import { type Db, type Turn, unnamedAcrossTenants } from './db.ts'
import { DbError, isLost } from './errors.ts'
import { openPostgres } from './postgres.ts'
import type { Complaint } from './postgres-complaints.ts'
import type { ServerListener } from './postgres-options.ts'
import { Outages } from './postgres-outage.ts'

const connections_max = 4
const calls_in_outage = 500

const CREATE = unnamedAcrossTenants('test.create', 'create table counters (id text primary key, n bigint)')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, 1)')
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const PID = unnamedAcrossTenants<{ pid: number }>('test.pid', 'select pg_backend_pid() as pid')
const HURRY = unnamedAcrossTenants('test.hurry', "set local idle_in_transaction_session_timeout = '1ms'")
const WRONG = unnamedAcrossTenants('test.wrong', 'select nothing from nowhere')

/** The reports, in order. */
class Reports implements ServerListener {
  readonly lines: (string | number)[][] = []
  readonly complaints: Complaint[] = []

  onAway: ServerListener['onAway'] = ({ server, ms, reason }) => {
    this.lines.push(['away', server, ms, reason])
  }

  onBack: ServerListener['onBack'] = ({ server, ms }) => {
    this.lines.push(['back', server, ms])
  }

  onComplaint: ServerListener['onComplaint'] = (complaint) => {
    this.complaints.push(complaint)
  }
}

onPostgres('An outage of PostgreSQL', () => {
  let url: string
  let door: Door
  let db: Db
  let clock: TestClock
  let reports: Reports
  let id = 0
  let effects = 0

  beforeAll(async () => {
    url = await newPostgresDatabase()
    const direct = await openPostgres(url, { clock: new TestClock() })
    await direct.write((tx) => tx.run(CREATE, {}))
    await direct.close()
  })
  beforeEach(() => {
    effects = 0
  })
  afterAll(() => dropPostgresDatabase(url))

  /** With a database that is opened through a door. */
  async function through(work: () => Promise<void>): Promise<void> {
    door = await Door.before(url)
    clock = new TestClock()
    reports = new Reports()
    db = await openPostgres(door.url, { clock, connections_max, server_listener: reports })
    try {
      await work()
    } finally {
      await db.close()
      door.close()
    }
  }

  const find = () => db.one(FIND, { id: 'a' })
  /** Calls have all connections, and the server ends so many of them and lets nobody in any more. */
  const lose = async (count: number, refusal: Refusal) => {
    const pids: number[] = []
    const ended = Promise.withResolvers<void>()
    const look = (_: unknown, i: number) =>
      endOf(() =>
        db.read({ key: `tenant ${i}`, ms_max: null }, async (q) => {
          pids.push((await q.one(PID, {}))!.pid)
          await ended.promise
          await q.one(PID, {})
        }),
      )
    const looks = Promise.all(Array.from({ length: connections_max }, look))
    await until(() => pids.length === connections_max)
    door.does = refusal
    const listed = `unnest(array[${pids.slice(0, count)}]) as listed (pid)`
    await administer(
      url.slice(0, url.lastIndexOf('/')),
      `select pg_terminate_backend(pid, 5000) from ${listed}`,
    )
    ended.resolve()
    expect((await looks).filter((one) => one !== 'done')).toHaveLength(count)
  }
  const callsAreRefused = () =>
    until(async () => {
      await endOf(find)
      return db.is_away
    })
  const put = (turn: Turn) =>
    db.write(turn, (tx) => {
      tx.afterCommit(() => {
        effects += 1
      })
      return tx.run(INSERT, { id: `row-${id++}` })
    })
  const calls: [name: string, call: () => unknown][] = [
    ['a statement', find],
    ['a consistent read', () => db.read((q) => q.one(FIND, { id: 'a' }))],
    ['a write', () => put({ key: 'tenant' })],
    ['a write that may share a transaction', () => put({ key: 'tenant', batch: { line: 'tenant' } })],
    ['the question of readiness', () => db.durability()],
    ['a signal', () => db.notify('a text')],
    ['taking a role', () => db.takeRole('waystation_tenant')],
  ]

  test(`of ${calls_in_outage} calls none opens a connection, each is refused at once with the same error, and one probe at a time tries`, async () => {
    await through(async () => {
      await find()
      door.shut(starting_up)
      const refused = `lost: ${starting_up.message}`
      await until(async () => (await endOf(find)) === refused)
      expect(db.is_away).toBe(true)
      await until(() => door.outside === 0)
      door.most_at_once = 0
      const ends = new Set<string>()
      for (let i = 0; i < calls_in_outage; i++) ends.add(await endOf(calls[i % calls.length]![1]))
      const many = Array.from({ length: calls_in_outage }, () =>
        endOf(() => put({ key: 'tenant', batch: { line: 'tenant' } })),
      )
      for (const end of await Promise.all(many)) ends.add(end)
      const came = door.count
      await until(() => door.count >= came + 3)
      expect([...ends]).toEqual([refused])
      expect(door.most_at_once).toBe(1)
      expect(effects).toBe(0)
      door.does = 'pass'
      await until(() => !db.is_away)
      for (const [name, call] of calls.slice(0, -1)) expect([name, await endOf(call)]).toEqual([name, 'done'])
      expect(effects).toBe(2)
    })
  })

  const refusals: [name: string, refusal: Refusal][] = [
    ['starts up', starting_up],
    ['has no room for one more', { state: '53300', message: 'sorry, too many clients already' }],
    ['has no such database', { state: '3D000', message: 'database "gone" does not exist' }],
    ['knows another password', { state: '28P01', message: 'password authentication failed for user "w"' }],
    ['does not let this client in', { state: '28000', message: 'no pg_hba.conf entry for host' }],
  ]
  test.each(refusals)(
    'begins when the server %s, and is over once it opens connections',
    async (_, refusal) => {
      await through(async () => {
        await find()
        door.shut(refusal)
        await until(async () => (await endOf(find)) === `lost: ${refusal.message}`)
        expect(db.is_away).toBe(true)
        expect(await endOf(() => put({ key: 'tenant' }))).toBe(`lost: ${refusal.message}`)
        clock.advance(4_000)
        door.does = 'pass'
        await until(() => !db.is_away)
        expect(await endOf(find)).toBe('done')
        expect(reports.lines).toEqual([
          ['away', door.host, 0, refusal.message],
          ['back', door.host, 4_000],
        ])
      })
    },
  )

  test.each(refusals)(
    'is none of a start: one that finds that the server %s ends with one error, which names it',
    async (_, refusal) => {
      const shut = await Door.before(url)
      shut.does = refusal
      const heard = new Reports()
      const start = () => openPostgres(shut.url, { clock: new TestClock(), server_listener: heard })
      expect(await endOf(start)).toBe(`lost: PostgreSQL at ${shut.host}: ${refusal.message}`)
      expect(heard.lines).toEqual([])
      shut.close()
    },
  )

  test('is none of a start that waits for a connection as long as one may take, which is what its error says', async () => {
    const shut = await Door.before(url)
    shut.does = 'hold'
    const start = () => openPostgres(shut.url, { clock: new TestClock() })
    expect(await endOf(start)).toStartWith(`lost: PostgreSQL at ${shut.host}: Connection timeout after 2s `)
    shut.close()
  })

  test.each([
    [
      'accepts no connections to the database',
      { state: '55000', message: 'not currently accepting connections' },
    ],
    ['has taken the right to connect away', { state: '42501', message: 'permission denied for database' }],
    ['is a pooler that has no server', { state: 'XX000', message: 'no server is available' }],
  ] as [string, Refusal][])('begins when the server %s, and no call fails otherwise', async (_, refusal) => {
    await through(async () => {
      await find()
      door.shut(refusal)
      const ends: string[] = []
      await until(async () => {
        const many = Array.from({ length: 4 * connections_max }, (_, i) => endOf(calls[i % 4]![1]))
        ends.push(...(await Promise.all(many)))
        return db.is_away
      })
      expect(ends.filter((end) => !end.startsWith('lost: '))).toEqual([])
      expect(await endOf(find)).toBe(`lost: ${refusal.message}`)
      door.does = 'pass'
      await until(() => !db.is_away)
      expect(await endOf(find)).toBe('done')
    })
  })

  test.each([
    ['is left unanswered', 'hold', /^lost: Connection timeout after 2s /],
    ['is closed without a word', 'drop', /^lost: Connection closed before /],
  ] as const)('begins when a connection that opens %s', async (_, does, message) => {
    await through(async () => {
      door.shut(does)
      await callsAreRefused()
      expect(await endOf(find)).toMatch(message)
      door.does = 'pass'
      await until(() => !db.is_away)
      expect(await endOf(find)).toBe('done')
    })
  })

  test('begins when nobody listens', async () => {
    await through(async () => {
      door.close()
      await until(async () => (await endOf(find)) === 'lost: Failed to connect')
      expect(db.is_away).toBe(true)
      expect(reports.lines).toEqual([['away', door.host, 0, 'Failed to connect']])
    })
  })

  test('begins by itself when a call loses its connection and no other can be opened', async () => {
    await through(async () => {
      const running = Promise.withResolvers<void>()
      const losing = endOf(() =>
        db.read(async (q) => {
          await q.one(PID, {})
          running.resolve()
          await until(() => door.does !== 'pass')
          await q.one(PID, {})
        }),
      )
      await running.promise
      door.shut(starting_up)
      expect(await losing).toMatch(/^lost: /)
      await until(() => db.is_away)
      expect(reports.lines).toEqual([['away', door.host, 0, starting_up.message]])
    })
  })

  test('does not begin with a connection that the server ends: another one opens, and calls go well', async () => {
    await through(async () => {
      for (let round = 0; round < 3; round++) {
        const killed = await endOf(() =>
          db.read(async (q) => {
            const { pid } = (await q.one(PID, {}))!
            await administer(url.slice(0, url.lastIndexOf('/')), `select pg_terminate_backend(${pid})`)
            await q.one(PID, {})
          }),
        )
        expect(killed).toMatch(/^lost: /)
        for (let i = 0; i < 20; i++) expect(await endOf(find)).toBe('done')
      }
      expect([db.is_away, reports.lines]).toEqual([false, []])
    })
  })

  test('does not begin with a transaction that stood idle for too long, as when the machine of the service slept', async () => {
    await through(async () => {
      const admin = url.slice(0, url.lastIndexOf('/'))
      const slept = await endOf(() =>
        db.write(unhurried, async (tx) => {
          const { pid } = (await tx.one(PID, {}))!
          await tx.run(HURRY, {})
          const here = `select from pg_stat_activity where pid = ${pid}`
          await until(async () => (await administer(admin, here)).length === 0)
          await tx.one(PID, {})
        }),
      )
      expect(slept).toMatch(/^lost: /)
      expect(await endOf(find)).toBe('done')
      expect([db.is_away, reports.lines]).toEqual([false, []])
    })
  })

  test('does not begin with a statement that fails, for whatever reason', async () => {
    await through(async () => {
      await find()
      const came = door.count
      const raise = (state: string) =>
        unnamedAcrossTenants(
          `test.raise_${state.toLowerCase()}`,
          `do 'begin raise exception sqlstate ''${state}''; end'`,
        )
      const ends: string[] = []
      for (const state of ['23505', '40001', '57014', '53100', '53200', '25006', '08006'])
        ends.push((await endOf(() => db.write((tx) => tx.run(raise(state), {})))).split(':')[0]!)
      expect(ends).toEqual(['unique', 'busy', 'busy', 'full', 'busy', 'lost', 'lost'])
      expect(await endOf(() => db.one(WRONG, {}))).toContain('does not exist')
      for (let i = 0; i < 20; i++) expect(await endOf(find)).toBe('done')
      expect([db.is_away, reports.lines, door.count]).toEqual([false, [], came])
    })
  })

  test('does not begin while some connections are there, although the server lets no more in: calls go well on these', async () => {
    await through(async () => {
      await lose(connections_max / 2, { state: '28P01', message: 'password authentication failed' })
      const ends = new Set<string>()
      for (let round = 0; round < 20; round++) {
        const many = Array.from({ length: 2 * connections_max }, (_, i) => endOf(calls[i % 4]![1]))
        for (const one of await Promise.all(many)) ends.add(one)
      }
      expect([...ends]).toEqual(['done'])
      expect([db.is_away, reports.lines]).toEqual([false, []])
    })
  })

  test('does not begin while a transaction has the only connection left: calls wait for it', async () => {
    await through(async () => {
      await lose(connections_max - 1, starting_up)
      const waiting: Promise<string>[] = []
      const end = await endOf(() =>
        db.write(unhurried, async (tx) => {
          await tx.one(PID, {})
          for (let i = 0; i < 10; i++) waiting.push(endOf(calls[i % 4]![1]))
          await tx.run(INSERT, { id: `row-${id++}` })
        }),
      )
      expect([end, ...new Set(await Promise.all(waiting))]).toEqual(['done', 'done'])
      expect([db.is_away, reports.lines]).toEqual([false, []])
    })
  })

  test('does not keep a database from being closed, after which calls are refused as closed', async () => {
    await through(async () => {
      door.shut('hold')
      await callsAreRefused()
      const came = door.count
      await until(() => door.count > came) // a probe is under way
      await db.close()
      expect(await endOf(find)).toBe('lost: the database is closed')
    })
  })
})

describe('The state of outages', () => {
  class Failure extends Error {
    code = 'ERR_POSTGRES_CONNECTION_REFUSED'
  }
  const ended = Object.assign(new Error('killed'), { severity: 'FATAL', errno: '57P01' })

  /** Timers that a test lets run, with their times. */
  function world() {
    const timers: { ms: number; run: () => void }[] = []
    const set = spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) => {
      timers.push({ run, ms })
      return { unref() {} }
    }) as never)
    const clock = new TestClock()
    const reports = new Reports()
    let answer: unknown = new Failure('refused')
    let probes = 0
    const ask = async () => {
      if (answer) throw answer
      return []
    }
    const probe = () => {
      probes += 1
      return ask()
    }
    const outages = new Outages('db:5432', clock, { ask, probe }, reports)
    outages.start()
    return {
      ...{ clock, outages, timers, lines: reports.lines },
      answer(next: unknown) {
        answer = next
      },
      probes: () => probes,
      /** The last pause is over. */
      async look() {
        timers.at(-1)!.run()
        for (let i = 0; i < 10; i++) await Promise.resolve()
      },
      [Symbol.dispose]: () => set.mockRestore(),
    }
  }

  test('pauses double from 50 to 500 ms, each cut by up to half', async () => {
    using its = world()
    its.outages.notice(new Failure('refused'), 0)
    for (let i = 0; i < 6; i++) await its.look()
    const longest = [50, 100, 200, 400, 500, 500, 500]
    expect(its.timers).toHaveLength(longest.length)
    for (const [i, ms] of longest.entries()) {
      expect(its.timers[i]!.ms).toBeLessThanOrEqual(ms)
      expect(its.timers[i]!.ms).toBeGreaterThanOrEqual(ms / 2)
    }
  })

  test('it is reported when it begins, once a minute, and when it is over', async () => {
    using its = world()
    its.outages.notice(new Failure('refused'), 0)
    its.clock.advance(59_999)
    await its.look()
    expect(its.lines).toHaveLength(1)
    its.clock.advance(1)
    its.answer(new Failure('refused for another reason'))
    await its.look()
    await its.look()
    its.clock.advance(30_000)
    await its.look()
    its.answer(null)
    await its.look()
    expect(its.lines).toEqual([
      ['away', 'db:5432', 0, 'refused'],
      ['away', 'db:5432', 60_000, 'refused for another reason'],
      ['back', 'db:5432', 90_000],
    ])
  })

  test('one that begins within 10 s of the last is reported when they are over, and goes on with longer pauses', async () => {
    using its = world()
    const outage = async () => {
      its.answer(new Failure('refused'))
      its.outages.notice(new Failure('refused'), its.outages.count)
    }
    const over = async () => {
      its.answer(null)
      await its.look()
      expect(its.outages.is_on).toBe(false)
    }
    await outage()
    await over()
    its.clock.advance(9_000)
    await outage()
    expect(its.timers.at(-1)!.ms).toBeGreaterThan(50)
    await over()
    expect(its.lines).toHaveLength(2)
    await outage()
    its.clock.advance(999)
    await its.look()
    expect(its.lines).toHaveLength(2)
    its.clock.advance(1)
    await its.look()
    await over()
    its.clock.advance(10_000)
    await outage()
    expect(its.timers.at(-1)!.ms).toBeLessThanOrEqual(50)
    expect(its.lines).toEqual([
      ['away', 'db:5432', 0, 'refused'],
      ['back', 'db:5432', 0],
      ['away', 'db:5432', 1_000, 'refused'],
      ['back', 'db:5432', 1_000],
      ['away', 'db:5432', 0, 'refused'],
    ])
  })

  test('a failure of a call that began before the last outage is looked into, and begins none by itself', async () => {
    using its = world()
    its.outages.notice(new Failure('refused'), 0)
    its.answer(null)
    await its.look()
    its.outages.notice(new Failure('late'), 0)
    expect([its.outages.is_on, its.probes()]).toEqual([false, 2])
    await Promise.resolve()
    expect(its.lines).toHaveLength(2)
  })

  test('however many lose their connections, one probe looks into it', async () => {
    using its = world()
    its.answer(null)
    for (let i = 0; i < 100; i++) its.outages.notice(ended, 0)
    expect([its.outages.is_on, its.probes()]).toEqual([false, 1])
  })

  test('a probe that gets no answer in time begins none, and ends none', async () => {
    using its = world()
    its.answer(new DbError('lost', 'the database does not answer'))
    its.outages.notice(ended, 0)
    for (let i = 0; i < 10; i++) await Promise.resolve()
    expect(its.outages.is_on).toBe(false)
    its.outages.notice(new Failure('refused'), 0)
    await its.look()
    expect([its.outages.is_on, its.outages.refusal().message]).toEqual([true, 'the database does not answer'])
    its.answer(new Error('an answer of the server'))
    await its.look()
    expect(its.outages.is_on).toBe(false)
  })

  test('a refusal is lost, with the failure as its cause, and after a stop nothing begins', async () => {
    using its = world()
    const failure = new Failure('refused')
    its.outages.notice(failure, 0)
    const refusal = its.outages.refusal()
    expect([isLost(refusal), refusal.cause]).toEqual([true, failure])
    its.answer(null)
    await its.look()
    its.outages.stop()
    its.outages.notice(failure, its.outages.count)
    expect(its.outages.is_on).toBe(false)
  })
})
