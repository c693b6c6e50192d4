import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { log_bytes, sqlite_pragmas } from './connection-settings.ts'
import { type Db, type Owner, type Tx, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table counters (id text primary key, n integer not null) strict',
)
const CREATE_OWNED = unnamedAcrossTenants(
  'test.create_owned',
  'create table owned (owner text not null references counters (id) deferrable initially deferred) strict',
)
const OWN = unnamedAcrossTenants('test.own', 'insert into owned (owner) values (:owner)')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADD = unnamedAcrossTenants('test.add', 'update counters set n = n + :n where id = :id')
const ADDED = unnamedAcrossTenants<{ n: number }>(
  'test.added',
  'update counters set n = n + :n where id = :id returning n',
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const COUNT = unnamedAcrossTenants<{ n: number }>('test.count', 'select count(*) as n from counters')
const SUM = unnamedAcrossTenants<{ n: number }>('test.sum', 'select sum(n) as n from counters')

let folder: string
let path: string
let opened: Db[]
let fatal: unknown[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-sqlite-'))
  path = join(folder, 'test.db')
  opened = []
  fatal = []
})

afterEach(async () => {
  for (const db of opened) await db.close()
  rmSync(folder, { recursive: true, force: true })
})

function open(file = path, options: Partial<SqliteOptions> = {}): Db {
  const db = openSqlite(file, {
    clock: new TestClock(),
    exclusive: true,
    onFatal: (error) => fatal.push(error),
    ...options,
  })
  opened.push(db)
  return db
}

/** A database with one counter, `a`, that stands at 0. */
async function counters(file = path): Promise<Db> {
  const db = open(file)
  await db.write((tx) => tx.run(CREATE, {}))
  await db.write((tx) => tx.run(CREATE_OWNED, {}))
  await db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
  return db
}

async function nOf(db: Db, id = 'a'): Promise<number | undefined> {
  return (await db.one(FIND, { id }))?.n
}

/**
 * Transactions in the write-ahead log since it was last begun. SQLite's "WAL-mode File Format": a header of 32
 * bytes, then frames of 24 bytes and a page; a frame that ends a transaction holds the size of the database.
 */
function commitsInWal(): number {
  const wal = readFileSync(`${path}-wal`)
  const page_bytes = wal.readUInt32BE(8)
  const salt = wal.subarray(16, 24)
  let commits = 0
  for (let at = 32; at + 24 + page_bytes <= wal.length; at += 24 + page_bytes) {
    if (!wal.subarray(at + 8, at + 16).equals(salt)) break
    if (wal.readUInt32BE(at + 4) !== 0) commits += 1
  }
  return commits
}

const kindOf = (error: unknown) => (error instanceof DbError ? error.kind : String(error))
const kindsOf = (results: PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === 'fulfilled' ? 'done' : kindOf(result.reason)))
const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i))

describe('group commit', () => {
  test('500 writes that are asked for in one turn are one transaction', async () => {
    const db = await counters()
    const before = commitsInWal()
    const answers = await Promise.all(
      many(500, () => db.write(async (tx) => (await tx.one(ADDED, { id: 'a', n: 1 }))!.n)),
    )
    expect(commitsInWal() - before).toBe(1)
    expect(answers).toEqual(many(500, (i) => i + 1))
  })

  test('behind a full transaction other tenants have their turns, and what is urgent comes first', async () => {
    const db = await counters()
    const answered: string[] = []
    const write = (owner: Owner, name: string, characters: number) =>
      db
        .write(owner, (tx) => tx.run(INSERT, { id: name.padEnd(characters), n: 0 }))
        .then(() => answered.push(name))
    const large = many(40, (i) => write('large', `large ${i}`, 250_000))
    const small = [write('small', 'small 1', 10), write('small', 'small 2', 10)]
    const freeze = write({ key: 'urgent', urgent: true }, 'freeze', 10)
    await Promise.all([...large, ...small, freeze])
    const larger = answered.filter((name) => name.startsWith('large'))
    expect(larger).toEqual(many(40, (i) => `large ${i}`))
    expect(answered.slice(0, 5)).toEqual(['freeze', 'large 0', 'small 1', 'large 1', 'small 2'])
  })

  test('without anything urgent a tenant waits for one transaction that another has filled, not for all', async () => {
    const db = await counters()
    const answered: string[] = []
    const write = (owner: string, name: string, characters: number) =>
      db
        .write(owner, (tx) => tx.run(INSERT, { id: name.padEnd(characters), n: 0 }))
        .then(() => answered.push(name))
    const large = many(60, (i) => write('large', `large ${i}`, 250_000))
    await Promise.all([...large, write('small', 'small 1', 10), write('small', 'small 2', 10)])
    const fit = Math.ceil(4_096_000 / 250_000)
    expect(answered.slice(fit, fit + 4)).toEqual([`large ${fit}`, 'small 1', `large ${fit + 1}`, 'small 2'])
  })

  test('writes of large texts are spread over transactions of about 4 MB, in their order', async () => {
    const db = await counters()
    const before = commitsInWal()
    const answers: number[] = []
    const writes = many(40, (i) =>
      db
        .write(async (tx) => {
          if (i === 3) throw new Error('no')
          await tx.run(INSERT, { id: `${i}`.padEnd(250_000), n: i })
          return (await tx.one(COUNT, {}))!.n
        })
        .then((n) => answers.push(n)),
    )
    const results = await Promise.allSettled(writes)
    expect(kindsOf(results).filter((kind) => kind !== 'done')).toEqual(['Error: no'])
    expect(answers).toEqual(many(39, (i) => i + 2))
    expect(commitsInWal() - before).toBe(3)
  })

  test('20 writes that wait for each other are 20 transactions', async () => {
    const db = await counters()
    const before = commitsInWal()
    for (let i = 0; i < 20; i++) await db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    expect(commitsInWal() - before).toBe(20)
  })

  test('all work of one transaction is given the same time', async () => {
    const clock = new TestClock()
    const db = open(path, { clock })
    const times = await Promise.all(
      many(3, () =>
        db.write((tx) => {
          clock.advance(1)
          return tx.now
        }),
      ),
    )
    expect(times).toEqual(Array(3).fill(new TestClock().now()))
  })

  test('nobody is answered, and no effect runs, before another connection can see the commit', async () => {
    const db = await counters()
    const other = new Database(path, { readonly: true })
    const seen = () => (other.prepare(`select n from counters where id = 'a'`).get() as { n: number }).n
    const during: number[] = []
    const effects: number[] = []
    const answers: number[] = []
    await Promise.all(
      many(50, () =>
        db
          .write(async (tx) => {
            tx.afterCommit(() => effects.push(seen()))
            await tx.run(ADD, { id: 'a', n: 1 })
            during.push(seen())
          })
          .then(() => answers.push(seen())),
      ),
    )
    other.close()
    expect(during).toEqual(Array(50).fill(0))
    expect(effects).toEqual(Array(50).fill(50))
    expect(answers).toEqual(Array(50).fill(50))
  })

  test('a failed job too is answered only once the others are durable', async () => {
    const db = await counters()
    const other = new Database(path, { readonly: true })
    const seen = () => (other.prepare(`select n from counters where id = 'a'`).get() as { n: number }).n
    const at_refusal: number[] = []
    await Promise.all([
      db.write(() => Promise.reject(new Error('no'))).catch(() => at_refusal.push(seen())),
      db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })),
    ])
    other.close()
    expect(at_refusal).toEqual([1])
  })

  const failures: [string, (tx: Tx) => unknown][] = [
    ['before it wrote', () => {}],
    ['after it wrote', (tx) => tx.run(ADD, { id: 'a', n: 1_000_000 })],
    ['after a write that returned a row', (tx) => tx.one(ADDED, { id: 'a', n: 1_000_000 })],
    ['after a write that changed nothing', (tx) => tx.run(ADD, { id: 'absent', n: 1 })],
    ['after a refused statement', (tx) => tx.run(INSERT, { id: 'a', n: 1 })],
  ]

  test.each(failures)(
    'a job that throws %s undoes itself alone, and each other job has its effect once',
    async (_, begin) => {
      const db = await counters()
      const before = commitsInWal()
      const effects: number[] = []
      const results = await Promise.allSettled(
        many(100, (i) =>
          db.write(async (tx) => {
            tx.afterCommit(() => effects.push(i))
            if (i % 10 === 3) {
              await begin(tx)
              throw new Error(`job ${i}`)
            }
            await tx.run(INSERT, { id: `job-${i}`, n: i })
            await tx.run(ADD, { id: 'a', n: 1 })
            return i
          }),
        ),
      )
      expect(await nOf(db)).toBe(90)
      expect((await db.one(COUNT, {}))!.n).toBe(91)
      expect(effects).toEqual(many(100, (i) => i).filter((i) => i % 10 !== 3))
      results.forEach((result, i) => {
        if (i % 10 === 3) expect(result.status).toBe('rejected')
        else expect(result).toEqual({ status: 'fulfilled', value: i })
      })
      expect(commitsInWal() - before).toBe(1)
    },
  )

  test('each failed job gets its own error', async () => {
    const db = await counters()
    const results = await Promise.allSettled([
      db.write((tx) => tx.run(INSERT, { id: 'a', n: 1 })),
      db.write(() => Promise.reject(new Error('mine'))),
      db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })),
      db.write((tx) => tx.run(INSERT, { id: 'b', n: null })),
    ])
    expect(kindsOf(results)).toEqual(['unique', 'Error: mine', 'done', expect.stringMatching(/NOT NULL/)])
    expect(await nOf(db)).toBe(1)
  })

  test('when COMMIT is refused everybody in it is told so, nothing is kept, and the next write goes well', async () => {
    const db = await counters()
    const ran: string[] = []
    const results = await Promise.allSettled([
      db.write((tx) => {
        tx.afterCommit(() => ran.push('effect'))
        return tx.run(ADD, { id: 'a', n: 1 })
      }),
      db.write((tx) => tx.run(OWN, { owner: 'nobody' })),
    ])
    expect(kindsOf(results)).toEqual(Array(2).fill(expect.stringMatching(/FOREIGN KEY constraint failed/)))
    expect(ran).toEqual([])
    expect(await nOf(db)).toBe(0)
    expect(await db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))).toBe(1)
  })

  test('work may await its transaction; writes asked for meanwhile go into the next one', async () => {
    const db = await counters()
    let second: Promise<number> | undefined
    const seen: number[] = []
    await db.write(async (tx) => {
      await tx.run(ADD, { id: 'a', n: 1 })
      second = db.write(async (later) => (await later.one(ADDED, { id: 'a', n: 10 }))!.n)
      await Promise.resolve()
      seen.push((await tx.one(FIND, { id: 'a' }))!.n)
    })
    expect(seen).toEqual([1])
    expect(await second).toBe(11)
  })

  test('an effect that throws leaves nobody unanswered, and is not swallowed', () => {
    const { stdout, exitCode } = child(`
      process.on('uncaughtException', (error) => console.log('uncaught', error.message))
      const db = open()
      await db.write((tx) => tx.run(CREATE, {}))
      const results = await Promise.all([
        db.write((tx) => { tx.afterCommit(() => { throw new Error('from an effect') }); return 1 }),
        db.write(() => 2),
      ])
      console.log('answered', results.join())
      await db.close()`)
    expect(stdout.split('\n').toSorted()).toEqual(['', 'answered 1,2', 'uncaught from an effect'])
    expect(exitCode).toBe(0)
  })

  test('keeps nothing of a write whose row cannot be found again, and all of the others', async () => {
    const db = await counters()
    const lost = {
      ...ADDED,
      read_back: unnamedAcrossTenants<{ n: number }>('test.lost', 'select m from counters'),
    }
    const results = await Promise.allSettled([
      db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })),
      db.write((tx) => tx.one(lost, { id: 'a', n: 10 })),
      db.write((tx) => tx.one(ADDED, { id: 'a', n: 100 })),
    ])
    expect(results).toMatchObject([
      { status: 'fulfilled', value: 1 },
      { status: 'rejected', reason: { message: 'no such column: m' } },
      { status: 'fulfilled', value: { n: 101 } },
    ])
    expect(await nOf(db)).toBe(101)
  })
})

describe('the queue', () => {
  const add = (db: Db) => (tenant_id: string) => db.write(tenant_id, (tx) => tx.run(ADD, { id: 'a', n: 1 }))

  test('1,000 writes of one tenant wait; one more is refused as busy and does nothing, and others are served', async () => {
    const db = await counters()
    const write = add(db)
    const busy = Promise.allSettled(many(1_001, () => write('busy')))
    const others = Promise.allSettled(many(500, () => write('other')))
    const third = Promise.allSettled(many(251, () => write('third')))
    const kinds = kindsOf(await busy)
    expect(kinds.slice(0, 1_000)).toEqual(Array(1_000).fill('done'))
    expect(kinds[1_000]).toBe('busy')
    expect(kindsOf(await others)).toEqual(Array(500).fill('done'))
    expect(kindsOf(await third)).toEqual([...Array(250).fill('done'), 'busy'])
    expect(await nOf(db)).toBe(1_750)
  })

  test('of keys that strangers may make up 1,500 wait together, of one of them 1,000, and there is room for tenants', async () => {
    const db = await counters()
    const write = (key: string, group?: string) =>
      db.write({ key, ...(group && { group }) }, (tx) => tx.run(ADD, { id: 'a', n: 1 }))
    const flooded = Promise.allSettled(many(1_500, () => write('flooded', 'strangers')))
    const made_up = Promise.allSettled(many(1_500, (i) => write(`made up ${i}`, 'strangers')))
    const tenants = Promise.allSettled(many(400, (i) => write(`tenant-${i}`)))
    const doneOf = async (results: typeof flooded) =>
      kindsOf(await results).filter((kind) => kind === 'done').length
    expect([await doneOf(flooded), await doneOf(made_up), await doneOf(tenants)]).toEqual([1_000, 500, 400])
  })

  test('exactly 1,000 are all done, and so are 1,000 more afterwards', async () => {
    const db = await counters()
    const write = add(db)
    for (const sum of [1_000, 2_000]) {
      expect(kindsOf(await Promise.allSettled(many(1_000, () => write('a'))))).toEqual(
        Array(1_000).fill('done'),
      )
      expect(await nOf(db)).toBe(sum)
    }
  })

  test('all tenants together have 2,000 waiting, and the service itself, due work and what is refused last 200 more', async () => {
    const db = await counters()
    const write = add(db)
    const results = Promise.allSettled(many(4_000, (i) => write(`tenant-${i}`)))
    const of_service = Promise.allSettled([db.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))])
    const patient = (i: number) => ({ key: `work tenant-${i}`, patient: true })
    const works = Promise.allSettled(
      many(200, (i) => db.write(patient(i), (tx) => tx.run(ADD, { id: 'a', n: 1 }))),
    )
    expect(kindsOf(await results).filter((kind) => kind === 'done')).toHaveLength(2_000)
    expect(kindsOf(await of_service)).toEqual(['done'])
    expect(kindsOf(await works)).toEqual([...Array(199).fill('done'), 'busy'])
  })
})

describe('one server per file', () => {
  test('a second open of the file is refused by name, and allowed once the first is closed', async () => {
    const first = await counters()
    expect(() => open()).toThrow(`another process has this database open (${path}.lock)`)
    await first.close()
    expect(await nOf(open())).toBe(0)
  })

  test('the first goes on as if nothing had happened', async () => {
    const first = await counters()
    expect(() => open()).toThrow()
    await first.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    expect(await nOf(first)).toBe(1)
  })

  test('a refused second open does not take the lock away from the first', async () => {
    await counters()
    expect(() => open()).toThrow()
    expect(() => open()).toThrow()
    expect(child('globalThis.kept = open()').stderr).toContain(
      `another process has this database open (${path}.lock)`,
    )
  })

  test('the same file under another name is the same database', async () => {
    await counters()
    const alias = join(folder, 'alias.db')
    symlinkSync(path, alias)
    expect(() => open(alias)).toThrow('another process has this database open')
  })

  test('also when the other name is a link that led to nothing when the first server started', async () => {
    const alias = join(folder, 'alias.db')
    symlinkSync(path, alias)
    await counters(alias)
    for (const name of [path, alias])
      expect(() => open(name)).toThrow(`another process has this database open (${path}.lock)`)
    expect(existsSync(`${path}-wal`)).toBe(true)
  })

  test('another process is refused, and the lock of a process that is killed dies with it', async () => {
    const script = childScript(`globalThis.kept = open(); console.log('held'); setInterval(() => {}, 1000)`)
    const holder = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
    try {
      const { value } = await holder.stdout.getReader().read()
      expect(new TextDecoder().decode(value)).toBe('held\n')
      expect(() => open()).toThrow('another process has this database open')
    } finally {
      holder.kill('SIGKILL')
      await holder.exited
    }
    expect(await nOf(await counters())).toBe(0)
  })

  test('an operator’s command may open it beside the server; each sees what the other wrote', async () => {
    const server = await counters()
    const command = open(path, { exclusive: false })
    await command.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    await server.write((tx) => tx.run(ADD, { id: 'a', n: 10 }))
    expect([await nOf(server), await nOf(command)]).toEqual([11, 11])
    await new Promise(setImmediate) // ends their reads, for which the checkpoint of a close would wait
  })
})

describe('reads of one turn of the event loop', () => {
  test('see what was acknowledged before them, however little time lies between', async () => {
    const db = await counters()
    for (let n = 1; n <= 20; n++) {
      expect(await nOf(db)).toBe(n - 1)
      const seen = db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })).then(() => nOf(db))
      expect(await nOf(db)).toBe(n - 1)
      expect(await seen).toBe(n)
    }
  })

  test('see what another process wrote before the turn', async () => {
    const db = await counters()
    await nOf(db)
    const beside = open(path, { exclusive: false })
    await beside.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    expect(await nOf(db)).toBe(1)
  })

  test('do not keep the write-ahead log from being used again', async () => {
    const db = await counters()
    for (let n = 0; n < 60; n++) {
      await db.write((tx) => {
        tx.run(INSERT, { id: `${n}`.padEnd(1_000_000), n: 0 })
        return nOf(db) as Promise<number | undefined>
      })
    }
    // From 33 MB on commits wait until it is copied; without that it would have all 60 MB.
    expect(statSync(`${path}-wal`).size).toBeLessThan(2 * log_bytes + 2_000_000)
  })
})

describe('large texts', () => {
  const log_bytes_max = 67_108_864

  test('leave the log for the file, which begins again, and nothing of them is lost', async () => {
    const db = await counters()
    for (let n = 0; n < 400; n++) {
      await db.write((tx) => tx.run(INSERT, { id: `${n}`.padEnd(250_000), n: 1 }))
      await db.one(COUNT, {})
    }
    expect(statSync(`${path}-wal`).size).toBeLessThan(log_bytes_max)
    expect((await db.one(COUNT, {}))!.n).toBe(401)
    const other = open(path, { exclusive: false })
    expect((await other.one(SUM, {}))!.n).toBe(400)
  })

  test('of a file that is read meanwhile wait in the log, and no write fails', async () => {
    const db = await counters()
    const { promise, resolve } = Promise.withResolvers<void>()
    const reading = db.read(async (q) => {
      const before = (await q.one(COUNT, {}))!.n
      await promise
      return [before, (await q.one(COUNT, {}))!.n]
    })
    for (let n = 0; n < 40; n++) {
      await db.write((tx) => tx.run(INSERT, { id: `${n}`.padEnd(250_000), n: 1 }))
    }
    resolve()
    expect(await reading).toEqual([1, 1])
    expect([(await db.one(COUNT, {}))!.n, fatal]).toEqual([41, []])
  })
})

describe('in memory', () => {
  test('reads that come while a transaction is open wait for its end', async () => {
    const db = await counters(':memory:')
    await db.write((tx) => tx.run(INSERT, { id: 'b', n: 100 }))
    const sums: number[] = []
    const writes = many(100, () =>
      db.write(async (tx) => {
        await tx.run(ADD, { id: 'b', n: -1 })
        await Promise.resolve()
        // Here the sum is 99: nobody outside may see it.
        pending.push(Promise.resolve(db.one(SUM, {})).then((row) => sums.push(row!.n)))
        pending.push(db.read(async (q) => (await q.one(SUM, {}))!.n).then((n) => sums.push(n)))
        await tx.run(ADD, { id: 'a', n: 1 })
      }),
    )
    const pending: Promise<unknown>[] = many(50, async () => sums.push((await db.one(SUM, {}))!.n))
    await Promise.all(writes)
    await Promise.all(pending)
    expect(sums).toEqual(Array(250).fill(100))
    expect([await nOf(db, 'a'), await nOf(db, 'b')]).toEqual([100, 0])
  })

  test('is open as often as one likes, each its own', async () => {
    const first = await counters(':memory:')
    const second = await counters(':memory:')
    await first.write((tx) => tx.run(ADD, { id: 'a', n: 1 }))
    expect([await nOf(first), await nOf(second)]).toEqual([1, 0])
  })

  test('a failed job undoes itself alone there too', async () => {
    const db = await counters(':memory:')
    const results = await Promise.allSettled(
      many(10, (i) =>
        db.write(async (tx) => {
          await tx.run(ADD, { id: 'a', n: 1 })
          if (i === 5) throw new Error('no')
        }),
      ),
    )
    expect(kindsOf(results).filter((kind) => kind !== 'done')).toEqual(['Error: no'])
    expect(await nOf(db)).toBe(9)
  })
})

describe('a full disk', () => {
  const SHRINK = unnamedAcrossTenants('test.limit', 'pragma max_page_count = 1')
  const GROW = unnamedAcrossTenants('test.limit', 'pragma max_page_count = 100000')
  const limit = (db: Db, statement: typeof SHRINK) => db.write((tx) => void tx.one(statement, {}))
  const big = (i: number) => ({ id: `big-${i}-${'x'.repeat(3_000)}`, n: 1 })
  /** The limit becomes the present size: SQLite never makes it smaller. */
  async function full(): Promise<Db> {
    const db = await counters()
    for (let i = 0; i < 20; i++) await db.write((tx) => tx.run(INSERT, big(i)))
    await limit(db, SHRINK)
    return db
  }

  test('everybody whose write was in that transaction gets kind full, and nothing of it is kept', async () => {
    const db = await full()
    const before = (await db.one(COUNT, {}))!.n
    const results = await Promise.allSettled([
      db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })),
      ...many(20, (i) => db.write((tx) => tx.run(INSERT, big(100 + i)))),
      db.write((tx) => tx.run(ADD, { id: 'a', n: 1 })),
    ])
    expect(kindsOf(results)).toEqual(Array(22).fill('full'))
    expect((await db.one(COUNT, {}))!.n).toBe(before)
    expect(await nOf(db)).toBe(0)
    expect(fatal).toEqual([])
  })

  test('reads go on', async () => {
    const db = await full()
    expect(await nOf(db)).toBe(0)
    expect(await db.read(async (q) => (await q.one(FIND, { id: 'a' }))!.n)).toBe(0)
  })

  test('writes resume when the disk has grown', async () => {
    const db = await full()
    const refused = await Promise.allSettled(many(20, (i) => db.write((tx) => tx.run(INSERT, big(100 + i)))))
    expect(kindsOf(refused)).toEqual(Array(20).fill('full'))
    await limit(db, GROW)
    const taken = await Promise.allSettled(many(20, (i) => db.write((tx) => tx.run(INSERT, big(100 + i)))))
    expect(kindsOf(taken)).toEqual(Array(20).fill('done'))
  })

  test('writes resume when something was removed, and removing is possible', async () => {
    const db = await full()
    const DELETE = unnamedAcrossTenants(
      'test.delete',
      `delete from counters where id >= 'big' and id < 'big-2'`,
    )
    expect(await db.write((tx) => tx.run(DELETE, {}))).toBeGreaterThan(5)
    expect(await db.write((tx) => tx.run(INSERT, big(100)))).toBe(1)
  })
})

describe('opening', () => {
  test('the settings are those of a durable database, read back from SQLite', async () => {
    const db = open()
    expect(await db.durability()).toEqual({
      sqlite_version: expect.stringMatching(/^3\.\d+\.\d+$/),
      journal_mode: 'wal',
      synchronous: 1,
      log_flush: 'before every answer',
      foreign_keys: 1,
      file_system: expect.any(Number),
    })
  })

  test('a command beside the server flushes with each commit', async () => {
    await open().write((tx) => tx.run(CREATE, {}))
    const { synchronous, log_flush } = await open(path, { exclusive: false }).durability()
    expect([synchronous, log_flush]).toEqual([2, undefined])
  })

  const unsafe: [string, string][] = [
    ['pragma synchronous = off', 'synchronous is 0, not 2 (full)'],
    ['pragma synchronous = normal', 'synchronous is 1, not 2 (full)'],
    ['pragma journal_mode = delete', 'journal_mode is delete, not wal'],
    ['pragma journal_mode = memory', 'journal_mode is memory, not wal'],
    ['pragma foreign_keys = off', 'foreign_keys is off'],
  ]

  test.each(unsafe)(
    'what SQLite reports counts, not what was asked for: %s is refused',
    async (pragma, why) => {
      sqlite_pragmas.push(pragma)
      try {
        expect(() => open()).toThrow(`refusing to serve from ${path}: ${why}`)
      } finally {
        sqlite_pragmas.pop()
      }
      expect(await open().durability()).toMatchObject({
        journal_mode: 'wal',
        log_flush: 'before every answer',
        foreign_keys: 1,
      })
    },
  )

  test('synchronous = extra, which is stricter, is taken', async () => {
    sqlite_pragmas.push('pragma synchronous = extra')
    try {
      expect(await open(path, { exclusive: false }).durability()).toMatchObject({ synchronous: 3 })
    } finally {
      sqlite_pragmas.pop()
    }
  })

  test('the folder of the file is made', async () => {
    const nested = join(folder, 'not', 'there', 'yet.db')
    const db = await counters(nested)
    expect(await nOf(db)).toBe(0)
    expect(existsSync(nested)).toBe(true)
  })

  test('a file that is not a database is refused and left as it was', () => {
    const text = 'This is not a database. '.repeat(100)
    writeFileSync(path, text)
    expect(() => open()).toThrow(new Error(`${path} is not a SQLite database, or its first page is damaged`))
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  test('closing moves everything from the write-ahead log into the file', async () => {
    const db = await counters()
    await db.write((tx) => tx.run(ADD, { id: 'a', n: 7 }))
    await db.close()
    expect(existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0).toBe(0)
    expect(await nOf(open())).toBe(7)
  })
})

function childScript(body: string): string {
  return `
    import { openSqlite } from ${JSON.stringify(join(import.meta.dir, 'sqlite.ts'))}
    import { unnamedAcrossTenants } from ${JSON.stringify(join(import.meta.dir, 'db.ts'))}
    const clock = { now: () => 0, monotonic: () => 0 }
    const open = () => openSqlite(${JSON.stringify(path)}, { clock, exclusive: true, onFatal: () => process.exit(9) })
    const CREATE = unnamedAcrossTenants('test.create', 'create table counters (id text primary key, n integer not null) strict')
    ${body}`
}

/** Runs this in a process of its own. */
function child(body: string): { stdout: string; stderr: string; exitCode: number } {
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, '-e', childScript(body)])
  return { stdout: stdout.toString(), stderr: stderr.toString(), exitCode }
}
