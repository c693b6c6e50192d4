// The secrets beside a backup open it, or there is no backup; a restore keeps them once they have opened it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
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
import { join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { TestService } from '../../test/support/service.ts'
import { makeFolder } from '../base/folder.ts'

const SECRET_KEY = 'the secret key of these databases'
const other_key = 'the secret key of another service'
const BACKUP_PASSPHRASE = 'correct horse battery staple'
const root = mkdtempSync(join(tmpdir(), 'waystation-secrets-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let made = 0
function newFolder(): string {
  made += 1
  const folder = join(root, `folder-${made}`)
  makeFolder(folder)
  return folder
}

forEachDatabase('A backup with its secrets', (databases) => {
  let operator: Operator

  async function operatorOf(SECRET_KEY: string): Promise<Operator> {
    const service = new TestService({ SECRET_KEY })
    service.engine = databases.engine
    const DATABASE_URL = await databases.newUrl()
    await service.start(DATABASE_URL)
    await service.signUp()
    await service.stop()
    return new Operator({ DATABASE_URL, DATA_DIR: newFolder(), SECRET_KEY, BACKUP_PASSPHRASE })
  }

  beforeAll(async () => {
    operator = await operatorOf(SECRET_KEY)
  }, test_ms_max)

  test.each([
    ['another key', { SECRET_KEY: other_key }],
    [
      'another key, and another one before it',
      { SECRET_KEY: other_key, SECRET_KEY_PREVIOUS: 'a third secret key' },
    ],
  ])(
    'fails when they do not open it, %s, and leaves nothing at its name',
    async (_, keys) => {
      const folder = newFolder()
      const refusal = await operator.with(keys).refusal('backup', join(folder, 'a.db'), '--secrets')
      expect(refusal).toBe(
        'waystation admin: SECRET_KEY: this database was sealed with another key; give every node the first one',
      )
      expect(readdirSync(folder)).toEqual([])
    },
    test_ms_max,
  )

  test(
    'is written with both keys while one replaces the other, and a key that a rotation has replaced does not do',
    async () => {
      const rotated = await operatorOf(SECRET_KEY)
      const both = { SECRET_KEY: other_key, SECRET_KEY_PREVIOUS: SECRET_KEY }
      const folder = newFolder()
      expect(await rotated.with(both).json('backup', join(folder, 'before.db'), '--secrets')).toMatchObject({
        secrets: join(folder, 'before.db.secrets'),
      })
      const service = new TestService(both)
      service.engine = databases.engine
      await service.start(rotated.env.DATABASE_URL!)
      await service.stop()
      const lacks = /this database was sealed with another key/
      expect(await rotated.refusal('backup', join(folder, 'during.db'), '--secrets')).toMatch(lacks)
      await rotated.with(both).does('backup', join(folder, 'during.db'), '--secrets')
      await rotated.with(both).does('rotate-secret-key')
      const swapped = { SECRET_KEY, SECRET_KEY_PREVIOUS: other_key }
      expect(await rotated.with(swapped).refusal('backup', join(folder, 'after.db'), '--secrets')).toMatch(
        /SECRET_KEY: a rotation has replaced this key/,
      )
      await rotated.with({ SECRET_KEY: other_key }).does('backup', join(folder, 'after.db'), '--secrets')
      for (const name of ['during', 'after']) {
        const there = new Operator({
          DATABASE_URL: await databases.newUrl(),
          DATA_DIR: newFolder(),
          BACKUP_PASSPHRASE,
        })
        expect(await there.json('restore', join(folder, `${name}.db`))).toMatchObject({ tenants: 1 })
      }
    },
    test_ms_max,
  )

  test(
    'is not restored by secrets of another one, and these are not kept',
    async () => {
      const [folder, elsewhere] = [newFolder(), newFolder()]
      const file = join(folder, 'a.db')
      await operator.does('backup', file, '--secrets')
      const other = await operatorOf(other_key)
      await other.does('backup', join(elsewhere, 'b.db'), '--secrets')
      const right = readFileSync(`${file}.secrets`)
      copyFileSync(join(elsewhere, 'b.db.secrets'), `${file}.secrets`)
      const DATA_DIR = join(newFolder(), 'data')
      const env = { DATABASE_URL: await databases.newUrl(), DATA_DIR, BACKUP_PASSPHRASE }
      const there = new Operator(env)
      expect(await there.refusal('restore', file)).toMatch(/this database was sealed with another key/)
      const secretsIn = (folder: string) =>
        existsSync(folder) ? readdirSync(folder).filter((name) => /secret/.test(name)) : []
      expect(secretsIn(DATA_DIR)).toEqual([])
      writeFileSync(`${file}.secrets`, right)
      expect(await there.json('restore', file)).toMatchObject({ tenants: 1 })
      expect(secretsIn(DATA_DIR)).toEqual(['secret_key'])
    },
    test_ms_max,
  )

  test(
    'puts the key last into the data folder: one that was interrupted is begun again whole',
    async () => {
      const file = join(newFolder(), 'a.db')
      const CRON_SECRET = 'the cron secret of these databases'
      await operator.with({ CRON_SECRET }).does('backup', file, '--secrets')
      const DATA_DIR = newFolder()
      makeFolder(join(DATA_DIR, 'cron_secret')) // it cannot be written there
      const there = new Operator({ DATABASE_URL: await databases.newUrl(), DATA_DIR, BACKUP_PASSPHRASE })
      await there.refusal('restore', file)
      expect(existsSync(join(DATA_DIR, 'secret_key'))).toBe(false)
      rmSync(join(DATA_DIR, 'cron_secret'), { recursive: true })
      await there.does('restore', file)
      expect(readFileSync(join(DATA_DIR, 'cron_secret'), 'utf8')).toBe(`${CRON_SECRET}\n`)
    },
    test_ms_max,
  )
})
