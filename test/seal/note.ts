// Signed notes as who knows the key reads them (c2sp.org/signed-note).

import { createPublicKey, verify } from 'node:crypto'
import { verifierKey } from '../../src/seal/note.ts'

/** The text of a note that has a valid signature of this key, which has the form of `verifierKey`; otherwise null. */
export function verifiedText(note: string, verifier_key: string): string | null {
  const [, name, key_id, encoded] = /^([^ +]+)\+([0-9a-f]{8})\+(.+)$/.exec(verifier_key) ?? []
  const end = note.lastIndexOf('\n\n')
  if (name === undefined || encoded === undefined || end === -1) return null
  const x = Buffer.from(encoded, 'base64').subarray(1).toString('base64url')
  if (verifierKey(name, x) !== verifier_key) return null
  const text = note.slice(0, end + 1)
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const is_signed = note
    .slice(end + 2)
    .split('\n')
    .some((line) => {
      if (!line.startsWith(`— ${name} `)) return false
      const bytes = Buffer.from(line.slice(`— ${name} `.length), 'base64')
      const is_own = bytes.subarray(0, 4).toString('hex') === key_id
      return is_own && verify(null, Buffer.from(text), key, bytes.subarray(4))
    })
  return is_signed ? text : null
}
