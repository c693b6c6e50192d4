// A SQLite file to which another process writes for longer, such as the shell of an operator.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '../../test/support/clock.ts'
import { until } from '../../test/support/patience.ts'
import { nextTurn } from '../base/next-turn.ts'
import { type Db, unnamedAcrossTenants } from './db.ts'
import { DbError } from './errors.ts'
import { openSqlite } from './sqlite.ts'

const CREATE = unnamedAcrossTenants('test.create', 'create table rows (n integer not null) strict')
const INSERT = unnamedAcrossTenants('test.insert', 'insert into rows (n) values (1)')
const COUNT = unnamedAcrossTenants<{ n: number }>('test.count', 'select count(*) as n from rows')

/** Knows that a wait has begun: nothing else asks for it here. */
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

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waystation-locked-'))
  clock = new AskedClock()
  db = openSqlite(join(folder, 'test.db'), { clock, exclusive: true, onFatal() {} })
  await db.write((tx) => tx.run(CREATE, {}))
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

/** The kind of the error of a write that had begun to wait before so much time passed; null when it was done. */
async function kindAfter(ms: number, meanwhile: () => void): Promise<string | null> {
  const ended = insert().then(
    () => null,
    (error) => (error instanceof DbError ? error.kind : String(error)),
  )
  await until(() => clock.asked > 0)
  clock.advance(ms)
  meanwhile()
  return ended
}

test('the event loop and reads go on while a write waits for the lock of another process', async () => {
  const written = insert()
  await until(() => clock.asked > 1) // it was asked for again, in other turns
  expect(await count()).toBe(0)
  other.run('commit')
  await written
  expect(await count()).toBe(1)
})

test('writes that came meanwhile are done in one commit after it', async () => {
  const written = Array.from({ length: 3 }, insert)
  await nextTurn()
  other.run('insert into rows (n) values (1)')
  other.run('commit')
  await Promise.all(written)
  expect(await count()).toBe(4)
})

test('a lock is waited for until 5 s are over, and then nothing was done and the next write is', async () => {
  expect(await kindAfter(4_999, () => other.run('commit'))).toBeNull()
  other.run('begin immediate')
  clock.asked = 0
  expect(await kindAfter(5_000, () => {})).toBe('busy')
  other.run('commit')
  await insert()
  expect(await count()).toBe(2)
})
