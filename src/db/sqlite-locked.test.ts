// A SQLite file to which another process writes for longer, such as the shell of an operator.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { inTime, until } from '../../test/support/patience.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { DbMeasures } from './measures.ts'
import { openSqlite } from './sqlite.ts'

const CREATE = unnamedAcrossTenants('test.create', 'create table rows (n integer not null) strict')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into rows (n) values (1)')
const COUNT = unnamedAcrossTenants<{ n: number }>('test.count', 'select count(*) as n from rows')

/** Knows that a wait has begun: a write asks once when it comes, and then at each try. */
class AskedClock extends TestClock {
  asked = 0
  override monotonic(): number {
    this.asked += 1
    return super.monotonic()
  }
}

let folder: string
let clock: AskedClock
let db: Db
let other: Database
/** Writes in each commit. */
let commits: number[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-locked-'))
  clock = new AskedClock()
  commits = []
  const measures = new DbMeasures()
  measures.committed = (writes) => void commits.push(writes)
  db = openSqlite(join(folder, 'test.db'), { clock, exclusive: true, measures, onFatal() {} })
  await db.write((tx) => tx.run(CREATE, {}))
  commits = []
  clock.asked = 0
  other = new Database(join(folder, 'test.db'))
  other.run('begin immediate')
})
afterEach(async () => {
  other.close()
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

const count = async () => (await db.one(COUNT, {}))!.n
const insert = () => db.write((tx) => tx.run(INSERT, {}))

/** The kind of the error; null when it was done. */
const kindOf = (written: Promise<unknown>) =>
  written.then(
    () => null,
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )

/** A write that has begun to wait. */
async function waiting(): Promise<Promise<string | null>[]> {
  clock.asked = 0
  const written = kindOf(insert())
  await until(() => clock.asked > 2)
  return [written]
}

test('the event loop and reads go on while a write waits for the lock of another process', async () => {
  const [written] = await waiting()
  expect(await count()).toBe(0)
  other.run('commit')
  expect(await written).toBeNull()
  expect(await count()).toBe(1)
})

test('writes that come meanwhile are done in one commit after it', async () => {
  const first = await waiting()
  const others = [insert(), insert(), insert()].map(kindOf)
  other.run('insert into rows (n) values (1)')
  other.run('commit')
  expect(await Promise.all([...first, ...others])).toEqual([null, null, null, null])
  expect([commits, await count()]).toEqual([[1, 3], 5])
})

test('a lock is waited for until 5 s are over, and then nothing was done and the next write is', async () => {
  const [in_time] = await waiting()
  clock.advance(4_999)
  other.run('commit')
  expect(await in_time).toBeNull()
  other.run('begin immediate')
  const [late] = await waiting()
  clock.advance(5_000)
  expect(await late).toBe('busy')
  other.run('commit')
  await insert()
  expect([commits, await count()]).toEqual([[1, 1], 2])
})

test('a write that comes while another waits has 5 s of its own, and no more', async () => {
  const [first] = await waiting()
  clock.advance(3_000)
  const second = kindOf(insert())
  clock.advance(2_000)
  expect(await first).toBe('busy')
  const third = kindOf(insert())
  clock.advance(2_999)
  const asked = clock.asked
  await until(() => clock.asked > asked + 1) // both are asked for again
  clock.advance(1)
  expect(await inTime(second)).toBe('busy')
  other.run('commit')
  expect([await third, await count()]).toEqual([null, 1])
})

test('the time of a write that waited is that at which it has the lock', async () => {
  const written = db.write((tx) => tx.now)
  await until(() => clock.asked > 2)
  clock.advance(3_000)
  other.run('commit')
  expect(await written).toBe(clock.now())
})

test('a write is refused when the file is found to be gone while it waits', async () => {
  const [written] = await waiting()
  renameSync(join(folder, 'test.db'), join(folder, 'moved.db'))
  expect(db.trouble()?.kind).toBe('removed')
  expect(await inTime(written!)).toBe('damaged')
  expect(db.trouble()?.kind).toBe('removed')
})
