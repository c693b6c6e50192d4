// The keys that open a backup: of the service that is to have it, or from beside the backup.

import type { Config } from '../config.ts'
import { foundFile, foundKeys, keepSecret, type SecretKeys } from '../secrets/service.ts'
import { hasSecrets, openSecrets, type ServiceSecrets, secretsFile } from './sealed-secrets.ts'

type Given = Pick<Config, 'data_dir' | 'secret_key' | 'secret_key_previous'>

export interface Keys extends SecretKeys {
  /** Puts those from beside the backup into DATA_DIR. For keys that have opened it. */
  keep(): void
}

/** That of the environment or of DATA_DIR, else the one beside the backup. */
export async function keysFor(target: Given, file: string, passphrase: () => Promise<string>): Promise<Keys> {
  const { data_dir, secret_key } = target
  if (secret_key !== null || foundFile(data_dir, 'secret_key') !== null)
    return { ...foundKeys(target), keep() {} }
  if (!hasSecrets(file))
    throw new Error(
      `the SECRET_KEY that sealed this database is needed: set it, put secret_key into ${data_dir}, or put ${secretsFile(file)} beside the backup`,
    )
  const secrets: ServiceSecrets = openSecrets(file, await passphrase())
  return {
    ...{ current: secrets.secret_key, previous: secrets.secret_key_previous },
    keep: () => keepAll(data_dir, secrets),
  }
}

/** The key comes last: a restore that finds it takes the others as they are. */
function keepAll(data_dir: string, secrets: ServiceSecrets): void {
  for (const name of ['secret_key_previous', 'cron_secret', 'secret_key'] as const) {
    const value = secrets[name]
    if (value === null) continue
    keepSecret(data_dir, name, value)
    if (foundFile(data_dir, name) !== value && name !== 'cron_secret')
      throw new Error(`there is a different ${name} in ${data_dir}: restore with an empty DATA_DIR`)
  }
}
