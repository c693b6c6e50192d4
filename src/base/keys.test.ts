import { describe, expect, test } from 'bun:test'
import {
  hashKey,
  type KeyKind,
  keyKind,
  lastFour,
  looksLikeKey,
  looksLikeToken,
  maskedKey,
  newKey,
  newToken,
  prefixes,
} from './keys.ts'

const kinds = Object.keys(prefixes) as KeyKind[]
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const fresh_count = 200_000

describe('a key', () => {
  test.each(kinds)('of kind %s is its prefix, 32 random base62 characters and 6 of a checksum', (kind) => {
    const key = newKey(kind)
    expect(key).toMatch(/^svc_(adm|agt|apr)_[0-9A-Za-z]{38}$/)
    expect(key.startsWith(prefixes[kind])).toBe(true)
    expect(keyKind(key)).toBe(kind)
    expect(looksLikeKey(key)).toBe(true)
  })

  // The checksums were computed with zlib's crc32.
  test.each([
    ['admin', `svc_adm_${'0'.repeat(32)}2rw2Cm`],
    ['agent', `svc_agt_${'z'.repeat(32)}3VOlGR`],
    ['approval', `svc_apr_${'Q'.repeat(32)}3AfNLP`],
  ] as const)('%s: its checksum is CRC-32 over what stands before, in six base62 digits', (kind, key) => {
    expect(keyKind(key)).toBe(kind)
  })

  test('agrees with a second implementation of the checksum', () => {
    for (let i = 0; i < 200; i++) {
      const key = newKey(kinds[i % kinds.length]!)
      expect(key.slice(-6)).toBe(inBase62(crc32(key.slice(0, -6))))
    }
  })

  test.each(kinds)('of kind %s with any one character changed is none', (kind) => {
    const key = newKey(kind)
    const taken: string[] = []
    for (let at = 0; at < key.length; at++) {
      for (const character of `${base62}_-.`) {
        if (character === key[at]) continue
        const changed = key.slice(0, at) + character + key.slice(at + 1)
        if (keyKind(changed) !== null) taken.push(changed)
      }
    }
    expect(taken).toEqual([])
  })

  test.each(kinds)('of kind %s with two neighbours swapped is none', (kind) => {
    for (let i = 0; i < 100; i++) {
      const key = newKey(kind)
      for (let at = 0; at + 1 < key.length; at++) {
        const swapped = key.slice(0, at) + key[at + 1] + key[at] + key.slice(at + 2)
        if (swapped !== key) expect([swapped, keyKind(swapped)]).toEqual([swapped, null])
      }
    }
  })

  test.each([
    '',
    'svc_adm_',
    'garbage',
    `${newKey('admin')}\n`,
    ` ${newKey('admin')}`,
    newKey('admin').slice(0, -1),
    `${newKey('admin')}0`,
    newKey('agent').toUpperCase(),
    newKey('agent').replace('svc_agt_', 'svc_adm_'),
    newKey('agent').replace('svc_', 'sk_'),
  ])('is not %j', (text) => {
    expect(keyKind(text)).toBeNull()
  })

  test('is told by its prefix alone from what belongs to another scheme', () => {
    for (const kind of kinds) expect(looksLikeKey(`${prefixes[kind]}x`)).toBe(true)
    for (const text of ['', 'svc_adm', 'svc_cron_x', 'SVC_ADM_x', ' svc_adm_x', 'Bearer svc_adm_x'])
      expect([text, looksLikeKey(text)]).toEqual([text, false])
  })

  test(`is fresh: ${fresh_count} of them are all different, and every digit is as frequent as any other`, () => {
    const keys = new Set<string>()
    const counts = new Map(Array.from(base62, (character) => [character, 0]))
    for (let i = 0; i < fresh_count; i++) {
      const key = newKey('agent')
      keys.add(key)
      for (let at = 8; at < 40; at++) counts.set(key[at]!, counts.get(key[at]!)! + 1)
    }
    expect(keys.size).toBe(fresh_count)
    // The standard deviation of a count is 0.3 % of it: 3 % is ten of them.
    const even = (fresh_count * 32) / 62
    for (const [character, count] of counts)
      expect([character, Math.abs(count - even) < 0.03 * even]).toEqual([character, true])
  })

  test('is kept as its SHA-256 in hexadecimal', () => {
    expect(hashKey('svc_adm_')).toBe('540d4c28762c85595806a1b6c01e12aaa4fc593ffb3c1cc586ded4f64bd52ef6')
    expect(hashKey(newKey('admin'))).toMatch(/^[0-9a-f]{64}$/)
  })

  test('is shown masked, with its last four characters', () => {
    const key = newKey('agent')
    expect(lastFour(key)).toBe(key.slice(42))
    expect(maskedKey('agent', 'x7Qa')).toBe('svc_agt_****x7Qa')
    expect(maskedKey('admin', lastFour(key))).toBe(`svc_adm_****${key.slice(42)}`)
    expect(keyKind(maskedKey('approval', lastFour(key)))).toBeNull()
  })
})

describe('a token', () => {
  test('is 32 random base62 characters, every place of which varies', () => {
    const tokens = Array.from({ length: 2_000 }, newToken)
    expect(new Set(tokens).size).toBe(2_000)
    for (const token of tokens) expect(looksLikeToken(token)).toBe(true)
    for (let at = 0; at < 32; at++) expect(new Set(tokens.map((token) => token[at])).size).toBe(62)
  })

  test.each([
    '',
    'a'.repeat(31),
    'a'.repeat(33),
    `${'a'.repeat(31)}-`,
    ` ${'a'.repeat(31)}`,
    `${'a'.repeat(32)}\n`,
  ])('is not %j', (text) => {
    expect(looksLikeToken(text)).toBe(false)
  })
})

/** Bit by bit, polynomial 0xEDB88320 (ITU-T V.42, reflected). */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return ~crc >>> 0
}

function inBase62(value: number): string {
  const digits = [5, 4, 3, 2, 1, 0].map((power) => Math.floor(value / 62 ** power) % 62)
  return digits.map((digit) => base62[digit]).join('')
}
