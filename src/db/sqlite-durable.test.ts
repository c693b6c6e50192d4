// The edges of the flush: long reads, failures in the midst, and the thread that copies the log.

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { HeldFlush } from '../../test/support/held-flush.ts'
import { sqlite_pragmas } from './connection-settings.ts'
import { type Db, type Tx, unnamedAcrossTenants } from './db.ts'
import { openSqlite } from './sqlite.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table rows (id integer primary key, text text) strict',
)
const INSERT = unnamedAcrossTenants('test.insert', 'insert into rows (text) values (:text)')
const REMOVE = unnamedAcrossTenants('test.remove', 'delete from rows where id = :id')
const COUNT = unnamedAcrossTenants<{ n: number }>('test.count', 'select count(*) as n from rows')
const WRONG = unnamedAcrossTenants('test.wrong', 'select 1 from nowhere')

const log_bytes_max = 67_108_864
const post = Worker.prototype.postMessage
let folder: string
let path: string
let clock: TestClock
let flush: HeldFlush
let fatal: unknown[]
let db: Db
const spies: { mockRestore(): void }[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-durable-'))
  path = join(folder, 'test.db')
  clock = new TestClock()
  flush = new HeldFlush()
  fatal = []
  db = openSqlite(path, {
    clock,
    exclusive: true,
    onFatal: (error) => fatal.push(error),
    sync: flush.sync,
  })
  await db.write((tx) => tx.run(CREATE, {}))
})
afterEach(async () => {
  for (const spy of spies.splice(0)) spy.mockRestore()
  flush.release()
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

const insert = (text = '') => db.write((tx) => tx.run(INSERT, { text }))
const count = async () => (await db.one(COUNT, {}))!.n
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}
const kindOf = (write: Promise<unknown>) =>
  write.then(
    () => 'acknowledged',
    ({ kind }) => kind,
  )

describe('what readers see', () => {
  test('is every acknowledged commit, however many come during a long read, which keeps its own state', async () => {
    const begun = Promise.withResolvers<void>()
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      const first = (await q.one(COUNT, {}))!.n
      begun.resolve()
      await go_on.promise
      return [first, (await q.one(COUNT, {}))!.n]
    })
    await begun.promise
    for (const expected of [1, 2, 3, 4, 5]) {
      await insert()
      expect(await count()).toBe(expected)
    }
    go_on.resolve()
    expect(await read).toEqual([0, 0])
  })

  test('is not taken from a long read by the end of the service', async () => {
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      const before = (await q.one(COUNT, {}))!.n
      await go_on.promise
      return [before, (await q.one(COUNT, {}))!.n]
    })
    await insert()
    const closed = db.close()
    await someTurns()
    go_on.resolve()
    expect(await read).toEqual([0, 0])
    await closed
  })

  test('holds what was flushed also when the first read of a turn fails', async () => {
    flush.hold()
    expect(() => db.one(WRONG, {})).toThrow('no such table')
    const write = insert()
    await someTurns()
    expect(await count()).toBe(0)
    flush.release()
    await write
    expect(await count()).toBe(1)
  })
})

describe('a write that changes nothing', () => {
  test('takes no flush', async () => {
    flush.hold()
    expect(await db.write((tx) => tx.run(REMOVE, { id: 99 }))).toBe(0)
    expect(flush.count).toBe(0)
  })

  test('waits for the flush of what it has seen', async () => {
    flush.hold()
    const first = insert()
    await someTurns()
    let answered = false
    const second = db.write((tx) => tx.run(REMOVE, { id: 99 })).then(() => (answered = true))
    await someTurns()
    expect(answered).toBe(false)
    flush.release()
    await Promise.all([first, second])
    expect(flush.count).toBe(1)
  })
})

describe('a flush that fails', () => {
  test('lets no write that was queued before it be acknowledged, whenever it was queued', async () => {
    flush.hold()
    const kinds = [kindOf(insert())]
    await someTurns()
    for (let n = 0; n < 5; n++) {
      kinds.push(kindOf(insert()))
      await new Promise((resolve) => setImmediate(resolve))
    }
    kinds.push(kindOf(insert()))
    flush.fail(new Error('EIO'))
    kinds.push(kindOf(insert()))
    for (let n = 0; n < 5; n++) {
      await Promise.resolve()
      kinds.push(kindOf(insert()))
    }
    await someTurns()
    kinds.push(kindOf(insert()))
    const found = await Promise.all(kinds)
    expect(found.filter((kind) => kind !== 'outcome_unknown' && kind !== 'lost')).toEqual([])
    expect(fatal).toEqual([new Error('EIO')])
    expect(await count()).toBe(0)
  })

  test('does not keep the database from being closed', async () => {
    flush.hold()
    const kind = kindOf(insert())
    await someTurns()
    const late = kindOf(insert())
    flush.fail(new Error('EIO'))
    expect([await kind, await late]).toEqual(['outcome_unknown', 'lost'])
    await db.close()
  })
})

test('deletions of many rows are spread over transactions of about 4 MB, a page counted for each row', async () => {
  const insert_many = unnamedAcrossTenants(
    'test.insert_many',
    'with recursive n(n) as (select 1 union all select n + 1 from n where n < 8000) insert into rows (text) select null from n',
  )
  const remove_to = unnamedAcrossTenants('test.remove_to', 'delete from rows where id <= :last')
  const removed_to = unnamedAcrossTenants(
    'test.removed_to',
    'delete from rows where id <= :last returning id',
  )
  await db.write((tx) => tx.run(insert_many, {}))
  const commitsOf = async (writes: ((tx: Tx) => unknown)[]) => {
    const before = flush.count
    await Promise.all(writes.map((write) => db.write(write)))
    return flush.count - before
  }
  const removals = (...lasts: number[]) => lasts.map((last) => (tx: Tx) => tx.run(remove_to, { last }))
  const returned = (...lasts: number[]) => lasts.map((last) => (tx: Tx) => tx.all(removed_to, { last }))
  expect(await commitsOf(removals(300, 600, 900))).toBe(1)
  expect(await commitsOf(removals(1_400, 1_900))).toBe(1)
  expect(await commitsOf(removals(2_400, 2_900, 3_400, 3_900))).toBe(2)
  expect(await commitsOf(returned(4_400, 4_900, 5_400, 5_900))).toBe(2)
  expect(await count()).toBe(2_100)
  const one_by_one = (first: number) => (tx: Tx) => {
    for (let last = first; last < first + 1_000; last++) tx.run(remove_to, { last })
  }
  expect(await commitsOf([one_by_one(5_901), one_by_one(6_901)])).toBe(1) // only rows besides the first count
  expect(await count()).toBe(100)
})

describe('the thread that copies the log', () => {
  /** Changes what becomes of messages to the thread. */
  function onPost(change: (worker: Worker, deliver: () => void, message: { copy?: true }) => void): void {
    const spy = spyOn(Worker.prototype, 'postMessage').mockImplementation(function (
      this: Worker,
      message: { copy?: true },
    ) {
      change(this, () => post.call(this, message as never), message)
    } as typeof post)
    spies.push(spy)
  }
  const logBytes = () => statSync(`${path}-wal`).size
  const text = 'x'.repeat(500_000)
  /** 100 MB. */
  async function fill(): Promise<void> {
    for (let n = 0; n < 200; n++) await insert(text)
  }

  test('begins the log again: the flush of its header, which every other writer would wait for, does not run on the event loop', async () => {
    const asked: object[] = []
    onPost((_, deliver, message) => {
      asked.push(message)
      deliver()
    })
    const headers = new Set<string>()
    for (let n = 0; n < 200; n++) {
      await insert(text)
      const log = readFileSync(`${path}-wal`)
      const header = log.subarray(0, 32).toString('hex')
      // The thread may be between the header and its first frame, which repeats the salts of the header.
      const has_frame = log.subarray(16, 24).equals(log.subarray(40, 48))
      if (headers.has(header) || !has_frame) continue
      headers.add(header)
      // The thread's own commit: page 1 alone. SQLite's "WAL-mode File Format": the number of a page, then the size of the
      // file in pages, which is 0 unless the frame ends a commit.
      const [page, file_pages] = [log.readUInt32BE(32), log.readUInt32BE(36)]
      if (headers.size > 1) expect([page, file_pages > 0]).toEqual([1, true])
    }
    expect(headers.size).toBeGreaterThan(3)
    expect(asked.filter((message) => 'begin_again' in message).length).toBeGreaterThanOrEqual(
      headers.size - 1,
    )
    expect([await count(), fatal, db.trouble()]).toEqual([200, [], null])
  })

  test('is not used when its connection could lose what it copies: nothing is copied, and the service ends', async () => {
    const asked: object[] = []
    onPost((_, deliver, message) => {
      asked.push(message)
      deliver()
    })
    sqlite_pragmas.push('pragma synchronous = normal')
    spies.push({ mockRestore: () => sqlite_pragmas.pop() })
    for (let n = 0; n < 200 && fatal.length === 0; n++) await insert(text)
    expect(fatal[0]).toEqual(new Error(`refusing to copy the log of ${path}: synchronous is 1, not 2 (full)`))
    expect(asked.filter((message) => 'copy' in message || 'begin_again' in message)).toEqual([])
  })

  test('may end in the midst of it: the log is still copied, and the next is copied by a new one', async () => {
    const used = new Set<Worker>()
    onPost((worker, deliver) => {
      used.add(worker)
      if (used.size < 3) worker.terminate()
      else deliver()
    })
    await fill()
    expect(used.size).toBe(3)
    expect(logBytes()).toBeLessThan(log_bytes_max)
    expect([await count(), fatal, db.trouble()]).toEqual([200, [], null])
  })

  test('may not start at all: the log is still copied', async () => {
    const { Worker: real } = globalThis
    let begun = 0
    globalThis.Worker = class {
      constructor() {
        begun += 1
        throw new Error('no more threads')
      }
    } as never
    spies.push({ mockRestore: () => (globalThis.Worker = real) })
    await fill()
    expect(begun).toBeGreaterThan(1)
    expect(logBytes()).toBeLessThan(log_bytes_max)
    expect([await count(), fatal, db.trouble()]).toEqual([200, [], null])
  })

  test('may not return from the disk: the log stays below 64 MiB, then writes wait, are refused, and go on when it does', async () => {
    const late: (() => void)[] = []
    onPost((_, deliver) => {
      late.push(deliver)
    })
    let written = 0
    const filling = fill().then(() => 'all')
    const stuck = async () => {
      do {
        written = await count()
        for (let n = 0; n < 20; n++) await someTurns()
      } while ((await count()) > written)
      return 'stuck'
    }
    expect(await Promise.race([filling, stuck()])).toBe('stuck')
    expect(logBytes()).toBeLessThan(log_bytes_max)
    expect(db.trouble()).toBeNull()
    clock.advance(5_000)
    expect(db.trouble()).toEqual({ kind: 'stalled', reason: 'the disk does not answer' })
    expect(await kindOf(insert())).toBe('busy')
    expect(await count()).toBe(written)
    for (const spy of spies.splice(0)) spy.mockRestore()
    for (const deliver of late) deliver()
    await filling
    expect(db.trouble()).toBeNull()
    expect([await count(), fatal]).toEqual([200, []])
  })

  test('copies beside commits until little is left, then while they wait; 5 s are counted for each copy of those', async () => {
    let asked = false
    const free: boolean[] = []
    const written: Promise<unknown>[] = []
    const last = Promise.withResolvers<() => void>()
    onPost(async (_, deliver, { copy }) => {
      asked = true
      if (!copy || free.at(-1) === false) return deliver()
      let done = false
      const writes = Array.from({ length: free.length === 0 ? 10 : 1 }, () => insert(text))
      written.push(...writes)
      void Promise.all(writes).then(() => (done = true))
      for (let n = 0; n < 20 && !done; n++) await someTurns()
      free.push(done)
      if (done) deliver()
      else last.resolve(deliver)
    })
    for (let n = 0; n < 100 && !asked; n++) await insert(text)
    const deliver = await last.promise
    clock.advance(4_999)
    const before = db.trouble()
    clock.advance(1)
    const after = db.trouble()
    deliver()
    expect([free, before, after?.kind]).toEqual([[true, true, false], null, 'stalled'])
    await Promise.all(written)
    expect([db.trouble(), fatal]).toEqual([null, []])
  })

  test('begins the log again beside reads of several turns, of which there is always one', async () => {
    let reading = true
    const readOn = async () => {
      while (reading) {
        await db.read(async (q) => {
          const before = (await q.one(COUNT, {}))!.n
          await someTurns()
          expect((await q.one(COUNT, {}))!.n).toBe(before)
        })
      }
    }
    const readers: Promise<void>[] = []
    for (let n = 0; n < 3; n++) {
      readers.push(readOn())
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    await fill()
    reading = false
    await Promise.all(readers)
    expect(logBytes()).toBeLessThan(log_bytes_max)
    expect([await count(), fatal]).toEqual([200, []])
  })

  test('is not asked again at each commit while another process reads from the log', async () => {
    let copies = 0
    onPost((_, deliver, message) => {
      if (message.copy) copies += 1
      deliver()
    })
    const other = openSqlite(path, { clock, exclusive: false, onFatal: (error) => fatal.push(error) })
    const done = Promise.withResolvers<void>()
    const reading = other.read(async (q) => {
      await q.one(COUNT, {})
      await done.promise
    })
    await fill()
    const asked = copies
    done.resolve()
    await reading
    await other.close()
    expect(asked).toBeLessThan(60)
    const before = logBytes()
    await fill()
    expect(logBytes()).toBeLessThanOrEqual(before)
    expect(await count()).toBe(400)
  })
})
