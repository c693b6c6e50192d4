// The service's own secrets: from the environment, or made at first start and kept in DATA_DIR.

import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flushFolder, flushFound, makeFolder } from '../base/folder.ts'
import { limit } from '../base/limit.ts'
import { deriveKey, mac, newServiceSecret, open, seal } from '../base/seal.ts'
import type { Secrets } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import * as store from './store.ts'

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

/** The given value, else the one in this file, which the service has made. Throws when there is none. */
export function foundSecret(given: string | null, data_dir: string, file_name: string): string {
  const file = join(data_dir, file_name)
  if (given === null && !existsSync(file)) throw new Error(`there is no ${file}; give DATA_DIR or the secret`)
  return keptSecret(given, data_dir, file_name).value
}

/** Writes all of it or nothing; of two nodes that start at once, the first one's stays. */
function writeNew(data_dir: string, file: string, flush: (folder: string) => void): void {
  makeFolder(data_dir, 0o700)
  const draft = `${file}.${newServiceSecret().slice(0, 8)}`
  writeFileSync(draft, `${newServiceSecret()}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  flush(data_dir)
}

/** The database remembers a check value of the key that seals it. Throws when this node has another key. */
export async function requireKey(db: Db, secret_key: string): Promise<void> {
  const value = mac(deriveKey(secret_key, 'check'), 'secret_key_check').toString('hex')
  const kept = (await store.checkValue(db)) ?? (await db.write((tx) => store.keepCheckValue(tx, value)))
  if (kept?.value !== value) {
    throw new Error('SECRET_KEY: this database was sealed with another key; give every node the first one')
  }
}

export function secretsUnder(secret_key: string): Secrets {
  const key = deriveKey(secret_key, 'secrets')
  const fingerprint_key = deriveKey(secret_key, 'fingerprints')
  return {
    seal: (context, text) => seal(key, context, text),
    open: (context, sealed) => open(key, context, sealed),
    fingerprint: (context, text) => mac(fingerprint_key, `${context} ${text}`).toString('hex'),
  }
}

export function cursorKeyUnder(secret_key: string): Buffer {
  return deriveKey(secret_key, 'cursor')
}
