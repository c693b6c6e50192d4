// Seals and opens what must not lie in the database in clear.

import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'
import { deriveKey, mac, open, seal } from '../base/seal.ts'
import type { Sealer, Secrets } from '../contract/dependencies.ts'

const opened_max = limit(
  'secrets.opened',
  1_000,
  'entries',
  'Signing secrets and other sealed texts that a node keeps open in memory. Past it the least recently used are opened again.',
)

interface Others {
  previous?: string | null
  /** In hex; without it they come from the current key. */
  fingerprints?: string
}

/** Of one key, whichever seals the database. */
export function secretsUnder(
  secret_key: string,
  { previous = null, fingerprints }: Others = {},
): Secrets & Sealer {
  const key = deriveKey(secret_key, 'secrets')
  const previous_key = previous === null ? null : deriveKey(previous, 'secrets')
  const fingerprint_key =
    fingerprints === undefined ? deriveKey(secret_key, 'fingerprints') : Buffer.from(fingerprints, 'hex')
  const opened = new Remembered<string>(opened_max)
  const openSealed = (context: string, sealed: string) => {
    try {
      return open(key, context, sealed)
    } catch (error) {
      if (previous_key === null) throw error
      return open(previous_key, context, sealed)
    }
  }
  const sealer: Sealer = { seal: (context, text) => seal(key, context, text) }
  return {
    ...sealer,
    sealerIn: () => sealer,
    open(context, sealed) {
      const asked = `${sealed} ${context}` // base64 has no blanks
      const known = opened.get(asked)
      if (known !== undefined) return known
      const text = openSealed(context, sealed)
      opened.put(asked, text)
      return text
    },
    fingerprint: (context, text) => mac(fingerprint_key, `${context} ${text}`).toString('hex'),
  }
}

export function cursorKeyUnder(secret_key: string): Buffer {
  return deriveKey(secret_key, 'cursor')
}
