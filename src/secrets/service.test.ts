import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keptSecret } from './service.ts'

const folder = mkdtempSync(join(tmpdir(), 'waystation-secrets-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a kept secret is used once its name was flushed, also when a process that was killed has written it', () => {
  const flushed: string[] = []
  const kept = () => keptSecret(null, folder, 'secret_key', (path) => flushed.push(path))
  const made = kept()
  expect(flushed).toEqual([folder])
  expect(made.value).toBe(readFileSync(join(folder, 'secret_key'), 'utf8').trim())
  expect(kept()).toEqual(made)
  expect(flushed).toEqual([folder, folder])
})
