import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { Operator } from '../../test/support/admin.ts'
import { TestClock } from '../../test/support/clock.ts'
import { test_ms_max, until } from '../../test/support/patience.ts'
import { startServer } from '../../test/support/server-process.ts'
import { hour_ms, minute_ms } from '../base/clock.ts'
import { besideOf, nameOf, nextAt, removable, timeOf } from './kept.ts'
import { BackupTimer, writeInProcess } from './timer.ts'

const root = mkdtempSync(join(tmpdir(), 'waystation-backup-timer-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const at = Date.UTC(2026, 10, 22, 20, 41, 27, 5)

test('a backup has its time in its name, and names sort by time', () => {
  expect(nameOf(at)).toBe('waystation-2026-11-22T20-41-27.005Z.db')
  expect(timeOf(nameOf(at))).toBe(at)
  for (const name of ['waystation.db', `${nameOf(at)}.sha256`, `x-${nameOf(at)}`])
    expect(timeOf(name)).toBeNull()
})

test('the next one is due so long after the newest, and at once when there is none', () => {
  expect(nextAt([], hour_ms, at)).toBe(0)
  expect(nextAt([nameOf(at), nameOf(at - hour_ms), 'other.db'], hour_ms, at)).toBe(at + hour_ms)
})

test('a backup dated ahead of the clock puts off none, pushes out none, and stays', () => {
  const [ahead, now, before] = [nameOf(at + hour_ms), nameOf(at), nameOf(at - hour_ms)]
  expect(nextAt([ahead], hour_ms, at)).toBe(0)
  expect(nextAt([ahead, now], hour_ms, at)).toBe(at + hour_ms)
  expect(removable([ahead, now, before], 1, at)).toEqual([before])
})

test('the newest are kept; older ones go with what lies beside them, and so does what an interrupted one left', () => {
  const names = [0, 1, 2].map((hours) => nameOf(at + hours * hour_ms))
  const beside = names.flatMap((name) => [name, `${name}.sha256`])
  const others = ['waystation.db', 'notes.part', 'waystation.db.sha256']
  const left = [`${nameOf(at - hour_ms)}.part`, `${nameOf(at - hour_ms)}.part-journal`]
  expect(removable([...beside, ...others, ...left], 2, at + 2 * hour_ms).toSorted()).toEqual(
    [names[0]!, `${names[0]}.sha256`, ...left].toSorted(),
  )
  expect(removable([...beside, ...others], 3, at + 2 * hour_ms)).toEqual([])
})

test('secrets that the operator has put beside a backup stay when it is removed', () => {
  const [old, now] = [nameOf(at), nameOf(at + hour_ms)]
  const secrets = `${old}.secrets`
  expect(removable([old, secrets, now], 1, at + hour_ms)).toEqual([old])
  expect(removable([secrets, `${old}.part-1234abcd.secrets`], 1, at)).toEqual([
    `${old}.part-1234abcd.secrets`,
  ])
  expect(besideOf([old, `${old}.sha256`, secrets], old)).toEqual([old, `${old}.sha256`])
})

test('writes one when it is due, keeps the newest, and logs one that failed', async () => {
  const folder = join(root, 'kept')
  const clock = new TestClock()
  const logged: string[] = []
  let fails = false
  const timer = new BackupTimer({
    ...{ every_ms: hour_ms, keep: 2, folder, clock },
    log: { info: (_, message) => logged.push(message), error: (_, message) => logged.push(message) },
    async write(file) {
      if (fails) throw new Error('the disk is full')
      writeBoth(file)
      clock.advance(hour_ms) // so that the next one is due
      fails = readdirSync(folder).length === 6
      return ''
    },
  })
  timer.start()
  await until(() => logged.length === 4)
  timer.stop()
  expect(logged).toEqual([
    ...Array.from({ length: 3 }, () => 'backup written'),
    'THE BACKUP FAILED: the next try is in 5 minutes',
  ])
  expect(readdirSync(folder)).toHaveLength(4)
})

test('one that failed is tried again 5 minutes later, however long it took and whatever the clock was set to', async () => {
  const clock = new TestClock()
  const waits: number[] = []
  let run = () => {}
  const setting = spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms: number) => {
    run = work
    waits.push(ms)
    return { unref() {} }
  }) as unknown as typeof setTimeout)
  const timer = new BackupTimer({
    ...{ every_ms: hour_ms, keep: 2, folder: join(root, 'failing'), clock, log: { info() {}, error() {} } },
    async write() {
      clock.advance(hour_ms / 2)
      clock.jump(-24 * hour_ms)
      throw new Error('the disk is full')
    },
  })
  timer.start()
  for (let failed = 1; failed <= 2; failed++) {
    run()
    await until(() => waits.length > failed)
    clock.advance(waits.at(-1)!)
  }
  setting.mockRestore()
  expect(waits).toEqual([0, 5 * minute_ms, 5 * minute_ms])
})

test('writes one at once when the newest has lost its checksum', async () => {
  const folder = join(root, 'without-checksum')
  const clock = new TestClock()
  const newest = join(folder, nameOf(clock.now() - 1))
  const written: string[] = []
  const timer = new BackupTimer({
    ...{ every_ms: hour_ms, keep: 9, folder, clock, log: { info() {}, error() {} } },
    async write(file) {
      writeBoth(file)
      written.push(file)
      return ''
    },
  })
  mkdirSync(folder)
  writeBoth(newest)
  rmSync(`${newest}.sha256`)
  timer.start()
  await until(() => written.length === 1)
  timer.stop()
})

function writeBoth(file: string): void {
  writeFileSync(file, 'rows')
  writeFileSync(`${file}.sha256`, `${'0'.repeat(64)}  ${basename(file)}\n`)
}

describe('the process of a backup', () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error(`setpriority returned ${code}`), { info: { code } })
  }
  const program = (...lines: string[]) => ['bash', '-c', lines.join('; ')]
  const env = { PATH: process.env.PATH }

  test('has a low priority', async () => {
    const own = program(
      'echo go >&2',
      'for i in $(seq 500); do [ "$(nice)" = 10 ] && exit; sleep 0.01; done',
      'exit 1',
    )
    expect(await writeInProcess('a.db', env, own)).toBe('go')
  })

  test('says that its priority could not be lowered, and goes on', async () => {
    expect(await writeInProcess('a.db', env, program('echo two rows >&2'), failing('EPERM'))).toBe(
      'two rows\nits priority could not be lowered: setpriority returned EPERM',
    )
  })

  test('that had ended before its priority was lowered says nothing', async () => {
    expect(await writeInProcess('a.db', env, program('true'), failing('ESRCH'))).toBe('')
  })
})

test(
  'a service with BACKUP_EVERY writes one at its start, which is whole',
  async () => {
    const DATA_DIR = join(root, 'service')
    const BACKUP_DIR = join(root, 'service-backups')
    const server = await startServer({ DATA_DIR, BACKUP_DIR, BACKUP_EVERY: '6h' })
    try {
      const found = () => (readdirSync(root).includes('service-backups') ? readdirSync(BACKUP_DIR) : [])
      await until(() => found().some((name) => timeOf(name) !== null))
      const name = found().find((each) => timeOf(each) !== null)!
      const verified = await new Operator({ DATA_DIR }).json('verify', join(BACKUP_DIR, name))
      expect(verified).toMatchObject({ has_checksum: true, has_secrets: false, engine: 'sqlite' })
    } finally {
      expect(await server.stop()).toBe(0)
    }
  },
  test_ms_max,
)
