// A SQLite database whose files are removed, moved or replaced while it is open.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { databaseFolder } from '../../test/support/folders.ts'
import { HeldFlush } from '../../test/support/held-flush.ts'
import { log_bytes } from './connection-settings.ts'
import { type Db, type Trouble, unnamedAcrossTenants } from './db.ts'
import { openSqlite } from './sqlite.ts'

const CREATE = unnamedAcrossTenants('test.create', 'create table rows (text text) strict')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into rows (text) values (:text)')
const COUNT = unnamedAcrossTenants<{ n: number }>('test.count', 'select count(*) as n from rows')

const other = 'a file of somebody else'

let folder: string
let path: string
let flush: HeldFlush
let fatal: unknown[]
let db: Db

beforeEach(async () => {
  folder = databaseFolder()
  path = join(folder, 'test.db')
  flush = new HeldFlush()
  fatal = []
  const onFatal = (error: unknown) => fatal.push(error)
  const disk = { reserve_bytes: 0 }
  db = openSqlite(path, { clock: new TestClock(), exclusive: true, onFatal, disk, sync: flush.sync })
  await db.write((tx) => tx.run(CREATE, {}))
})
afterEach(async () => {
  flush.release()
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

const insert = (text = '') => db.write((tx) => tx.run(INSERT, { text }))
const count = async () => (await db.one(COUNT, {}))!.n
const removed = (name: string): Trouble => ({
  kind: 'removed',
  reason: `the file ${name} was removed or replaced while the service had it open`,
})

/** Reads that go on until they are told to end, so that each further flush needs one more connection. */
function longReads(count: number): () => Promise<number[]> {
  const ended = Promise.withResolvers<void>()
  const reads = Array.from({ length: count }, () =>
    db.read(async (q) => {
      await ended.promise
      return (await q.one(COUNT, {}))!.n
    }),
  )
  return () => {
    ended.resolve()
    return Promise.all(reads)
  }
}

const ways: [what: string, name: string, lose: () => void][] = [
  ['its file was removed', 'test.db', () => rmSync(path)],
  ['its file was replaced', 'test.db', () => replaced()],
  ['its log was removed', 'test.db-wal', () => rmSync(`${path}-wal`)],
  ['all of it was moved', 'test.db', () => renameSync(folder, `${folder}.moved`)],
]

describe('Before anybody has seen it', () => {
  afterEach(() => rmSync(`${folder}.moved`, { recursive: true, force: true }))

  test.each(ways)('%s: no connection is opened by the path', async (_, name, lose) => {
    await insert()
    const endOne = longReads(1)
    await insert()
    const endTwo = longReads(1)
    lose()
    const before = contents()
    await insert()
    expect(await count()).toBeLessThanOrEqual(3) // what was shown before, while a read goes on
    expect([await endOne(), await endTwo()]).toEqual([[1], [2]])
    expect(await count()).toBe(3)
    expect(db.trouble()).toEqual(removed(name))
    expect([contents(), fatal]).toEqual([before, []])
  })

  test.each(ways)('%s: the thread that copies the log leaves what is there alone', async (_, name, lose) => {
    lose()
    const before = contents()
    const text = 'x'.repeat(1_000_000)
    let written = 0
    for (let bytes = 0; bytes < 2 * log_bytes; bytes += text.length) {
      const taken = await insert(text).catch(() => null)
      if (taken === null) break
      written += 1
    }
    expect(db.trouble()).toEqual(removed(name))
    expect(await count()).toBe(written)
    expect([contents(), fatal, await db.faults()]).toEqual([before, [], []])
  })
})

test('a write that has waited since before a file was removed is refused', async () => {
  flush.hold()
  const first = insert()
  await flush.begun(1)
  const second = insert().catch(({ kind }) => kind)
  rmSync(path)
  await db.maintain()
  flush.release()
  expect([await first, await second, await count()]).toEqual([1, 'damaged', 1])
})

test('a removed -shm ends the writes too: a command beside the service would make another, and each overwrite the other’s commits', async () => {
  await insert()
  rmSync(`${path}-shm`)
  await db.maintain()
  expect(db.trouble()).toEqual(removed('test.db-shm'))
  expect(await insert().catch(({ kind }) => kind)).toBe('damaged')
})

test('the figures leave the disk out once its folder is gone', async () => {
  rmSync(folder, { recursive: true })
  expect(db.gauges()).toMatchObject({ bytes: 0, disk: null })
})

test('a log whose database was moved away is not removed: a start is refused until the one is back or the other gone', async () => {
  await insert()
  const other_path = join(folder, 'second.db')
  copyFileSync(`${path}-wal`, `${other_path}-wal`)
  const open = () => openSqlite(other_path, { clock: new TestClock(), exclusive: true, onFatal() {} })
  expect(open).toThrow(
    `${other_path} was removed or moved, and its log ${other_path}-wal is still there: put the database back, or move the log away to begin with an empty one`,
  )
  expect([existsSync(other_path), statSync(`${other_path}-wal`).size > 0]).toEqual([false, true])
  for (const lose of [() => truncateSync(`${other_path}-wal`), () => rmSync(other_path)]) {
    lose()
    const opened = open()
    expect(opened.trouble()).toBe(null)
    await opened.close()
  }
})

test('files that grow, and one that goes beside them, are where they were', async () => {
  for (let i = 0; i < 30; i++) await insert('x'.repeat(1_000_000))
  writeFileSync(join(folder, 'other'), other)
  rmSync(join(folder, 'other'))
  expect(db.trouble()).toBe(null)
})

function replaced(): void {
  writeFileSync(join(folder, 'other'), other)
  renameSync(join(folder, 'other'), path)
}

/** The names of the files, and the one that lies where the database lay. */
function contents(): unknown {
  if (!existsSync(folder)) return null
  const { ino, size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return {
    names: readdirSync(folder).toSorted(),
    ino,
    text: size === other.length ? readFileSync(path, 'utf8') : null,
  }
}
