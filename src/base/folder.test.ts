import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'

const base = mkdtempSync(join(tmpdir(), 'waystation-folder-'))
afterEach(() => rmSync(base, { recursive: true, force: true }))

test('a folder is made with those above it, and may be there already', () => {
  const folder = join(base, 'a', 'b', 'c')
  for (let times = 0; times < 2; times++) {
    makeFolder(folder, 0o700)
    expect(statSync(folder).isDirectory()).toBe(true)
  }
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('a path that cannot be a folder is refused', () => {
  expect(() => makeFolder(join('/dev/null', 'folder'))).toThrow()
})
