import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hour_ms } from '../base/clock.ts'
import { backupFigures } from './figures.ts'
import { nameOf } from './kept.ts'

const root = mkdtempSync(join(tmpdir(), 'waystation-backup-figures-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const at = Date.UTC(2026, 10, 22, 20)

function written(begun_at: number): string {
  const path = join(root, nameOf(begun_at))
  writeFileSync(path, 'rows')
  writeFileSync(`${path}.sha256`, `${'0'.repeat(64)}  ${nameOf(begun_at)}\n`)
  return path
}

/** Hours between the newest backup and `at`; null when there is none. */
function age(): number | null {
  const [newest] = backupFigures({ every_ms: hour_ms, folder: root }, at)
  const seconds = newest!.values[0]!.value
  return seconds === 0 ? null : (at - seconds * 1_000) / hour_ms
}

test('the time of the newest backup is that of the newest file with its checksum beside it, at each look', () => {
  expect(age()).toBeNull()
  const [third, second, first] = [written(at - 3 * hour_ms), written(at - 2 * hour_ms), written(at - hour_ms)]
  expect(age()).toBe(1)
  rmSync(`${first}.sha256`)
  expect(age()).toBe(2)
  truncateSync(second)
  expect(age()).toBe(3)
  writeFileSync(`${third}.sha256`, 'cut o')
  expect(age()).toBeNull()
  rmSync(first)
  written(at - 4 * hour_ms)
  expect(age()).toBe(4)
})

test('a checksum without its backup is none, and so is a backup dated ahead of the clock', () => {
  rmSync(written(at - hour_ms / 2))
  written(at + hour_ms)
  expect(age()).toBe(4)
})
