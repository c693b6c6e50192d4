import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { flushFound, makeFolder } from './folder.ts'

const base = mkdtempSync(join(tmpdir(), 'waystation-folder-'))
beforeEach(() => mkdirSync(base, { recursive: true }))
afterEach(() => rmSync(base, { recursive: true, force: true }))

test('a folder is made with those above it, and may be there already', () => {
  const folder = join(base, 'a', 'b', 'c')
  for (let times = 0; times < 2; times++) {
    makeFolder(folder, 0o700)
    expect(statSync(folder).isDirectory()).toBe(true)
  }
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('the name of each folder is flushed before the next is made, and that of the last also when it was found', () => {
  const flushed: [string, boolean][] = []
  const folder = join(base, 'a', 'b')
  const make = () => makeFolder(folder, 0o700, (path) => flushed.push([path, existsSync(folder)]))
  make()
  expect(flushed).toEqual([
    [dirname(base), false],
    [base, false],
    [join(base, 'a'), true],
  ])
  flushed.length = 0
  make()
  expect(flushed).toEqual([[join(base, 'a'), true]])
})

test('a folder above that this process may not flush is left; a disk that fails is not', () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code })
  }
  expect(() => flushFound(base, failing('EACCES'))).not.toThrow()
  expect(() => flushFound(base, failing('EIO'))).toThrow('EIO')
})

test('a path that cannot be a folder is refused', () => {
  expect(() => makeFolder(join('/dev/null', 'folder'))).toThrow()
})
