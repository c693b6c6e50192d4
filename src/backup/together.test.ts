// Two backups at once to one name, and backups that were cut off.

import { afterAll, expect, test } from 'bun:test'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { test_ms_max } from '../../test/support/patience.ts'
import { TestService } from '../../test/support/service.ts'
import { takeLock } from '../db/sqlite-lock.ts'
import { lockOf, publish, takeName } from './file.ts'

const SECRET_KEY = 'the secret key of these databases'
const BACKUP_PASSPHRASE = 'correct horse battery staple'
const root = mkdtempSync(join(tmpdir(), 'waystation-together-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const newFolder = () => mkdtempSync(join(root, 'folder-'))

forEachDatabase('Backups to one name', (databases) => {
  async function operatorOf(): Promise<Operator> {
    const service = new TestService({ SECRET_KEY })
    service.engine = databases.engine
    const DATABASE_URL = await databases.newUrl()
    await service.start(DATABASE_URL)
    await service.signUp()
    await service.stop()
    return new Operator({ DATABASE_URL, DATA_DIR: root, SECRET_KEY, BACKUP_PASSPHRASE })
  }

  test(
    'at once: one is written whole, and the other is refused and changes nothing',
    async () => {
      const operator = await operatorOf()
      const folder = newFolder()
      const file = join(folder, 'a.db')
      const ended = await Promise.all([
        operator.run('backup', file),
        operator.run('backup', file, '--secrets'),
      ])
      expect(ended.map(({ code }) => code).toSorted()).toEqual([0, 1])
      const refused = ended.find(({ code }) => code === 1)!
      expect(refused.stderr).toMatch(/(another backup to .* is under way|the file .* already exists)\n$/)
      const with_secrets = ended[1]!.code === 0
      expect(readdirSync(folder).toSorted()).toEqual(
        with_secrets ? ['a.db', 'a.db.secrets', 'a.db.sha256'] : ['a.db', 'a.db.sha256'],
      )
      expect(await operator.json('verify', file)).toMatchObject({
        ...{ has_checksum: true, has_secrets: with_secrets },
        rows: { tenants: 1 },
      })
    },
    test_ms_max,
  )

  test('a backup is refused while another process writes one of that name', async () => {
    const operator = await operatorOf()
    const folder = newFolder()
    const file = join(folder, 'a.db')
    const lock = takeLock(lockOf(file))!
    expect(await operator.refusal('backup', file)).toBe(
      `waystation admin: another backup to ${file} is under way`,
    )
    lock.close()
    rmSync(lockOf(file))
    mkdirSync(lockOf(file)) // as in a folder that takes no writes
    expect(await operator.refusal('backup', file)).toBe(
      `waystation admin: cannot write to ${file}: unable to open database file`,
    )
    rmSync(lockOf(file), { recursive: true })
    await operator.does('backup', file)
    expect(readdirSync(folder).toSorted()).toEqual(['a.db', 'a.db.sha256'])
  })

  test.each([
    ['while it was copied', ['a.db.part-1234abcd', 'a.db.part-1234abcd-journal', 'a.db.part.lock']],
    [
      'before its checksum had its name',
      ['a.db.part-1234abcd', 'a.db.part-1234abcd.sha256', 'a.db.part.lock'],
    ],
    ['before it had its name', ['a.db.part-1234abcd', 'a.db.sha256', 'a.db.secrets', 'a.db.part.lock']],
  ])('one that was killed %s is begun again, and nothing is left of the first', async (_, left) => {
    const operator = await operatorOf()
    const folder = newFolder()
    for (const name of left) writeFileSync(join(folder, name), name.endsWith('lock') ? '' : 'of the first')
    writeFileSync(join(folder, 'a.db.partly'), 'not of a backup')
    await operator.does('backup', join(folder, 'a.db'))
    expect(readdirSync(folder).toSorted()).toEqual(['a.db', 'a.db.partly', 'a.db.sha256'])
    await operator.does('verify', join(folder, 'a.db'))
  })

  test('to the name of secrets whose backup was removed is refused, with its own secrets as well', async () => {
    const operator = await operatorOf()
    const file = join(newFolder(), 'a.db')
    await operator.does('backup', file, '--secrets')
    const kept = readFileSync(`${file}.secrets`)
    for (const end of ['', '.sha256']) rmSync(file + end)
    for (const words of [
      ['backup', file],
      ['backup', file, '--secrets'],
    ])
      expect(await operator.refusal(...words)).toBe(
        `waystation admin: ${file}.secrets may be the only copy of a SECRET_KEY, and would be lost: move it away, or name another file`,
      )
    expect(readFileSync(`${file}.secrets`)).toEqual(kept)
    expect(readdirSync(dirname(file))).toEqual(['a.db.secrets'])
  })
})

test('a draft does not take a name that has been taken meanwhile', () => {
  const folder = newFolder()
  const [draft, path] = [join(folder, 'draft'), join(folder, 'a.db')]
  writeFileSync(draft, 'draft')
  writeFileSync(path, 'first')
  for (const take of [takeName, publish])
    expect(() => take(draft, path)).toThrow(`the file ${path} already exists`)
  expect(readFileSync(path, 'utf8')).toBe('first')
  expect(existsSync(`${path}.sha256`)).toBe(false)
  rmSync(path)
  linkSync(draft, path) // killed between the two names
  expect(() => takeName(draft, path)).toThrow('already')
})
