import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { deriveKey, equalBytes, mac, newServiceSecret, newSigningSecret, open, seal } from './seal.ts'

const key = deriveKey('a secret of the service', 'test')
const other_key = deriveKey('a secret of the service', 'another purpose')

describe('a sealed text', () => {
  test.each(['', 'x', 'whsec_abc', 'é 😀 \0 "', 'y'.repeat(100_000)])('opens to what it was', (text) => {
    expect(open(key, 'context', seal(key, 'context', text))).toBe(text)
  })

  test('is AES-256-GCM: nonce of 12 bytes, tag of 16, cipher text, in base64', async () => {
    const bytes = Buffer.from(seal(key, 'signing_secret ten_a', 'whsec_abc'), 'base64')
    expect(bytes.length).toBe(12 + 16 + 'whsec_abc'.length)
    const imported = await crypto.subtle.importKey('raw', new Uint8Array(key), 'AES-GCM', false, ['decrypt'])
    const opened = await crypto.subtle.decrypt(
      {
        name: 'AES-GCM',
        iv: new Uint8Array(bytes.subarray(0, 12)),
        additionalData: new TextEncoder().encode('signing_secret ten_a'),
      },
      imported,
      new Uint8Array(Buffer.concat([bytes.subarray(28), bytes.subarray(12, 28)])),
    )
    expect(new TextDecoder().decode(opened)).toBe('whsec_abc')
  })

  test('never looks the same twice', () => {
    const sealed = new Set(Array.from({ length: 1_000 }, () => seal(key, 'context', 'the same')))
    expect(sealed.size).toBe(1_000)
  })

  test('does not open with another key, or in another context', () => {
    const sealed = seal(key, 'row 1', 'text')
    expect(() => open(other_key, 'row 1', sealed)).toThrow()
    expect(() => open(key, 'row 2', sealed)).toThrow()
    expect(() => open(key, '', sealed)).toThrow()
    expect(open(key, 'row 1', sealed)).toBe('text')
  })

  test('does not open with any bit changed, or cut anywhere, or longer', () => {
    const bytes = Buffer.from(seal(key, 'row 1', 'text'), 'base64')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => open(key, 'row 1', changed.toString('base64'))).toThrow()
    }
    for (let end = 0; end < bytes.length; end++)
      expect(() => open(key, 'row 1', bytes.subarray(0, end).toString('base64'))).toThrow()
    expect(() => open(key, 'row 1', Buffer.concat([bytes, Buffer.from([0])]).toString('base64'))).toThrow()
  })
})

describe('a derived key', () => {
  test('is HKDF-SHA-256 (RFC 5869) with the purpose as its info', () => {
    const prk = createHmac('sha256', 'salt').update('secret').digest()
    const okm = createHmac('sha256', prk)
      .update(Buffer.concat([Buffer.from('waystation cursor'), Buffer.from([1])]))
      .digest()
    expect(deriveKey('secret', 'cursor', 'salt')).toEqual(okm)
  })

  test('is another one for another secret, purpose or salt, and the same for the same', () => {
    const keys = [
      deriveKey('secret', 'a'),
      deriveKey('secret', 'b'),
      deriveKey('Secret', 'a'),
      deriveKey('secret', 'a', 'salt'),
      deriveKey('secret', 'a', 'Salt'),
    ].map((derived) => derived.toString('hex'))
    expect(new Set(keys).size).toBe(keys.length)
    for (const derived of keys) expect(derived).toMatch(/^[0-9a-f]{64}$/)
    expect(deriveKey('secret', 'a').toString('hex')).toBe(keys[0]!)
  })
})

test('mac is HMAC-SHA-256: RFC 4231, test case 2', () => {
  expect(mac(Buffer.from('Jefe'), 'what do ya want for nothing?').toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
})

test.each([
  ['', '', true],
  ['a', 'a', true],
  ['a', 'b', false],
  ['a', 'aa', false],
  ['aa', 'a', false],
  ['', 'a', false],
  ['same start x', 'same start y', false],
])('equalBytes of %j and %j is %p', (a, b, equal) => {
  expect(equalBytes(Buffer.from(a), Buffer.from(b))).toBe(equal)
})

test('a signing secret is whsec_ and base64 of 32 bytes, another one each time', () => {
  const secrets = Array.from({ length: 1_000 }, newSigningSecret)
  for (const secret of secrets) {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(Buffer.from(secret.slice(6), 'base64').length).toBe(32)
  }
  expect(new Set(secrets).size).toBe(secrets.length)
})

test('a service secret is 43 characters that need no quoting, another one each time', () => {
  const secrets = Array.from({ length: 1_000 }, newServiceSecret)
  for (const secret of secrets) expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/)
  expect(new Set(secrets).size).toBe(secrets.length)
})
