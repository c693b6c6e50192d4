// Secrets at rest: AES-256-GCM (NIST SP 800-38D) under keys derived with HKDF-SHA-256 (RFC 5869).

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  scryptSync,
  timingSafeEqual,
} from 'node:crypto'

const iv_bytes = 12
const tag_bytes = 16

/** 32 bytes for one purpose; another `info` gives an unrelated key. */
export function deriveKey(secret: string, info: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, `waystation ${info}`, 32))
}

/** RFC 7914. `cost`: how much memory and time a guess takes, 1 KiB times this number. */
export function passphraseKey(passphrase: string, salt: string, cost: number): Buffer {
  const options = { N: cost, r: 8, p: 1, maxmem: 2 * 1_024 * cost }
  return scryptSync(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), 32, options)
}

/** base64 of 16 random bytes. */
export function newSalt(): string {
  return randomBytes(16).toString('base64')
}

/** base64 of nonce, tag and cipher text. `context` must be given again to open it, so that rows cannot be swapped. */
export function seal(key: Buffer, context: string, text: string): string {
  const iv = randomBytes(iv_bytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Throws when the key, the context or the text is another one. */
export function open(key: Buffer, context: string, sealed: string): string {
  const bytes = Buffer.from(sealed, 'base64')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, iv_bytes), {
    authTagLength: tag_bytes,
  })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(iv_bytes, iv_bytes + tag_bytes))
  return Buffer.concat([decipher.update(bytes.subarray(iv_bytes + tag_bytes)), decipher.final()]).toString(
    'utf8',
  )
}

/** HMAC-SHA-256 (RFC 2104). */
export function mac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/** Compares in a time that does not depend on where they differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

/** A Standard Webhooks 1.0.0 signing secret: `whsec_` and base64 of 32 random bytes. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** 43 characters, 256 random bits: for secrets that the service makes for itself. */
export function newServiceSecret(): string {
  return randomBytes(32).toString('base64url')
}
