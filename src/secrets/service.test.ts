import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
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

test('a secret that the disk does not take leaves nothing behind', () => {
  const program = `
    import { keptSecret } from '${join(import.meta.dir, 'service.ts')}'
    try { keptSecret(null, '${folder}', 'secret_key') } catch (error) { console.log(error.code) }`
  const without_room = `trap '' XFSZ; ulimit -f 0; exec "$0" -e "$1"`
  const { stdout } = Bun.spawnSync(['sh', '-c', without_room, process.execPath, program])
  expect([String(stdout), readdirSync(folder)]).toEqual(['EFBIG\n', []])
})
