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
import { pastPooler } from '../../test/support/admin.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { hour_ms, systemClock } from '../base/clock.ts'
import { sqlitePath } from '../db/open.ts'
import { sizeOf } from '../db/space.ts'
import { writeBackup } from './backup.ts'
import { nameOf } from './kept.ts'

const kib = 1_024
const mib = 1_048_576
const root = mkdtempSync(join(tmpdir(), 'waystation-backup-room-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const space = (free: () => number) => () => ({ free: free(), total: 100 * 1_024 * mib })

/** The bytes that a refusal says the backup may need. */
async function refusedFor(written: Promise<unknown>): Promise<number> {
  const { message } = (await written.then(
    () => new Error('it was written'),
    (error) => error,
  )) as Error
  const [, bytes] = /^the backup may need (\d+) bytes/.exec(message) ?? []
  expect([message, bytes]).toEqual([message, expect.any(String)])
  return Number(bytes)
}

forEachDatabase('Room for a backup', (databases) => {
  const { engine } = databases

  test('is looked at before a row is written, and a refused one leaves nothing', async () => {
    const { db, url } = await databases.open()
    await db.close()
    const folder = join(root, `refused-${engine}`)
    await refusedFor(writeBackup(url, join(folder, 'a.db'), { space: space(() => 1_000) }))
    expect(readdirSync(folder)).toEqual([])
  })

  test('is made of the oldest backups, and the newest that is whole stays', async () => {
    const { db, url } = await databases.open()
    await db.close()
    const folder = join(root, `made-${engine}`)
    const now = systemClock.now()
    const [oldest, whole, damaged, next] = [4, 3, 2, 1].map((hours) =>
      join(folder, nameOf(now - hours * hour_ms)),
    ) as [string, string, string, string]
    await writeBackup(url, oldest)
    for (const each of [whole, damaged])
      for (const end of ['', '.sha256']) copyFileSync(oldest + end, each + end)
    writeFileSync(damaged, readFileSync(damaged).fill(0, 5_000, 6_000))

    const removed: string[] = []
    const onRemoved = (file: string) => void removed.push(file)
    const needed = await refusedFor(writeBackup(url, next, { space: space(() => 0) }))
    await refusedFor(writeBackup(url, next, { space: space(() => needed - 10 * mib), onRemoved }))
    expect(removed).toEqual([]) // all of them together are not enough
    const tight = space(() => (existsSync(oldest) ? needed - 100 * kib : needed + mib))
    await refusedFor(writeBackup(url, next, { space: tight }))
    await writeBackup(url, next, { space: tight, onRemoved })
    expect(removed).toEqual([oldest])
    const left = [whole, damaged, next].flatMap((each) => [each, `${each}.sha256`])
    expect(readdirSync(folder).toSorted()).toEqual(left.map((path) => path.slice(folder.length + 1)))

    for (const end of ['', '.sha256']) rmSync(next + end)
    await refusedFor(writeBackup(url, next, { space: space(() => needed - 100 * kib), onRemoved }))
    expect([removed, existsSync(whole)]).toEqual([[oldest], true])
  })

  test('that ends while it is written is named by its folder, and nothing is left', async () => {
    const { db, url } = await databases.open()
    await db.close()
    const folder = join(root, `ends-${engine}`)
    const admin = [process.execPath, join(import.meta.dir, '../admin.ts'), 'backup', join(folder, 'a.db')]
    const child = Bun.spawn(['bash', '-c', `trap '' XFSZ; ulimit -f 100; exec "$@"`, 'bash', ...admin], {
      env: pastPooler({ PATH: process.env.PATH ?? '', DATABASE_URL: url, DATA_DIR: root }),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    expect(await new Response(child.stderr).text()).toStartWith(
      `waystation admin: the backup could not be written to ${folder}: `,
    )
    expect([await child.exited, readdirSync(folder)]).toEqual([1, []])
  })

  if (engine !== 'sqlite') return

  test('on the disk of the database leaves DISK_RESERVE free', async () => {
    const { db, url } = await databases.open()
    await db.close()
    const path = sqlitePath(url)!
    const disk_reserve_bytes = 100 * mib
    const size = sizeOf(path) + sizeOf(`${path}-wal`)
    const reserve = disk_reserve_bytes - sizeOf(`${path}.reserve`)
    const file = join(dirname(path), 'backups', 'a.db')
    const write = (free: number) => writeBackup(url, file, { disk_reserve_bytes, space: space(() => free) })
    await refusedFor(write(size + reserve - 1))
    expect(existsSync(file)).toBe(false)
    expect((await write(size + reserve)).file).toBe(file)
  })
})
