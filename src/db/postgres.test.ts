import { afterAll, beforeAll, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { startCrashCluster, type Tap, type Wire, wireTo } from '../../test/support/crash-postgres.ts'
import { onPostgres } from '../../test/support/databases.ts'
import { unhurried, until } from '../../test/support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from '../../test/support/postgres.ts'
import { randomFrom } from '../../test/support/random.ts'
import { rounds } from '../../test/support/rounds.ts'
import { type Db, type Statement, service, type Turn, type Tx, unnamedAcrossTenants, upkeep } from './db.ts'
import { DbError } from './errors.ts'
import { openPostgres } from './postgres.ts'
import { silent } from './postgres-queries.ts'

/** Of all callers together: counted and not timed, so that a slow machine tests as much. */
const operations_least = rounds(5_000, 15_000)
/** Of them, that commit, and that are undone. */
const each_least = rounds(800, 2_500)
/** A guard against an endless wait, not a measure: draining takes milliseconds. */
const drain_seconds_max = 60
const callers = 200
const connections_max = 4
const accounts = 50
const balance = 1_000
const callers_at_work = 20
/** Most statements that wait for the pool at once, of all tenants. */
const waiting_max = 2_000
/** Parameters of the widest statement. */
const width_max = 40

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table counters (id text primary key, n bigint not null)',
)
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADD = unnamedAcrossTenants('test.add', 'update counters set n = n + :n where id = :id')
const ADDED = unnamedAcrossTenants<{ n: number }>(
  'test.added',
  'update counters set n = n + :n where id = :id returning n',
)
const PATIENT = unnamedAcrossTenants(
  'test.patient',
  "select set_config('lock_timeout', '20s', true), set_config('deadlock_timeout', '100ms', true)",
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const TOTAL = unnamedAcrossTenants<{ total: string }>(
  'test.total',
  `select cast(sum(n) as text) as total from counters where id >= 'account-' and id < 'account.'`,
)

const open = (url: string, connections = connections_max) =>
  openPostgres(url, { clock: new TestClock(), connections_max: connections })

/** As TypeScript has no more than 26 letters for names: a, b, … z, aa, ab, … */
function letters(n: number): string {
  const last = String.fromCharCode(97 + (n % 26))
  return n < 26 ? last : letters(Math.floor(n / 26) - 1) + last
}

/** For each width a statement of that many parameters, which answers them. */
const WIDE: Statement<Record<string, number>>[] = Array.from({ length: width_max }, (_, i) => {
  const columns = Array.from({ length: i + 1 }, (_, c) => `cast(:p_${letters(c)} as bigint) as c${c}`)
  return unnamedAcrossTenants(`test.wide_${i + 1}`, `select ${columns.join(', ')}`)
})

function isUnanswered(error: unknown, kind: 'lost' | 'outcome_unknown'): boolean {
  return error instanceof DbError && error.kind === kind && error.message === silent
}

/** On a busy machine one may wait too long for its connection, or for an answer on it: then it does nothing. */
function isTooLate(error: unknown): boolean {
  return (error instanceof DbError && error.kind === 'busy') || isUnanswered(error, 'lost')
}

async function kindOf(action: () => unknown): Promise<string> {
  try {
    await action()
    return 'done'
  } catch (error) {
    return error instanceof DbError ? error.kind : String(error)
  }
}

onPostgres(`${callers} callers on ${connections_max} connections`, () => {
  let url: string
  beforeAll(async () => {
    url = await newPostgresDatabase()
  })
  afterAll(() => dropPostgresDatabase(url))

  test(`${operations_least} transactions, rollbacks and statements of 1 to ${width_max} parameters: sums exact, no row of another's, no stall at drain`, async () => {
    const db = await open(url)
    await db.write((tx) => tx.run(CREATE, {}))
    for (let i = 0; i < accounts; i++) {
      await db.write((tx) => tx.run(INSERT, { id: `account-${i}`, n: balance }))
    }
    const tally = { operations: 0, committed: 0, rolled_back: 0, faults: [] as string[] }
    let ended = false
    const running = Array.from({ length: callers }, async (_, caller) => {
      const mine = `caller-${caller}`
      await db.write(unhurried, (tx) => tx.run(INSERT, { id: mine, n: 0 }))
      const random = randomFrom(caller + 1)
      let added = 0
      while (!ended) {
        try {
          added += await OPERATIONS[random(OPERATIONS.length)]!({ db, mine, caller, random, added, tally })
          tally.operations += 1
        } catch (error) {
          if (!isTooLate(error)) throw error
        }
      }
      return added
    })
    while (tally.operations < operations_least || Math.min(tally.committed, tally.rolled_back) < each_least) {
      await Bun.sleep(10)
    }
    ended = true
    const drained = await notStalled(Promise.all(running))
    for (const [caller, added] of drained.entries()) {
      const kept = (await db.one(FIND, { id: `caller-${caller}` }))!.n
      if (kept !== added) tally.faults.push(`caller ${caller} added ${added}, kept are ${kept}`)
    }
    expect(tally.faults).toEqual([])
    expect(Number((await db.one(TOTAL, {}))!.total)).toBe(accounts * balance)
    await notStalled(db.close())
  }, 300_000)
})

interface Move {
  db: Db
  mine: string
  caller: number
  random: (below: number) => number
  /** The sum that this caller has added to its own counter so far. */
  added: number
  tally: { committed: number; rolled_back: number; faults: string[] }
}

/** Each answers what it added to the caller's own counter. */
const OPERATIONS: ((move: Move) => Promise<number>)[] = [
  async function transfer({ db, random, tally }) {
    const [from, to] = [random(accounts), random(accounts)].toSorted((a, b) => a - b) as [number, number]
    const transferring = db.write(async (tx) => {
      await tx.run(ADD, { id: `account-${from}`, n: -7 })
      await tx.run(ADD, { id: `account-${to}`, n: 7 })
    })
    if (await isKnown(transferring)) tally.committed += 1
    return 0
  },
  async function transferUndone({ db, random, tally }) {
    const undo = new Error('undo')
    const result = await endOf(() =>
      db.write(async (tx) => {
        await tx.run(ADD, { id: `account-${random(accounts)}`, n: -13 })
        await wide(tx, random, tally)
        throw undo
      }),
    )
    if (result !== String(undo)) tally.faults.push(`undone: ${result}`)
    tally.rolled_back += 1
    return 0
  },
  async function refusedHalfWay({ db, mine, random, tally }) {
    const result = await endOf(() =>
      db.write(async (tx) => {
        await tx.run(ADD, { id: `account-${random(accounts)}`, n: -17 })
        await tx.run(INSERT, { id: mine, n: 1 })
      }),
    )
    if (result !== 'unique') tally.faults.push(`duplicate: ${result}`)
    tally.rolled_back += 1
    return 0
  },
  async function addToMine({ db, mine, random, added, tally }) {
    const n = 1 + random(100)
    let now = added
    const adding = db.write(async (tx) => {
      now = (await tx.one(ADDED, { id: mine, n }))!.n
    })
    if (!(await isKnown(adding))) {
      now = await settled(db, mine)
      if (now === added) return 0
    }
    if (now !== added + n) tally.faults.push(`${mine}: ${now} after ${added} + ${n}`)
    tally.committed += 1
    return n
  },
  async function readMine({ db, mine, added, tally }) {
    const found = (await db.one(FIND, { id: mine }))?.n
    if (found !== added) tally.faults.push(`${mine}: read ${found} instead of ${added}`)
    return 0
  },
  async function readTotal({ db, mine, added, tally }) {
    const [total, own] = await db.read(async (q) => [
      (await q.one(TOTAL, {}))!.total,
      (await q.one(FIND, { id: mine }))!.n,
    ])
    if (Number(total) !== accounts * balance) tally.faults.push(`the total was ${total}`)
    if (own !== added) tally.faults.push(`${mine}: saw ${own} instead of ${added}`)
    return 0
  },
  async function manyParameters({ db, random, tally }) {
    await wide(db, random, tally)
    return 0
  },
]

/** As `kindOf`. Throws when it came too late to do anything. */
async function endOf(action: () => Promise<unknown>): Promise<string> {
  try {
    await action()
    return 'done'
  } catch (error) {
    if (isTooLate(error)) throw error
    return kindOf(() => Promise.reject(error))
  }
}

/** False when the commit had no answer in time: then all of it was done, or nothing. */
async function isKnown(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing
    return true
  } catch (error) {
    if (isUnanswered(error, 'outcome_unknown')) return false
    throw error
  }
}

/** The counter of a caller once no transaction of before holds it any more. */
async function settled(db: Db, mine: string): Promise<number> {
  for (;;) {
    try {
      return await db.write(unhurried, async (tx) => (await tx.one(ADDED, { id: mine, n: 0 }))!.n)
    } catch (error) {
      if (!isTooLate(error)) throw error
    }
  }
}

/** Checks that a statement gets its own answer, by values that no other statement sends. */
async function wide(
  q: Pick<Db | Tx, 'one'>,
  random: Move['random'],
  { faults }: Move['tally'],
): Promise<void> {
  const width = 1 + random(width_max)
  const sent = Array.from({ length: width }, () => random(2 ** 31))
  const params = Object.fromEntries(sent.map((value, c) => [`p_${letters(c)}`, value]))
  const row = await q.one(WIDE[width - 1]!, params)
  const came = Object.values(row ?? {})
  if (came.join() !== sent.join()) faults.push(`sent ${sent.join()}, got ${came.join()}`)
}

/** Ends a wait that would have no end. */
async function notStalled<T>(promise: Promise<T>): Promise<T> {
  let timer: Timer | undefined
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('stalled')), drain_seconds_max * 1_000)
  })
  try {
    return await Promise.race([promise, stalled])
  } finally {
    clearTimeout(timer)
  }
}

onPostgres('a pool', () => {
  let url: string
  let db: Db
  beforeAll(async () => {
    url = await newPostgresDatabase()
    db = await open(url)
    await db.write((tx) => tx.run(CREATE, {}))
  })
  afterAll(async () => {
    await db.close()
    await dropPostgresDatabase(url)
  })

  test('one tenant may have 1,000 statements and transactions waiting; one more is refused as busy and does nothing, and another is served', async () => {
    await db.write((tx) => tx.run(INSERT, { id: 'queue', n: 0 }))
    const add = (tenant_id: string, n: number) =>
      kindOf(() => db.write(tenant_id, (tx) => tx.run(ADD, { id: 'queue', n })))
    const read = (tenant_id: string) => kindOf(() => db.read(tenant_id, (q) => q.one(FIND, { id: 'queue' })))
    const half = waiting_max / 4
    let sure = 0
    let unsure = 0
    // A machine that stands still for longer than callers wait makes some of them give up: then the round does not count.
    for (let whole = 0, tries = 0; whole < 2; tries++) {
      expect(tries).toBeLessThan(20)
      const reads = Array.from({ length: half + connections_max }, () => read('busy'))
      const adds = Array.from({ length: half }, () => add('busy', 1))
      const others = [add('other', 0), read('another')]
      expect([await add('busy', 1_000_000), await read('busy')]).toEqual(['busy', 'busy'])
      const added = await Promise.all(adds)
      const ends = [...(await Promise.all([...reads, ...others])), ...added]
      sure += added.filter((kind) => kind === 'done').length
      unsure += added.filter((kind) => kind === 'outcome_unknown').length
      const { n } = (await db.one(FIND, { id: 'queue' }))!
      expect(n).toBeGreaterThanOrEqual(sure)
      expect(n).toBeLessThanOrEqual(sure + unsure)
      if (ends.every((kind) => kind === 'done')) whole += 1
    }
  }, 300_000)

  test('runs the loser of a deadlock again', async () => {
    for (const id of ['left', 'right']) await db.write((tx) => tx.run(INSERT, { id, n: 0 }))
    let runs = 0
    let holding = 0
    let both: () => void
    const both_hold_one = new Promise<void>((resolve) => {
      both = resolve
    })
    const one_is_done = Promise.withResolvers<void>()
    const cross = async (first: string, second: string) => {
      let tries = 0
      // A busy machine finds a deadlock later than a caller gives up.
      await db.write(unhurried, async (tx) => {
        runs += 1
        tries += 1
        // The loser could be quicker than the other, and lock the same rows across once more.
        if (tries > 1) await one_is_done.promise
        await tx.one(PATIENT, {})
        await tx.run(ADD, { id: first, n: 1 })
        holding += 1
        if (holding === 2) both()
        await both_hold_one
        await tx.run(ADD, { id: second, n: 1 })
      })
      one_is_done.resolve()
    }
    await Promise.all([cross('left', 'right'), cross('right', 'left')])
    expect(runs).toBe(3)
    expect((await db.one(FIND, { id: 'left' }))!.n).toBe(2)
    expect((await db.one(FIND, { id: 'right' }))!.n).toBe(2)
  }, 300_000)

  const CONFLICT = unnamedAcrossTenants('test.conflict', `do 'begin raise exception sqlstate ''40001''; end'`)
  test.each([
    [3, 'done', 4],
    [4, 'busy', 4],
  ])('after %d conflicts in a row a write is %s', async (conflicts, end, runs_expected) => {
    let runs = 0
    let effects = 0
    const kind = await kindOf(() =>
      db.write(async (tx) => {
        runs += 1
        tx.afterCommit(() => {
          effects += 1
        })
        if (runs <= conflicts) await tx.run(CONFLICT, {})
      }),
    )
    expect({ kind, runs, effects }).toEqual({
      kind: end,
      runs: runs_expected,
      effects: end === 'done' ? 1 : 0,
    })
  })

  test('sets up every connection of it', async () => {
    const names = [
      'application_name',
      'statement_timeout',
      'lock_timeout',
      'idle_in_transaction_session_timeout',
    ]
    const SETTINGS = unnamedAcrossTenants<Record<string, string>>(
      'test.settings',
      `select ${names.map((name) => `current_setting('${name}') as ${name}`).join(', ')}, pg_backend_pid() as pid`,
    )
    const onAll = async (turn: Turn, count: number) => {
      const all_in_use = Promise.withResolvers<void>()
      let in_use = 0
      const write = () =>
        db.write(turn, async (tx) => {
          in_use += 1
          if (in_use === connections_max) all_in_use.resolve()
          await all_in_use.promise
          await tx.one(FIND, { id: 'anything' })
          return (await tx.one(SETTINGS, {}))!
        })
      return Promise.all(Array.from({ length: count }, write))
    }
    await onAll(unhurried, connections_max) // to open them may take a busy machine longer than a caller waits
    const rows = await onAll(service, 40)
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(connections_max)
    for (const { pid: _, ...settings } of rows) {
      expect(settings).toEqual({
        application_name: 'waystation',
        statement_timeout: '2500ms',
        lock_timeout: '2s',
        idle_in_transaction_session_timeout: '10s',
      })
    }
  })
})

onPostgres('a PostgreSQL that goes away', () => {
  test('calls meanwhile fail as lost, later ones go well on the same Db, and nothing acknowledged is gone', async () => {
    const cluster = await startCrashCluster()
    const db = await open(cluster.url)
    const add = () => db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    const find = () => db.one(FIND, { id: 'a' })
    const calls: (() => unknown)[] = [
      find,
      () => db.all(FIND, { id: 'a' }),
      () => db.read((q) => q.one(FIND, { id: 'a' })),
      () => db.write((tx) => tx.one(FIND, { id: 'a' })),
    ]
    try {
      await db.write((tx) => tx.run(CREATE, {}))
      await db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
      const ends: Record<string, number> = { done: 0, lost: 0, outcome_unknown: 0 }
      for (const outage of [1, 2]) {
        const at_work = Array.from({ length: callers_at_work }, async () => {
          for (let kind = 'done'; kind === 'done'; ) {
            kind = await kindOf(add)
            ends[kind] = (ends[kind] ?? 0) + 1
          }
        })
        while (ends.done! <= outage * callers_at_work) await find()
        await cluster.stopImmediately()
        await Promise.all(at_work)
        for (const call of calls) expect(await kindOf(call)).toBe('lost')
        await cluster.start()
        await until(async () => (await kindOf(find)) === 'done') // a connection is tried again after a pause
        for (const call of calls) expect(await kindOf(call)).toBe('done')
        const { n } = (await find())!
        expect(n).toBeGreaterThanOrEqual(ends.done!)
        expect(n).toBeLessThanOrEqual(ends.done! + ends.outcome_unknown!)
        expect(ends.lost! + ends.outcome_unknown!).toBe(outage * callers_at_work)
      }
      expect(Object.keys(ends)).toEqual(['done', 'lost', 'outcome_unknown'])
      expect(ends.done).toBeGreaterThan(callers_at_work)
    } finally {
      await db.close()
      await cluster.remove()
    }
  }, 300_000)
})

async function openedOverWire(): Promise<{ url: string; wire: Wire; db: Db }> {
  const url = await newPostgresDatabase()
  const wire = await wireTo(url)
  const db = await open(wire.url, 2)
  await db.write((tx) => tx.run(CREATE, {}))
  return { url, wire, db }
}

onPostgres('a connection that is cut', () => {
  let url: string
  let wire: Wire
  let db: Db
  beforeAll(async () => {
    ;({ url, wire, db } = await openedOverWire())
  })
  afterAll(async () => {
    await db.close()
    wire.close()
    await dropPostgresDatabase(url)
  })

  /** Cuts the first piece that holds this word, once. */
  function cutting(word: RegExp, how: ReturnType<Tap>): Tap {
    let done = false
    return (bytes) => {
      if (done || !word.test(bytes.toString('latin1'))) return 'pass'
      done = true
      return how
    }
  }

  const cases: [string, RegExp, ReturnType<Tap>, string, number][] = [
    ['before COMMIT reached the server', /^Q.{4}COMMIT/s, 'cut_before', 'outcome_unknown', 0],
    ['after the server had committed', /^Q.{4}COMMIT/s, 'cut_after', 'outcome_unknown', 1],
    ['before BEGIN', /^Q.{4}BEGIN/s, 'cut_before', 'lost', 0],
    ['at a statement of the work', /update counters|^B.+at a statement/s, 'cut_before', 'lost', 0],
  ]
  test('before the answer to a read', async () => {
    await db.write((tx) => tx.run(INSERT, { id: 'read', n: 5 }))
    const reads: [string, () => unknown][] = [
      ['a single statement', () => db.one(FIND, { id: 'read' })],
      ['a consistent read', () => db.read((q) => q.one(FIND, { id: 'read' }))],
    ]
    for (const [, read] of reads) {
      wire.tap = cutting(/select n from counters|^B.+read/s, 'cut_after')
      expect(await kindOf(read)).toBe('lost')
      wire.tap = () => 'pass'
      expect(await read()).toEqual({ n: 5 })
    }
  })

  test.each(cases)('%s', async (name, word, how, kind, found) => {
    await db.write((tx) => tx.run(INSERT, { id: name, n: 0 }))
    wire.tap = cutting(word, how)
    let effects = 0
    const result = await kindOf(() =>
      db.write(async (tx) => {
        tx.afterCommit(() => {
          effects += 1
        })
        await tx.run(ADD, { id: name, n: 1 })
      }),
    )
    wire.tap = () => 'pass'
    expect(result).toBe(kind)
    expect(effects).toBe(0)
    expect((await db.one(FIND, { id: name }))!.n).toBe(found)
  })
})

onPostgres('a PostgreSQL that says nothing on connections that stay open', () => {
  const SLEEP = unnamedAcrossTenants('test.sleep', 'select pg_backend_pid() as pid from pg_sleep(4)')
  const PID = unnamedAcrossTenants<{ pid: number }>('test.pid', 'select pg_backend_pid() as pid')
  const findBy = (db: Db) => db.one(FIND, { id: 'a' })
  const addBy = (db: Db) => db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))

  /** Most of the time of these tests is waiting for limits: they run side by side, each on a database of its own. */
  function waiting(name: string, run: (opened: { url: string; wire: Wire; db: Db }) => Promise<void>): void {
    test.concurrent(name, async () => {
      const opened = await openedOverWire()
      try {
        await opened.db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
        await run(opened)
      } finally {
        await opened.db.close()
        opened.wire.close()
        await dropPostgresDatabase(opened.url)
      }
    }, 300_000)
  }

  waiting(
    'every call is answered, what had no connection as busy; later ones go well on other connections',
    async ({ db, wire }) => {
      const [find, add] = [() => findBy(db), () => addBy(db)]
      await Promise.all([add(), add()])
      wire.tap = () => 'swallow'
      const calls = [find, () => db.read((q) => q.one(FIND, { id: 'a' })), add, find]
      const kinds = await Promise.all(calls.map(kindOf))
      expect(kinds).toEqual(['lost', 'lost', 'busy', 'busy'])
      wire.tap = () => 'pass'
      expect(await find()).toEqual({ n: 2 })
    },
  )

  waiting('readiness is refused, and comes back', async ({ db, wire }) => {
    wire.tap = () => 'swallow'
    expect(await kindOf(() => db.durability())).toBe('lost')
    wire.tap = () => 'pass'
    await until(async () => (await kindOf(() => db.durability())) === 'done')
    expect(await db.durability()).toMatchObject({ fsync: 'on' })
  })

  const moments: [name: string, word: RegExp, kind: string][] = [
    ['in the middle of a write: it is lost, and is not done later either', /update counters|^B/s, 'lost'],
    ['at COMMIT: the outcome is unknown', /^Q.{4}COMMIT/s, 'outcome_unknown'],
  ]
  for (const [name, word, kind] of moments) {
    waiting(name, async ({ db, wire }) => {
      let silent = false
      wire.tap = (bytes) => {
        silent ||= word.test(bytes.toString('latin1'))
        return silent ? 'swallow' : 'pass'
      }
      expect(await kindOf(() => addBy(db))).toBe(kind)
      wire.tap = () => 'pass'
      expect(await findBy(db)).toEqual({ n: 0 })
    })
  }

  waiting('a write that nobody waits for any more goes no further', async ({ url }) => {
    const own = await open(url, 1)
    await own.write((tx) => tx.run(INSERT, { id: 'b', n: 0 }))
    const lingering = Promise.withResolvers<void>()
    const slow = kindOf(() =>
      own.write(async (tx) => {
        await tx.run(ADD, { id: 'b', n: 1 })
        await lingering.promise
        await tx.run(ADD, { id: 'b', n: 1 })
      }),
    )
    expect(await slow).toBe('lost')
    lingering.resolve()
    expect(await own.one(FIND, { id: 'b' })).toEqual({ n: 0 })
    await own.write((tx) => tx.run(ADD, { id: 'b', n: 1 })) // the lock of its row is free again
    expect(await own.one(FIND, { id: 'b' })).toEqual({ n: 1 })
    await own.close()
  })

  waiting(
    'a statement that takes too long is ended by the server, and its connection goes on',
    async (its) => {
      const own = await open(its.url, 1)
      const { pid } = (await own.one(PID, {}))!
      // A machine that stands still hears of that end later than a caller waits.
      await until(async () => {
        const kind = await kindOf(() => own.one(SLEEP, {}))
        expect(['busy', 'lost']).toContain(kind)
        return kind === 'busy'
      })
      expect(await own.one(PID, {})).toEqual({ pid })
      await own.close()
    },
  )

  const patient_turns: [whose: string, turn: Turn][] = [
    ['upkeep', upkeep],
    ['a migration', { key: 'migration', ms_max: null }],
  ]
  for (const [whose, turn] of patient_turns) {
    waiting(`the work of ${whose} may take longer`, async ({ url }) => {
      const own = await open(url, 1)
      const { pid } = (await own.one(PID, {}))!
      expect(await own.write(turn, (tx) => tx.one(SLEEP, {}))).toEqual({ pid } as never)
      expect(await own.read(turn, (q) => q.one(SLEEP, {}))).toEqual({ pid } as never)
      expect(await own.one(PID, {})).toEqual({ pid })
      await own.close()
    })
  }
})
