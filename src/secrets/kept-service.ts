// The service's own secrets: from the environment, or made at first start and kept in DATA_DIR.

import {
  chownSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { flushFolder, flushFound, makeFolder } from '../base/folder.ts'
import { limit } from '../base/limit.ts'
import { newServiceSecret } from '../base/seal.ts'
import { removed } from '../db/space.ts'

export interface KeptSecret {
  value: string
  /** Its file; null when it came from the environment. */
  file: string | null
}

const kept_characters_min = limit(
  'secrets.kept_characters',
  16,
  'characters',
  'The shortest secret in a file of DATA_DIR. Below it the service does not start, because the file is damaged.',
)

/**
 * The given value, else the one in this file, else a new one that is written there (mode 0600) and is on the disk
 * before it is used, also when a process that was killed has written it. Throws when the file holds less than a secret.
 */
export function keptSecret(
  given: string | null,
  data_dir: string,
  file_name: string,
  flush: (folder: string) => void = flushFolder,
): KeptSecret {
  if (given !== null) return { value: given, file: null }
  const file = join(data_dir, file_name)
  if (existsSync(file)) flushFound(data_dir, flush)
  else writeNew(data_dir, file, flush)
  const value = readFileSync(file, 'utf8').trim()
  if (value.length < kept_characters_min)
    throw new Error(`${file} is empty or damaged; restore it from a backup`)
  return { value, file }
}

/** Keeps a restored secret where the service looks for it, unless it has one there. */
export function keepSecret(data_dir: string, file_name: string, value: string): void {
  writeNew(data_dir, join(data_dir, file_name), flushFolder, value)
}

/** Writes all of it or nothing; of two nodes that start at once, the first one's stays. */
function writeNew(
  data_dir: string,
  file: string,
  flush: (folder: string) => void,
  value = newServiceSecret(),
): void {
  makeFolder(data_dir, 0o700)
  const draft = `${file}.${newServiceSecret().slice(0, 8)}`
  try {
    writeFileSync(draft, `${value}\n`, { mode: 0o600, flag: 'wx', flush: true })
    giveToOwner(draft, join(data_dir, secret_key_file))
    linkSync(draft, file)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') {
      removed(draft) // what a full disk took of it; the reason why it was not written is the one to tell
      throw error
    }
  }
  rmSync(draft, { force: true })
  flush(data_dir)
}

/** The service runs as the owner of the key that is there, and must be able to read what root has made. */
function giveToOwner(draft: string, key_file: string): void {
  if (statSync(draft).uid !== 0 || !existsSync(key_file)) return
  const { uid, gid } = statSync(key_file)
  if (uid !== 0) chownSync(draft, uid, gid)
}

/** SECRET_KEY, and while it is rotated the one before, or the one that comes: what either sealed is opened. */
export interface SecretKeys {
  current: string
  previous: string | null
  /** Where the two lie, for a sentence to the operator; `SECRET_KEY` and `SECRET_KEY_PREVIOUS` unless given. */
  places?: string
}

const secret_key_file = 'secret_key'
const previous_file = 'secret_key_previous'
const next_file = 'secret_key_next'

export interface Given {
  secret_key: string | null
  secret_key_previous: string | null
  data_dir: string
}

/** The key from the environment or its file, made at the first start, and the one before it when there is one. */
export function keptKeys({ secret_key, secret_key_previous, data_dir }: Given) {
  const current = keptSecret(secret_key, data_dir, secret_key_file)
  return { current, previous: secret_key_previous ?? foundFile(data_dir, previous_file) }
}

/** The same for a command, which makes none. Throws when there is none. */
export function foundKeys(given: Given): SecretKeys {
  const { secret_key, data_dir } = given
  const kept = join(data_dir, secret_key_file)
  if (secret_key === null && !existsSync(kept))
    throw new Error(`there is no ${kept}; give DATA_DIR or the secret`)
  const { current, previous } = keptKeys(given)
  const places = `${kept} and ${join(data_dir, previous_file)}`
  return { current: current.value, previous, ...(current.file && { places }) }
}

/** Null when there is no such file. */
export function foundFile(data_dir: string, file_name: string): string | null {
  return existsSync(join(data_dir, file_name)) ? keptSecret(null, data_dir, file_name).value : null
}

/** All that a data folder would lose, for a copy of it elsewhere. */
export function existingSecrets(given: Given & { cron_secret: string | null }) {
  const { current, previous } = foundKeys(given)
  const cron_secret = given.cron_secret ?? foundFile(given.data_dir, 'cron_secret')
  return { secret_key: current, secret_key_previous: previous, cron_secret }
}

/** Makes a new key beside the one that is kept in a file. False when that was done before. */
export function beginFileRotation(data_dir: string): boolean {
  const current = foundFile(data_dir, secret_key_file)
  if (current === null) return false
  // The new key has another name at first, so that a call that was interrupted is continued by the next.
  if (foundFile(data_dir, next_file) === null) {
    if (foundFile(data_dir, previous_file) !== null) return false
    keepSecret(data_dir, next_file, newServiceSecret())
  }
  keepSecret(data_dir, previous_file, current)
  renameSync(join(data_dir, next_file), join(data_dir, secret_key_file))
  flushFolder(data_dir)
  return true
}

/** True when this was the one before. Another one is that of a rotation that has begun since: nothing opens without it. */
export function endFileRotation(data_dir: string, previous: string): boolean {
  if (foundFile(data_dir, previous_file) !== previous) return false
  unlinkSync(join(data_dir, previous_file))
  flushFolder(data_dir)
  return true
}
