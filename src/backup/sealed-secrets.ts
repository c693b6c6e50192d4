// The service's own secrets beside a backup, sealed under a passphrase: with them a lost data folder is restored whole.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { limit } from '../base/limit.ts'
import { newSalt, open, passphraseKey, seal } from '../base/seal.ts'

const format = 'waystation-secrets/1'
/** 128 MiB and about half a second for each guess. */
const cost = 131_072
const passphrase_characters_min = limit(
  'backup.passphrase_characters',
  12,
  'characters',
  'The shortest passphrase of the secrets beside a backup. Below it `admin backup --secrets` refuses.',
)

export interface ServiceSecrets {
  secret_key: string
  /** While the key is rotated. */
  secret_key_previous: string | null
  cron_secret: string | null
}

export function secretsFile(backup: string): string {
  return `${backup}.secrets`
}

export function hasSecrets(backup: string): boolean {
  return existsSync(secretsFile(backup))
}

/** Throws when the passphrase is too short. */
export function requirePassphrase(passphrase: string): void {
  if (passphrase.length < passphrase_characters_min)
    throw new Error(`the passphrase needs at least ${passphrase_characters_min} characters`)
}

/** Throws unless they can be opened again. */
export function sealSecrets(backup: string, passphrase: string, secrets: ServiceSecrets): void {
  requirePassphrase(passphrase)
  const salt = newSalt()
  const key = passphraseKey(passphrase, salt, cost)
  const text = JSON.stringify(secrets)
  const sealed = seal(key, format, text)
  writeFileSync(secretsFile(backup), `${JSON.stringify({ format, kdf: 'scrypt', cost, salt, sealed })}\n`, {
    mode: 0o600,
    flush: true,
  })
  const kept = parsed(readFileSync(secretsFile(backup), 'utf8'))
  if (kept?.salt !== salt || kept.cost !== cost || open(key, format, kept.sealed) !== text)
    throw new Error(`${secretsFile(backup)} was not written correctly: back up again`)
}

/** Throws when the passphrase is another one, or the file damaged. */
export function openSecrets(backup: string, passphrase: string): ServiceSecrets {
  const path = secretsFile(backup)
  const kept = parsed(readFileSync(path, 'utf8'))
  if (kept?.format !== format) throw new Error(`${path} is damaged, or of another release`)
  try {
    return JSON.parse(open(passphraseKey(passphrase, kept.salt, kept.cost), format, kept.sealed))
  } catch {
    throw new Error(`this is not the passphrase of ${path}, or the file is damaged`)
  }
}

interface Sealed {
  format: string
  cost: number
  salt: string
  sealed: string
}

function parsed(text: string): Sealed | null {
  try {
    const kept = JSON.parse(text) as Sealed
    return kept.cost <= cost ? kept : null
  } catch {
    return null
  }
}
