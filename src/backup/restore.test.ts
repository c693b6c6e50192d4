// Where a restore keeps its draft, and what one leaves that was killed.

import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { TestService } from '../../test/support/service.ts'
import { sqlitePath } from '../db/open.ts'
import { takeLock } from '../db/sqlite-lock.ts'
import * as quarantine from '../quarantine/service.ts'
import { lockOf } from './file.ts'
import { release } from './release.ts'
import { restoreBackup } from './restore.ts'

const SECRET_KEY = 'the secret key of these databases'
const BACKUP_PASSPHRASE = 'correct horse battery staple'
const root = mkdtempSync(join(tmpdir(), 'waystation-restore-'))
const file = join(root, 'backup.db')
const source = new TestService({ SECRET_KEY })
let operator: Operator

beforeAll(async () => {
  await source.start(`sqlite:${join(root, 'source.db')}`)
  await source.signUp()
  operator = new Operator({ DATABASE_URL: source.database_url, DATA_DIR: root, SECRET_KEY })
  await operator.does('backup', file)
}, test_ms_max)
afterAll(async () => {
  await source.stop()
  rmSync(root, { recursive: true, force: true })
})

const newFolder = () => mkdtempSync(join(root, 'folder-'))

forEachDatabase('A restore', (databases) => {
  const { engine } = databases

  test(
    'into PostgreSQL has its draft in the folder of --scratch, alone, and leaves nothing there',
    async () => {
      const scratch = newFolder()
      const DATA_DIR = join(root, `none-${engine}`)
      writeFileSync(DATA_DIR, '') // nothing can be written there
      const there = operator.with({ DATABASE_URL: await databases.newUrl(), DATA_DIR })
      if (engine === 'sqlite') {
        expect(await there.refusal('restore', file, '--scratch', scratch)).toBe(
          'waystation admin: --scratch is for a restore into PostgreSQL: a SQLite database is built in its final place',
        )
        return
      }
      expect(await there.refusal('restore', file)).toMatch(/EEXIST|ENOTDIR/)
      const lock = takeLock(lockOf(join(scratch, 'restoring.db')))!
      expect(await there.refusal('restore', file, '--scratch', scratch)).toBe(
        `waystation admin: another restore has its draft in ${scratch}: use another --scratch`,
      )
      lock.close()
      for (const name of ['restoring.db', 'restoring.db-wal'])
        writeFileSync(join(scratch, name), 'of one that was killed')
      expect(await there.json('restore', file, '--scratch', scratch)).toMatchObject({
        tenants: 1,
        quarantined: true,
      })
      expect(readdirSync(scratch)).toEqual([])
    },
    test_ms_max,
  )

  test(
    'leaves alone a database that a service was started on while it asked for the passphrase',
    async () => {
      const beside = join(newFolder(), 'backup.db')
      await operator.with({ BACKUP_PASSPHRASE }).does('backup', beside, '--secrets')
      const database_url = await databases.newUrl()
      const service = new TestService({ SECRET_KEY })
      const asked = async () => {
        await service.start(database_url)
        await service.signUp()
        await service.app.stop()
        return BACKUP_PASSPHRASE
      }
      const target = { database_url, data_dir: newFolder(), secret_key: null, secret_key_previous: null }
      await expect(restoreBackup({ ...target, scratch: null }, beside, asked)).rejects.toThrow(
        /already exists|this database is in use: restore into an empty one/,
      )
      await service.start(database_url) // throws for one in which a restore has begun
      await service.stop()
    },
    test_ms_max,
  )

  test(
    'beside another one into the same database fails alone, with one line',
    async () => {
      const DATABASE_URL = await databases.newUrl()
      const restoring = [1, 2].map(() =>
        operator.with({ DATABASE_URL, DATA_DIR: newFolder() }).run('restore', file),
      )
      const ended = (await Promise.all(restoring)).toSorted((one, other) => one.code - other.code)
      expect(ended.map(({ code }) => code)).toEqual([0, 1])
      expect(ended[1]!.stderr).toMatch(
        /already exists|has this database open|this database is in use: restore/,
      )
      expect(await operator.with({ DATABASE_URL }).does('check')).toContain('the database is whole')
    },
    test_ms_max,
  )

  test('is released once: who comes second reads that the database is not in quarantine', async () => {
    const { db } = await databases.open()
    await quarantine.enter(db, null, async () => false)
    await db.write((tx) => quarantine.complete(tx))
    const write = db.write.bind(db)
    const writing = spyOn(db, 'write').mockImplementationOnce((async (work: never) => {
      await release(db, false)
      return write(work)
    }) as unknown as typeof db.write)
    await expect(release(db, false)).rejects.toThrow(new Error('the database is not in quarantine'))
    expect(writing).toHaveBeenCalledTimes(2)
  })
})

test.each([
  [['restore', file, '--scratch'], 'it is --scratch <folder>; see npm run admin -- help'],
  [['restore', file, '--scratch', '--json'], 'it is --scratch <folder>; see npm run admin -- help'],
  [['tenants', '--scratch', 'x'], 'tenants has no option --scratch; see npm run admin -- help'],
])('%p is refused with one line', async (words, line) => {
  expect(await operator.refusal(...words)).toBe(`waystation admin: ${line}`)
})

test('of SQLite into a folder that takes no writes is refused with the name of the file', async () => {
  const path = join(newFolder(), 'waystation.db')
  mkdirSync(`${path}.lock`)
  expect(await operator.with({ DATABASE_URL: `sqlite:${path}` }).refusal('restore', file)).toBe(
    `waystation admin: cannot write to ${path}.lock: unable to open database file`,
  )
})

test.each([0o644, 0o400])(
  'of SQLite is for its owner alone to read and write, from a file of mode %o',
  async (mode) => {
    const DATABASE_URL = `sqlite:${join(newFolder(), 'waystation.db')}`
    chmodSync(file, mode)
    await operator.with({ DATABASE_URL }).does('restore', file)
    chmodSync(file, 0o600)
    expect(statSync(sqlitePath(DATABASE_URL)!).mode & 0o777).toBe(0o600)
  },
)

test('of SQLite goes where a link leads whose file is lost, and into no folder that is not there', async () => {
  const [folder, disk] = [newFolder(), newFolder()]
  const [link, lost] = [join(folder, 'waystation.db'), join(disk, 'lost.db')]
  symlinkSync(lost, link)
  const there = operator.with({ DATABASE_URL: `sqlite:${link}` })
  expect(await there.json('restore', file)).toMatchObject({ tenants: 1 })
  expect(await there.json('stats')).toContainEqual({ name: 'tenants', value: 1, bytes: null })
  expect([lstatSync(link).isSymbolicLink(), lstatSync(lost).isFile()]).toEqual([true, true])
  rmSync(disk, { recursive: true })
  expect(await there.refusal('restore', file)).toContain(`the file ${link} already exists`)
  expect(existsSync(disk)).toBe(false)
})

test('of SQLite that was killed with its draft written is begun again', async () => {
  const DATABASE_URL = `sqlite:${join(newFolder(), 'waystation.db')}`
  const path = sqlitePath(DATABASE_URL)!
  for (const end of ['', '-wal', '-shm']) writeFileSync(`${path}.restoring${end}`, 'of one that was killed')
  expect(await operator.with({ DATABASE_URL }).json('restore', file)).toMatchObject({ tenants: 1 })
  expect(existsSync(`${path}.restoring`)).toBe(false)
})

test('of SQLite that was killed between its two names is served, under one name alone', async () => {
  const DATABASE_URL = `sqlite:${join(newFolder(), 'waystation.db')}`
  const path = sqlitePath(DATABASE_URL)!
  await operator.with({ DATABASE_URL }).does('restore', file)
  linkSync(path, `${path}.restoring`)
  const service = new TestService({ SECRET_KEY })
  await service.start(DATABASE_URL)
  expect((await service.ask('GET', '/readyz')).body.quarantined_since).toEqual(expect.any(String))
  expect(existsSync(`${path}.restoring`)).toBe(false)
  await service.stop()
})
