import { afterEach, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beginFileRotation, endFileRotation, foundKeys, keptSecret } from './service.ts'

const folder = mkdtempSync(join(tmpdir(), 'waystation-secrets-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const none = { secret_key: null, secret_key_previous: null }

test('a kept secret is used once its name was flushed, also when a process that was killed has written it', () => {
  const flushed: string[] = []
  const kept = () => keptSecret(null, folder, 'secret_key', (path) => flushed.push(path))
  const made = kept()
  expect(flushed).toEqual([folder])
  expect(made.value).toBe(readFileSync(join(folder, 'secret_key'), 'utf8').trim())
  expect(kept()).toEqual(made)
  expect(flushed).toEqual([folder, folder])
})

test('the end of a rotation keeps the key that the next one needs', () => {
  const first = keptSecret(null, folder, 'secret_key').value
  expect(beginFileRotation(folder)).toBe(true)
  const { current: second, previous } = foundKeys({ ...none, data_dir: folder })
  expect(previous).toBe(first)
  expect([endFileRotation(folder, first), beginFileRotation(folder)]).toEqual([true, true])
  expect(endFileRotation(folder, first)).toBe(false) // by a second call of the command, which began before
  expect(foundKeys({ ...none, data_dir: folder }).previous).toBe(second)
})

test('a rotation that root begins leaves keys that the owner of the one before can read', () => {
  keptSecret(null, folder, 'secret_key')
  const owner = process.getuid?.() === 0 ? 65_534 : process.getuid!() // only the superuser may give a file away
  if (owner === 65_534) chownSync(join(folder, 'secret_key'), owner, owner)
  expect(beginFileRotation(folder)).toBe(true)
  for (const name of ['secret_key', 'secret_key_previous']) {
    const { uid, mode } = statSync(join(folder, name))
    expect([name, uid, mode & 0o777]).toEqual([name, owner, 0o600])
  }
})

test('a secret that the disk does not take leaves nothing behind', () => {
  const program = `
    import { keptSecret } from '${join(import.meta.dir, 'service.ts')}'
    try { keptSecret(null, '${folder}', 'secret_key') } catch (error) { console.log(error.code) }`
  const without_room = `trap '' XFSZ; ulimit -f 0; exec "$0" -e "$1"`
  const { stdout } = Bun.spawnSync(['sh', '-c', without_room, process.execPath, program])
  expect([String(stdout), readdirSync(folder)]).toEqual(['EFBIG\n', []])
})

test('a folder of somebody else is told by what could not be done in it first', () => {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o000)
  const program = `
    import { keptSecret } from '${join(import.meta.dir, 'service.ts')}'
    if (process.getuid() === 0) process.setuid(65534) // the superuser may write everywhere
    try { keptSecret(null, '${folder}', 'secret_key') } catch (error) { console.log(error.code, error.syscall) }`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program])
  chmodSync(folder, 0o700)
  expect([String(stdout), readdirSync(folder)]).toEqual(['EACCES open\n', []])
})
