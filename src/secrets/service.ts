// The service's own secrets: from the environment, or made at first start and kept in DATA_DIR.

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deriveKey, mac, newServiceSecret, open, seal } from '../base/seal.ts'
import type { Secrets } from '../contract/services.ts'
import type { Db } from '../db/db.ts'
import * as store from './store.ts'

export interface KeptSecret {
  value: string
  /** Where it lies; null when it came from the environment. */
  file: string | null
}

/** The given value, else the one in this file, else a new one that is written there (mode 0600). */
export function keptSecret(given: string | null, data_dir: string, file_name: string): KeptSecret {
  if (given !== null) return { value: given, file: null }
  const file = join(data_dir, file_name)
  if (existsSync(file)) return { value: readFileSync(file, 'utf8').trim(), file }
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  const value = newServiceSecret()
  writeFileSync(file, `${value}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(file, 0o600)
  return { value, file }
}

/** The database remembers a check value of the key that seals it. Throws when this node has another key. */
export async function mustBeTheKey(db: Db, secret_key: string): Promise<void> {
  const value = mac(deriveKey(secret_key, 'check'), 'secret_key_check').toString('hex')
  const kept = (await store.checkValue(db)) ?? (await db.write((tx) => store.keepCheckValue(tx, value)))
  if (kept?.value !== value) {
    throw new Error('SECRET_KEY: this database was sealed with another key; give every node the first one')
  }
}

export function secretsUnder(secret_key: string): Secrets {
  const key = deriveKey(secret_key, 'secrets')
  return {
    seal: (context, text) => seal(key, context, text),
    open: (context, sealed) => open(key, context, sealed),
  }
}

export function cursorKeyUnder(secret_key: string): Buffer {
  return deriveKey(secret_key, 'cursor')
}
