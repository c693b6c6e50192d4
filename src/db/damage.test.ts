// Files that were damaged, files that cannot be written, and disks that are full.

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { ApiError } from '../base/errors.ts'
import { log_bytes, sqlite_pragmas } from './connection-settings.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { Disk } from './disk.ts'
import { DbError } from './errors.ts'
import { isOverQuota, type Space } from './space.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'
import { Connection } from './sqlite-connection.ts'

const mib = 1_048_576
const CREATE = unnamedAcrossTenants(
  'test.create',
  'create table notes (id integer primary key, text text not null) strict',
)
const COUNTERS = unnamedAcrossTenants(
  'test.counters',
  'create table quota_usage (tenant_id text, quota text, used integer, writes integer default 0) strict',
)
const INSERT = unnamedAcrossTenants('test.insert', 'insert into notes (id, text) values (:id, :text)')
const FIND = unnamedAcrossTenants<{ text: string }>('test.find', 'select text from notes where id = :id')
const DELETE = unnamedAcrossTenants('test.delete', 'delete from notes where id = :id')

let folder: string
let path: string
let opened: Db[]
let fatal: unknown[]
let damaged: unknown[]
let space: Space

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-damage-'))
  path = join(folder, 'test.db')
  opened = []
  fatal = []
  damaged = []
  space = { free: 1_000 * mib, total: 10_000 * mib }
})

afterEach(async () => {
  for (const db of opened) await db.close().catch(() => {})
  rmSync(folder, { recursive: true, force: true })
})

function open(options: Partial<SqliteOptions> = {}): Db {
  const db = openSqlite(path, {
    clock: new TestClock(),
    exclusive: true,
    onFatal: (error) => fatal.push(error),
    onDamaged: (error) => damaged.push(error),
    disk: { reserve_bytes: 0, space: () => space },
    ...options,
  })
  opened.push(db)
  return db
}

/** A database of 100 notes of about a page each, closed. */
async function filled(): Promise<void> {
  const db = open()
  await db.write((tx) => tx.run(CREATE, {}))
  for (let id = 1; id <= 100; id++) await write(db, id)
  await db.close()
}

const text = 'x'.repeat(3_000)
const write = (db: Db, id: number, long = text) => db.write((tx) => tx.run(INSERT, { id, text: long }))
const outcome = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error) => (error instanceof DbError ? error.kind : (error as ApiError).code),
  )
const read = async (db: Db, id: number) => (await db.one(FIND, { id }))?.text.length

/** Overwrites the pages from this one on. */
function flip(from_page: number, pages: number): void {
  const file = readFileSync(path)
  file.fill(0xa5, from_page * 4_096, Math.min(file.length, (from_page + pages) * 4_096))
  writeFileSync(path, file)
}

/** The first note that cannot be read any more, and how many can. */
async function readAll(db: Db): Promise<{ read: number; damaged: number }> {
  const kinds = await Promise.all(
    Array.from({ length: 100 }, (_, i) => outcome((async () => read(db, i + 1))())),
  )
  return {
    read: kinds.filter((kind) => kind === 'done').length,
    damaged: kinds.filter((kind) => kind === 'damaged').length,
  }
}

describe('a damaged file', () => {
  test('is found at the start: nothing is written, what can be read is, and it is said once', async () => {
    await filled()
    flip(40, 20)
    const db = open()
    expect([db.trouble(), damaged.length]).toEqual([
      { kind: 'damaged', reason: 'the database file is damaged' },
      1,
    ])
    expect(await outcome(write(db, 101))).toBe('damaged')
    const found = await readAll(db)
    expect(found.read + found.damaged).toBe(100)
    expect(found.read).toBeGreaterThan(50)
    expect(found.damaged).toBeGreaterThan(10)
    expect([damaged.length, fatal.length]).toEqual([1, 0])
    expect((await db.faults()).length).toBeGreaterThan(0)
  })

  test('is found by a read: from then on nothing is written', async () => {
    await filled()
    const db = open()
    expect([db.trouble(), await db.faults()]).toEqual([null, []])
    expect(await outcome(write(db, 101))).toBe('done')
    await db.close()
    const again = open()
    flip(40, 20)
    expect((await readAll(again)).damaged).toBeGreaterThan(10)
    expect([again.trouble()?.kind, damaged.length]).toEqual(['damaged', 1])
    expect(await outcome(write(again, 102))).toBe('damaged')
    expect(await read(again, 1)).toBe(3_000)
    expect(fatal).toEqual([])
  })

  test('is found by a write: its neighbours are told the same, and nothing of them was done', async () => {
    await filled()
    flip(10, 100)
    const db = open({ exclusive: false }) // which does not look through the file first
    const writes = [write(db, 101), db.write((tx) => tx.run(DELETE, { id: 60 })), write(db, 102)]
    expect(await Promise.all(writes.map(outcome))).toEqual(['damaged', 'damaged', 'damaged'])
    expect([db.trouble()?.kind, damaged.length, fatal.length]).toEqual(['damaged', 1, 0])
  })

  test('that is cut short is refused in one line that names it', async () => {
    await filled()
    truncateSync(path, 20 * 4_096)
    expect(() => open()).toThrow(
      new Error(`${path} is damaged, or cut short: restore a backup (database disk image is malformed)`),
    )
  })

  test('that is cut short within its last page is served, and not written', async () => {
    await filled()
    truncateSync(path, statSync(path).size - 1)
    expect(open().trouble()?.kind).toBe('damaged')
    expect(damaged.map(String)).toEqual(['DbError: the last page is cut short'])
  })

  test('without its first page is refused in one line that names it', async () => {
    await filled()
    flip(0, 1)
    expect(() => open()).toThrow(new Error(`${path} is not a SQLite database, or its first page is damaged`))
  })
})

describe('a file that cannot be written', () => {
  test('is refused at the start in one line that names it', async () => {
    await filled()
    // As of a file of mode 0400, which the superuser of some test machine could still write.
    sqlite_pragmas.push('pragma query_only = on')
    try {
      expect(() => open()).toThrow(new Error(`cannot write to ${path}: attempt to write a readonly database`))
    } finally {
      sqlite_pragmas.pop()
    }
    expect(open().trouble()).toBeNull()
  })

  test.each(['-wal', '-shm', '.lock'])(
    'nor one whose %s cannot be opened: that file is named',
    async (end) => {
      await filled()
      for (const db of opened.splice(0)) await db.close()
      rmSync(path + end, { force: true })
      mkdirSync(path + end)
      expect(() => open()).toThrow(`cannot write to ${path}${end}: `)
    },
  )

  test('nor one on a disk without room: its lock that cannot be opened is named', async () => {
    space.free = 0
    mkdirSync(`${path}.lock`)
    expect(() => open()).toThrow(`cannot write to ${path}.lock: `)
  })

  test('nor can one be made where a file stands in place of the folder', () => {
    writeFileSync(join(folder, 'file'), '')
    path = join(folder, 'file', 'test.db')
    expect(() => open()).toThrow(/ENOTDIR|EEXIST|cannot write to/)
  })
})

describe('the reserve', () => {
  const reserve = () => (existsSync(`${path}.reserve`) ? statSync(`${path}.reserve`).size : null)
  const disk = (reserve_bytes: number | null) => ({ disk: { reserve_bytes, space: () => space } })
  const grow = (db: Db, id: number) =>
    db.write(async (tx) => {
      if (tx.disk_full) throw new ApiError('STORAGE_FULL')
      await tx.run(INSERT, { id, text })
    })
  const growing = (db: Db) => db.write((tx) => tx.disk_full)

  test.each([
    [10_000, 256],
    [2_000, 100],
    [500, 36],
  ])(
    'of a disk of %d MiB is %d MiB: what grows is refused with less, and not with as much',
    (total, least) => {
      space.total = total * mib
      const disk = new Disk(path, { reserve_bytes: null, space: () => space })
      const full = (free: number, reusable: number) => {
        space.free = free
        disk.look(reusable)
        return disk.full
      }
      expect([full(least * mib, 0), full(least * mib - 1, 0)]).toEqual([false, true])
      expect([full(least * mib - 1, 1), full(least * mib, -1)]).toEqual([false, true])
    },
  )

  test('is watched once a second: a node that has less is not ready, until there is room', async () => {
    const db = open(disk(null))
    expect([await growing(db), db.trouble()]).toEqual([false, null])
    space.free = 200 * mib
    await db.maintain()
    expect([await growing(db), db.trouble()]).toEqual([
      true,
      { kind: 'full', reason: 'the disk is nearly full' },
    ])
    space.free = 300 * mib
    await db.maintain()
    expect([await growing(db), db.trouble()]).toEqual([false, null])
  })

  test('is in part a file of 32 MiB, which counts as free, and is made once there is room', async () => {
    space.free = 100 * mib
    const db = open(disk(200 * mib))
    await db.maintain()
    expect([reserve(), await growing(db)]).toEqual([null, true])
    space.free = 200 * mib + log_bytes
    await db.maintain()
    expect([reserve(), await growing(db)]).toEqual([32 * mib, false])
    space.free = 168 * mib + log_bytes
    await db.maintain()
    expect(await growing(db)).toBe(false)
    space.free = 168 * mib
    await db.maintain()
    expect([reserve(), await growing(db)]).toEqual([32 * mib, true])
    await db.close()
    // A start that finds no room at all leaves nothing of the file.
    space.free = 8 * mib - 1
    open(disk(200 * mib))
    expect(reserve()).toBeNull()
  })

  test('of a service that runs stays, when a second one is refused on a full disk', async () => {
    const db = open(disk(50 * mib))
    await db.maintain()
    space.free = 0
    expect(() => open(disk(50 * mib))).toThrow('another process has this database open')
    expect(reserve()).toBe(32 * mib)
  })

  test('makes room for the lock of a start, and only when the lock could not be taken for lack of room', async () => {
    const db = open(disk(50 * mib))
    await db.maintain()
    await db.close()
    rmSync(`${path}.lock`, { force: true })
    mkdirSync(`${path}.lock`)
    expect(() => open(disk(50 * mib))).toThrow('cannot write to')
    expect(reserve()).toBe(32 * mib)
    space.free = 8 * mib - 1
    expect(() => open(disk(50 * mib))).toThrow('cannot write to')
    expect(reserve()).toBeNull()
  })

  test('of 0 is none: no file, and nothing is refused before the disk is full', async () => {
    space.free = 0
    const db = open(disk(0))
    await db.maintain()
    expect([reserve(), await growing(db)]).toEqual([null, false])
  })

  test('that is full lets a database close in order, and open again with all that was written', async () => {
    const db = open(disk(0))
    await db.write((tx) => tx.run(CREATE, {}))
    await write(db, 1)
    const original = Connection.prototype.exec
    const exec = spyOn(Connection.prototype, 'exec').mockImplementation(function (
      this: Connection,
      text: string,
    ) {
      if (text.includes('truncate')) throw Object.assign(new Error('no room'), { code: 'SQLITE_FULL' })
      original.call(this, text)
    })
    try {
      await db.close()
    } finally {
      exec.mockRestore()
    }
    expect(await read(open(disk(0)), 1)).toBe(3_000)
  })

  test('counts what the database has free within its file', async () => {
    const db = open(disk(100 * mib))
    await db.write((tx) => tx.run(CREATE, {}))
    for (let id = 1; id <= 20; id++) await write(db, id, 'x'.repeat(100_000))
    space.free = 100 * mib + log_bytes - 2 * mib
    await db.maintain()
    expect(await growing(db)).toBe(true)
    for (let id = 1; id <= 20; id++) await db.write((tx) => tx.run(DELETE, { id }))
    await db.maintain()
    expect(await growing(db)).toBe(false)
  })

  test('is looked after again when much has grown within a second', async () => {
    space.free = 200 * mib
    const db = open(disk(100 * mib))
    space.free = 0
    expect(await growing(db)).toBe(false)
    await db.write((tx) => tx.run(COUNTERS, {}))
    await db.write((tx) => tx.stores('ten_a', 17 * mib))
    expect(await growing(db)).toBe(false)
    await db.write((tx) => tx.stores('ten_a', 1))
    expect(await growing(db)).toBe(true)
  })

  test('that cannot be looked after once a batch is committed fails nothing of it, runs nothing twice, and is told', async () => {
    space.free = 200 * mib
    const told: unknown[] = []
    let failure: Error | null = null
    const throwing = () => {
      if (failure) throw failure
      return space
    }
    const onDiskUnknown = (error: unknown) => told.push(error)
    const db = open({ disk: { reserve_bytes: 100 * mib, space: throwing }, onDiskUnknown })
    await db.write((tx) => tx.run(CREATE, {}))
    await db.write((tx) => tx.run(COUNTERS, {}))
    const codes = ['EIO', 'SQLITE_FULL', 'SQLITE_IOERR_READ']
    for (const [i, code] of codes.entries()) {
      failure = Object.assign(new Error('statfs'), { code })
      let runs = 0
      const work = (id: number) =>
        db.write(async (tx) => {
          runs += 1
          tx.stores('ten_a', 20 * mib)
          await tx.run(INSERT, { id, text })
        })
      expect(await Promise.all([work(2 * i), work(2 * i + 1)].map(outcome))).toEqual(['done', 'done'])
      expect([runs, told.length, told.at(-1), fatal.length]).toEqual([2, i + 1, failure, 0])
    }
    // The look is still due: the next commit makes it.
    failure = null
    space.free = 0
    expect(await growing(db)).toBe(false)
    expect([await growing(db), told.length, await read(db, 5)]).toEqual([true, codes.length, 3_000])
  })

  test('is released when SQLite finds no room: what does not grow is done, what grows refuses itself', async () => {
    sqlite_pragmas.push('pragma max_page_count = 60')
    try {
      space.free = 100 * mib
      const db = open(disk(50 * mib))
      await db.maintain()
      await db.write((tx) => tx.run(CREATE, {}))
      for (let id = 1; id <= 40; id++) await grow(db, id)
      expect(reserve()).toBe(32 * mib)
      const removed = (id: number) => db.write((tx) => tx.run(DELETE, { id }))
      // 60 pages are too few for all of these; those that do not grow share the commit, and are done.
      const together = [...Array.from({ length: 30 }, (_, i) => grow(db, 100 + i)), removed(1), removed(2)]
      const kinds = await Promise.all(together.map(outcome))
      expect(kinds).toEqual([...Array(30).fill('STORAGE_FULL'), 'done', 'done'])
      expect([reserve(), db.trouble()?.kind]).toEqual([null, 'full'])
      expect([await read(db, 1), await read(db, 3), fatal.length]).toEqual([undefined, 3_000, 0])
      // Without a new start: a look finds room, the file is made again, and what grows is taken.
      await db.maintain()
      expect([await outcome(grow(db, 500)), reserve(), db.trouble()]).toEqual(['done', 32 * mib, null])
    } finally {
      sqlite_pragmas.pop()
    }
  })

  test('that cannot be released, and a checkpoint that fails, leave the second attempt of a full disk to be made', async () => {
    sqlite_pragmas.push('pragma max_page_count = 60')
    const original = Connection.prototype.exec
    const exec = spyOn(Connection.prototype, 'exec')
    try {
      mkdirSync(`${path}.reserve/within`, { recursive: true })
      space.free = 100 * mib
      const db = open(disk(50 * mib))
      await db.write((tx) => tx.run(CREATE, {}))
      for (let id = 1; id <= 40; id++) await grow(db, id)
      let checkpoints = 0
      exec.mockImplementation(function (this: Connection, text: string) {
        if (!text.includes('wal_checkpoint')) return original.call(this, text)
        checkpoints += 1
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' })
      })
      const removed = db.write((tx) => tx.run(DELETE, { id: 1 }))
      const kinds = await Promise.all(
        [...Array.from({ length: 30 }, (_, i) => grow(db, 100 + i)), removed].map(outcome),
      )
      expect(kinds).toEqual([...Array(30).fill('STORAGE_FULL'), 'done'])
      expect([checkpoints, fatal.length, existsSync(`${path}.reserve`)]).toEqual([1, 0, true])
    } finally {
      exec.mockRestore()
      sqlite_pragmas.pop()
    }
  })

  /** The next commit fails as SQLite reports every failed write but one without room on the disk. */
  function failOneCommit(code = 'SQLITE_IOERR_WRITE', wanted = 'commit'): { mockRestore(): void } {
    const original = Connection.prototype.exec
    let is_due = true
    return spyOn(Connection.prototype, 'exec').mockImplementation(function (this: Connection, text: string) {
      if (!is_due || text !== wanted) return original.call(this, text)
      is_due = false
      throw Object.assign(new Error('disk I/O error'), { code })
    })
  }

  test('whose quota is used up refuses what grows, until there is room for more than its reserve', async () => {
    let over = false
    const db = open({ disk: { reserve_bytes: 50 * mib, space: () => space, overQuota: () => over } })
    await db.maintain()
    await db.write((tx) => tx.run(CREATE, {}))
    await grow(db, 1)
    expect(reserve()).toBe(32 * mib)
    over = true
    const exec = failOneCommit()
    const removed = db.write((tx) => tx.run(DELETE, { id: 1 }))
    try {
      expect(await Promise.all([outcome(grow(db, 2)), outcome(removed)])).toEqual(['STORAGE_FULL', 'done'])
    } finally {
      exec.mockRestore()
    }
    expect([reserve(), db.trouble()?.kind, fatal.length]).toEqual([null, 'full', 0])
    // The system says that there is room, so only the file of the reserve shows it: it is tried again with the tenth look.
    for (let look = 1; look <= 9; look++) await db.maintain()
    expect([reserve(), db.trouble()?.kind, await outcome(grow(db, 3))]).toEqual([
      null,
      'full',
      'STORAGE_FULL',
    ])
    await db.maintain()
    await db.maintain()
    expect([reserve(), db.trouble(), await outcome(grow(db, 4))]).toEqual([32 * mib, null, 'done'])
  })

  test.each([
    ['a write fails and no quota is used up', 'SQLITE_IOERR_WRITE', false],
    ['a flush fails, also while a quota is used up', 'SQLITE_IOERR_FSYNC', true],
  ])('does not keep the service from ending when %s', async (_, code, over) => {
    const db = open({ disk: { reserve_bytes: 50 * mib, space: () => space, overQuota: () => over } })
    await db.write((tx) => tx.run(CREATE, {}))
    const exec = failOneCommit(code)
    try {
      expect(await outcome(grow(db, 1))).toBe('outcome_unknown')
    } finally {
      exec.mockRestore()
    }
    expect([fatal.length, readdirSync(folder).filter((name) => name.endsWith('.probe'))]).toEqual([1, []])
  })

  test('whose quota is used up for a copy of the log refuses what grows, until there is room again', async () => {
    let over = false
    const disk = new Disk(path, { reserve_bytes: 50 * mib, space: () => space, overQuota: () => over })
    await disk.keepReserve()
    const failure = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' })
    over = true
    expect(disk.judged(failure)).toMatchObject({ kind: 'full' })
    expect([disk.full, reserve()]).toEqual([true, null])
    over = false
    for (let look = 1; look <= 10; look++) {
      disk.look(0)
      expect(disk.full).toBe(true)
      await disk.keepReserve()
    }
    disk.look(0)
    expect([disk.full, reserve()]).toEqual([false, 32 * mib])
  })

  test('that was released for one write also explains another that failed with it, and no later one', () => {
    let over = true
    const disk = new Disk(path, { reserve_bytes: 50 * mib, space: () => space, overQuota: () => over })
    const failure = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_WRITE' })
    const kindOf = () => (disk.judged(failure) as DbError).kind
    expect(kindOf()).toBe('full')
    over = false
    disk.look(0)
    expect(kindOf()).toBe('full')
    disk.look(0)
    expect(disk.judged(failure)).toBe(failure)
  })

  test('that a quota has no room for is not written at each look, and what grows is refused', async () => {
    const disk = new Disk(path, { reserve_bytes: 50 * mib, space: () => space, overQuota: () => false })
    const file = await openFile(path, 'w')
    const writes = spyOn(Object.getPrototypeOf(file), 'write').mockImplementation(() => {
      throw Object.assign(new Error('quota exceeded'), { code: 'EDQUOT' })
    })
    try {
      for (let look = 1; look <= 15; look++) {
        disk.look(0)
        await disk.keepReserve()
      }
      expect([writes.mock.calls.length, disk.full, reserve()]).toEqual([2, true, null])
    } finally {
      writes.mockRestore()
      await file.close()
    }
    expect(readdirSync(folder)).toEqual(['test.db'])
  })

  test('is not needed by a close: the log stays a log when a quota refuses its copy', async () => {
    const db = open({ disk: { reserve_bytes: 50 * mib, space: () => space, overQuota: () => true } })
    await db.write((tx) => tx.run(CREATE, {}))
    const exec = failOneCommit('SQLITE_IOERR_WRITE', 'pragma wal_checkpoint(truncate)')
    try {
      await db.close()
    } finally {
      exec.mockRestore()
    }
    expect(fatal).toEqual([])
    expect(() => open()).not.toThrow()
  })

  test('is looked for without a file that is left, or that somebody else has made', () => {
    writeFileSync(`${path}.probe`, 'of an operator')
    expect(isOverQuota(path)).toBe(false)
    expect(isOverQuota(join(folder, 'missing', 'test.db'))).toBe(false)
    expect([readdirSync(folder), readFileSync(`${path}.probe`, 'utf8')]).toEqual([
      ['test.db.probe'],
      'of an operator',
    ])
  })
})
