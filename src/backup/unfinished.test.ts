// An interrupted restore leaves files that are not a database yet: no command takes them for one.

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { Operator, pastPooler } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { ownerUrlOf } from '../../test/support/postgres.ts'
import { TestService } from '../../test/support/service.ts'
import { systemClock } from '../base/clock.ts'
import { unnamed } from '../db/db.ts'
import { migrate } from '../db/migrate.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { migrations } from '../features.ts'
import { enter } from '../quarantine/service.ts'

const SECRET_KEY = 'the secret key of these databases'
const root = mkdtempSync(join(tmpdir(), 'waystation-unfinished-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const unfinished = /a restore into this database has not ended/

const COUNT_APPLIED = unnamed<{ applied: number }>(
  'test.count_applied',
  'select count(*) as applied from applied_migrations',
)

/** Of a PostgreSQL database that has a schema. */
async function emptied(url: string): Promise<void> {
  const connection = new SQL({ url, max: 1 })
  await connection
    .unsafe('drop schema public cascade; create schema public; grant usage on schema public to public')
    .simple()
  await connection.close()
}

forEachDatabase('A restore that was interrupted', (databases) => {
  const { engine } = databases

  /** With a tenant, as another tool has copied it, marked halfway. */
  async function halfway(): Promise<Operator> {
    const DATABASE_URL = await databases.newUrl()
    const service = new TestService({ SECRET_KEY })
    service.engine = engine
    await service.start(DATABASE_URL)
    await service.signUp()
    await enter(service.app.db, null, async () => false)
    await service.stop()
    return new Operator({ DATABASE_URL, DATA_DIR: root, SECRET_KEY })
  }

  test('is opened by no command but quarantine, which ends it', async () => {
    const operator = await halfway()
    const file = join(root, `${engine}.db`)
    for (const words of [
      ['tenants'],
      ['stats'],
      ['due'],
      ['check'],
      ['create-tenant', 'acme', 'a@b.example'],
      ['reset-admin-key', '--all', '--yes'],
      ['rotate-secret-key'],
      ['recount'],
      ['release', '--yes'],
      ['vacuum'],
      ['backup', file],
    ])
      expect([words, await operator.refusal(...words)]).toEqual([words, expect.stringMatching(unfinished)])
    expect(readdirSync(root).filter((name) => name.startsWith(`${engine}.db`))).toEqual([])
    expect(await operator.json('quarantine', '--yes')).toMatchObject({ tenants: 1, quarantined: true })
    expect(await operator.json('tenants')).toHaveLength(1)
  })

  test('is refused before its schema is changed', async () => {
    const DATABASE_URL = await databases.newUrl()
    const owner_url = ownerUrlOf(DATABASE_URL)
    if (engine === 'postgres') await emptied(owner_url)
    const open = () => openDb(owner_url, { clock: systemClock, exclusive: false, onFatal() {} })
    const earlier = migrations.slice(0, -3)
    let db = await open()
    await migrate(db, earlier)
    await enter(db, null, async () => false)
    await db.close()
    const service = new TestService(pastPooler({ DATABASE_URL, SECRET_KEY }))
    service.engine = engine
    await expect(service.start(DATABASE_URL)).rejects.toThrow(unfinished)
    const operator = new Operator({ DATABASE_URL, DATA_DIR: root, SECRET_KEY })
    expect(await operator.refusal('stats')).toMatch(unfinished)
    db = await open()
    expect(Number((await db.one(COUNT_APPLIED, {}))!.applied)).toBe(earlier.length)
    await db.close()
  })
})

test('a file that is neither a whole copy nor a backup is refused before it is searched', async () => {
  const folder = mkdtempSync(join(root, 'file-'))
  const path = join(folder, 'waystation.db.restoring')
  const db = await openDb(`sqlite:${path}`, { clock: systemClock, exclusive: false, onFatal() {} })
  await migrate(db, migrations)
  await enter(db, null, async () => false)
  await db.close()
  const file = new Database(path)
  file.run('pragma journal_mode = delete')
  file.close()
  // A fault that a look through the file finds.
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0, bytes.length - 4_096))
  const operator = new Operator({
    DATABASE_URL: `sqlite:${join(folder, 'new.db')}`,
    DATA_DIR: folder,
    SECRET_KEY,
  })
  for (const command of ['verify', 'restore'])
    expect(await operator.refusal(command, path)).toMatch(unfinished)
})

test('a backup that lies where the database should be is neither vacuumed nor copied as one', async () => {
  const source = new TestService({ SECRET_KEY })
  const folder = mkdtempSync(join(root, 'placed-'))
  await source.start(`sqlite:${join(folder, 'source.db')}`)
  await source.signUp()
  const operator = new Operator({ DATABASE_URL: source.database_url, DATA_DIR: folder, SECRET_KEY })
  const file = join(folder, 'backup.db')
  await operator.does('backup', file)
  await source.stop()
  const before = readFileSync(file)
  const there = operator.with({ DATABASE_URL: `sqlite:${file}` })
  for (const words of [['vacuum'], ['backup', join(folder, 'copy.db')]])
    expect(await there.refusal(...words)).toMatch(/it is a backup itself/)
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(existsSync(join(folder, 'copy.db'))).toBe(false)
})

test('a database with a log beside it is refused with the command that makes one file of the two', async () => {
  const source = new TestService({ SECRET_KEY })
  const folder = mkdtempSync(join(root, 'logged-'))
  await source.start(`sqlite:${join(folder, 'source.db')}`)
  await source.signUp()
  const copied = join(folder, 'copied.db')
  for (const end of ['', '-wal']) copyFileSync(sqlitePath(source.database_url)! + end, copied + end)
  await source.stop()
  const operator = new Operator({ DATABASE_URL: 'sqlite:none', DATA_DIR: folder, SECRET_KEY })
  const refusal = await operator.refusal('verify', copied)
  const whole = join(dirname(copied), 'copied.db.whole')
  expect(refusal).toBe(
    `waystation admin: ${copied}-wal has newer writes than ${copied}: make the two into one file, DATABASE_URL='sqlite:${copied}' waystation admin backup '${whole}', and use that`,
  )
  await operator.with({ DATABASE_URL: `sqlite:${copied}` }).does('backup', whole)
  expect((await operator.json('verify', whole)).rows.tenants).toBe(1)
})
