// Between a commit and the end of its flush: nobody is answered, and nobody is shown what a power cut could take back.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openSqlite } from './sqlite.ts'

const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table counters (id text primary key, n integer not null) strict',
)
const INSERT = unnamedAcrossTenants('test.insert', 'insert into counters (id, n) values (:id, :n)')
const ADDED = unnamedAcrossTenants<{ n: number }>(
  'test.added',
  'update counters set n = n + :n where id = :id returning n',
)
const SET_IF = unnamedAcrossTenants(
  'test.set_if',
  'update counters set n = :n where id = :id and n = :before',
)
const FIND = unnamedAcrossTenants<{ n: number }>('test.find', 'select n from counters where id = :id')
const ALL = unnamedAcrossTenants<{ n: number }>('test.all', 'select n from counters order by id')

let folder: string
let clock: TestClock
let db: Db
let fatal: unknown[]
/** Flushes that have begun and not returned, while `held`. */
let flushes: PromiseWithResolvers<void>[]
let held: boolean

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-flush-'))
  clock = new TestClock()
  fatal = []
  flushes = []
  held = false
  db = openSqlite(join(folder, 'test.db'), {
    clock,
    exclusive: true,
    onFatal: (error) => fatal.push(error),
    sync: {
      offLoop() {
        if (!held) return Promise.resolve()
        const flush = Promise.withResolvers<void>()
        flushes.push(flush)
        return flush.promise
      },
    },
  })
  await db.write((tx) => tx.run(CREATE, {}))
  await db.write((tx) => tx.run(INSERT, { id: 'a', n: 0 }))
  held = true
})

afterEach(async () => {
  held = false
  for (const flush of flushes) flush.resolve()
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

const add = (n: number) => db.write(async (tx) => (await tx.one(ADDED, { id: 'a', n }))!.n)
const shown = async () => (await db.one(FIND, { id: 'a' }))!.n
/** Enough turns of the event loop for a batch to be committed and, where it may be, answered. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}
/** Settled promises are found settled some turns later. */
async function stateOf(promise: Promise<unknown>): Promise<'pending' | 'settled'> {
  const settled = promise.then(
    () => 'settled' as const,
    () => 'settled' as const,
  )
  const later = someTurns().then(() => 'pending' as const)
  return Promise.race([settled, later])
}

describe('a commit whose flush has not returned', () => {
  test('is not answered, and its effects do not run', async () => {
    const effects: string[] = []
    const write = db.write(async (tx) => {
      tx.afterCommit(() => effects.push('ran'))
      await tx.one(ADDED, { id: 'a', n: 1 })
    })
    await someTurns()
    expect([await stateOf(write), effects, flushes.length]).toEqual(['pending', [], 1])
    flushes[0]!.resolve()
    await write
    expect(effects).toEqual(['ran'])
  })

  test('is shown to no read: not by one, all or read; from its answer on it is, to every read', async () => {
    const write = add(1)
    await someTurns()
    const seen = async () => [
      await shown(),
      (await db.all(ALL, {})).map(({ n }) => n),
      await db.read(async (q) => (await q.one(FIND, { id: 'a' }))!.n),
    ]
    expect(await seen()).toEqual([0, [0], 0])
    await someTurns()
    expect(await seen()).toEqual([0, [0], 0])
    flushes[0]!.resolve()
    await write
    expect(await seen()).toEqual([1, [1], 1])
  })

  test('is seen by the writes that follow, and what they answer waits for it, a refusal too', async () => {
    const first = add(1)
    await someTurns()
    const second = add(10)
    const refused = db.write(async (tx) => {
      const changed = await tx.run(SET_IF, { id: 'a', n: 99, before: 0 })
      if (changed === 0) throw new Error('another version')
    })
    const looked = db.write(async (tx) => (await tx.one(FIND, { id: 'a' }))!.n)
    await someTurns()
    for (const write of [first, second, refused, looked]) expect(await stateOf(write)).toBe('pending')
    expect([await shown(), flushes.length]).toEqual([0, 1])

    flushes[0]!.resolve()
    expect(await first).toBe(1)
    await someTurns()
    for (const write of [second, refused, looked]) expect(await stateOf(write)).toBe('pending')
    expect([await shown(), flushes.length]).toEqual([1, 2])

    flushes[1]!.resolve()
    expect([await second, await looked]).toEqual([11, 11])
    expect(refused).rejects.toThrow('another version')
    expect(await shown()).toBe(11)
  })

  test('shares its flush with all that were committed before the flush began, in order', async () => {
    const first = add(1)
    await someTurns()
    const answers: number[] = []
    const others = [1, 1, 1].map((n) => add(n).then((answer) => answers.push(answer)))
    await someTurns()
    flushes[0]!.resolve()
    await first
    await someTurns()
    flushes[1]!.resolve()
    await Promise.all(others)
    expect([answers, flushes.length]).toEqual([[2, 3, 4], 2])
  })

  test('leaves a read of several statements its state, also past the end of the flush', async () => {
    const begun = Promise.withResolvers<void>()
    const go_on = Promise.withResolvers<void>()
    const read = db.read(async (q) => {
      const before = (await q.one(FIND, { id: 'a' }))!.n
      begun.resolve()
      await go_on.promise
      return [before, (await q.one(FIND, { id: 'a' }))!.n]
    })
    await begun.promise
    for (const n of [1, 2, 3]) {
      const write = add(n)
      await someTurns()
      flushes.at(-1)!.resolve()
      await write
    }
    expect(await shown()).toBe(6)
    go_on.resolve()
    expect(await read).toEqual([0, 0])
  })

  test('does not delay a write that only reads while nothing waits for the disk', async () => {
    expect(await db.write(async (tx) => (await tx.one(FIND, { id: 'a' }))!.n)).toBe(0)
    expect(flushes).toEqual([])
  })

  test('counts among the 2,000 writes that may wait', async () => {
    const first = db.write('one tenant', (tx) => tx.one(ADDED, { id: 'a', n: 1 }))
    await someTurns()
    const refused: string[] = []
    const more = Array.from({ length: 1_200 }, () =>
      db
        .write('one tenant', (tx) => tx.one(ADDED, { id: 'a', n: 1 }))
        .catch(({ message }) => refused.push(message)),
    )
    await someTurns()
    // One tenant alone has half of them.
    expect(refused).toEqual(Array(201).fill('too many writes are waiting'))
    held = false
    flushes[0]!.resolve()
    await Promise.all([first, ...more])
    expect(await shown()).toBe(1_000)
  })
})

describe('a disk that fails under a flush', () => {
  test('ends the service: nothing that waits is acknowledged or shown, and no write is taken', async () => {
    const waiting = [add(1)]
    await someTurns()
    waiting.push(add(1))
    await someTurns()
    const outcomes = Promise.allSettled(waiting)
    flushes[0]!.reject(new Error('EIO'))
    const kinds = (await outcomes).map((outcome) => (outcome as { reason?: DbError }).reason?.kind)
    // The second was not begun: it waits for the flush, so that both share the next commit.
    expect(kinds).toEqual(['outcome_unknown', 'lost'])
    expect(fatal).toEqual([new Error('EIO')])
    const later = await add(1).catch((error) => error)
    expect([later instanceof DbError, later.kind]).toEqual([true, 'lost'])
    expect(await shown()).toBe(0)
  })
})

describe('an error of what a flush calls', () => {
  test.each(['inLoop', 'offLoop'])(
    'does not count as a failure of the disk: it ends the process under its own name, %s',
    (where) => {
      for (const name of ['onBegin', 'onDurable']) {
        if (where === 'inLoop' && name === 'onBegin') continue // a flush in the loop has no other beginning
        const script = `
        import { LogFlush } from ${JSON.stringify(join(import.meta.dir, 'sqlite-flush.ts'))}
        process.on('uncaughtException', (error) => console.log('uncaught', error.message))
        const bug = () => { throw new Error('a bug') }
        const flush = new LogFlush(${JSON.stringify(join(folder, 'test.db-wal'))}, {
          clock: { now: () => 0, monotonic: () => 0 },
          sync: { ${where}() {} },
          onBegin() {}, onDurable() {}, onFailure: () => console.log('the disk failed'),
          ${name}: bug,
        })
        flush.wrote()
        await flush.idle()`
        const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', script])
        expect([stdout.toString(), stderr.toString()]).toEqual(['uncaught a bug\n', ''])
      }
    },
  )
})

describe('a disk that does not answer', () => {
  test('refuses writes after 5 s, says so, goes on with reads, and recovers when it answers', async () => {
    const write = add(1)
    await someTurns()
    clock.advance(4_999)
    expect(db.trouble()).toBeNull()
    clock.advance(1)
    expect(db.trouble()).toEqual({ kind: 'stalled', reason: 'the disk does not answer' })
    const refused = await add(1).catch((error) => error)
    expect([refused.kind, refused.message]).toEqual(['busy', 'the disk does not answer'])
    expect([await shown(), await stateOf(write)]).toEqual([0, 'pending'])
    flushes[0]!.resolve()
    expect(await write).toBe(1)
    expect(db.trouble()).toBeNull()
    held = false
    expect(await add(1)).toBe(2)
  })
})
