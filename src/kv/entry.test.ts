import { describe, expect, test } from 'bun:test'
import { day_ms, last_instant_ms } from '../base/clock.ts'
import {
  etag,
  expiryOf,
  ifMatchHolds,
  ifNoneMatchNames,
  isForbiddenNamespace,
  isKey,
  isReservedKey,
  namespace_form,
  ownerOf,
  prefixEnd,
  tombstone_ms,
} from './entry.ts'

describe('A namespace', () => {
  test.each(['a', 'Z', '0', '_', '__x', 'a.b', 'a:b', 'a-b', 'a_b', '9.', `a${'x'.repeat(63)}`])(
    '%s matches ^[A-Za-z0-9_][A-Za-z0-9._:-]{0,63}$',
    (namespace) => {
      expect(namespace_form.test(namespace)).toBe(true)
    },
  )

  test.each(['', '.', '..', '.a', ':a', '-a', 'a b', 'a/b', 'a\n', 'ä', 'aä', 'a%', `a${'x'.repeat(64)}`])(
    '%j does not',
    (namespace) => {
      expect(namespace_form.test(namespace)).toBe(false)
    },
  )

  test.each([
    ['state', false],
    ['_state', false],
    ['a__b', false],
    ['agent.one', false],
    ['__agent.one', false],
    ['__agent.two', true],
    ['__agent.one.more', true],
    ['__agent.on', true],
    ['__agent.ONE', true],
    ['__agent.', true],
    ['__agent', true],
    ['__', true],
    ['__rl', true],
    ['___', true],
  ] as const)('%s is reserved for the agent "one": %p', (namespace, forbidden) => {
    expect(isForbiddenNamespace(namespace, { kind: 'agent', agent_id: 'one' })).toBe(forbidden)
  })

  test.each([
    ['state', false, null],
    ['__agent.one', false, 'one'],
    ['__agent.one.more', false, 'one.more'],
    ['__agent.', false, ''],
    ['__agent', true, null],
    ['__', true, null],
    ['__rl', true, null],
    ['___', true, null],
  ] as const)('%s is reserved for the admin key: %p; it belongs to %p', (namespace, forbidden, owner) => {
    expect([isForbiddenNamespace(namespace, { kind: 'admin' }), ownerOf(namespace)]).toEqual([
      forbidden,
      owner,
    ])
  })
})

describe('A key', () => {
  test.each([
    ['of one byte', 'a'],
    ['of 512 bytes', 'x'.repeat(512)],
    ['of 512 bytes in two-byte characters', 'é'.repeat(256)],
    ['of 512 bytes in four-byte characters', '\u{1f600}'.repeat(128)],
    ['of 511 bytes in three-byte characters, and one more', `${'語'.repeat(170)}xx`],
    ['with a space', ' '],
    ['with slashes', '/a//b/'],
    ['of three dots', '...'],
    ['that begins with a dot', '.a'],
    ['with U+FFFD', 'a\ufffd'],
    ['with U+00A0, the first past the controls', '\u00a0'],
    ['with U+2028', '\u2028'],
  ])('may be one %s', (_, key) => {
    expect(isKey(key)).toBe(true)
  })

  test.each([
    ['empty', ''],
    ['of 513 bytes', 'x'.repeat(513)],
    ['of 513 bytes, 257 characters', `${'é'.repeat(256)}a`],
    ['of 516 bytes, 129 characters', '\u{1f600}'.repeat(129)],
    ['a dot segment', '.'],
    ['the other dot segment', '..'],
    ...['\u0000', '\u0001', '\t', '\n', '\r', '\u001f', '\u007f', '\u0080', '\u009f'].map((control) => [
      `with control character U+${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
      `a${control}b`,
    ]),
  ] as [string, string][])('is not %s', (_, key) => {
    expect(isKey(key)).toBe(false)
  })

  test.each([
    ['__rl:', true],
    ['__rl:x', true],
    ['__rl', false],
    ['__RL:x', false],
    ['x__rl:', false],
    ['__r', false],
  ] as const)('%s is reserved: %p', (key, reserved) => {
    expect(isReservedKey(key)).toBe(reserved)
  })
})

describe('A life', () => {
  const now = Date.UTC(2026, 0, 1)
  test.each([
    [undefined, null],
    [1, now + 1_000],
    [60, now + 60_000],
    [(last_instant_ms - now - 999) / 1_000, last_instant_ms - 999],
    [(last_instant_ms - now + 1) / 1_000, last_instant_ms],
    [Number.MAX_SAFE_INTEGER, last_instant_ms],
    [1e300, last_instant_ms],
  ])('of ttl_seconds %p ends at %p', (ttl_seconds, expires_at) => {
    expect(expiryOf(now, ttl_seconds)).toBe(expires_at)
  })

  test('leaves a tombstone of 24 hours', () => {
    expect(tombstone_ms).toBe(day_ms)
  })
})

describe('A precondition', () => {
  test('of version 3 is written "3"', () => {
    expect(etag(3)).toBe('"3"')
  })

  test.each(['3', '"3"', ' 3 ', '*', ' * ', '1, 3', '"1","3"', '1,"3",5', ' "9" , 3', '3, garbage', ',3,'])(
    'If-Match %j names version 3',
    (header) => {
      expect(ifMatchHolds(header, 3)).toBe(true)
    },
  )

  test.each([
    '',
    ' ',
    ',',
    '4',
    '33',
    '"33"',
    '03',
    '3.0',
    '+3',
    '3e0',
    '-3',
    '0x3',
    '"3',
    '3"',
    "'3'",
    '" 3"',
    'W/"3"',
    'w/"3"',
    'W/3',
    '"*"',
    '1, *',
    '1 3',
    '1;3',
    '1, 2, 4',
    'garbage',
    'null',
  ])('If-Match %j does not name version 3', (header) => {
    expect(ifMatchHolds(header, 3)).toBe(false)
  })

  test.each(['3', '"3"', 'W/"3"', '*', '"1", W/"3"'])('If-None-Match %j names version 3', (header) => {
    expect(ifNoneMatchNames(header, 3)).toBe(true)
  })

  test.each(['', '4', '"4"', 'W/"4"', 'w/"3"', 'W/3', '"*"', 'garbage'])(
    'If-None-Match %j does not name version 3',
    (header) => {
      expect(ifNoneMatchNames(header, 3)).toBe(false)
    },
  )
})

describe('The first key past a prefix', () => {
  test.each([
    ['', null],
    ['a', 'b'],
    ['az', 'a{'],
    ['\u007f', '\u0080'],
    ['a\u007f', 'a\u0080'],
    ['\u07ff', '\u0800'],
    ['\ud7ff', '\ue000'],
    ['\uffff', '\u{10000}'],
    ['a\u{10ffff}', 'b'],
    ['a\u{10ffff}\u{10ffff}', 'b'],
    ['\u{10ffff}', null],
    ['\u{10ffff}\u{10ffff}', null],
    ['\u{1f600}', '\u{1f601}'],
  ] as const)('%j is %j', (prefix, end) => {
    expect(prefixEnd(prefix)).toBe(end)
  })

  test('lies after every key that starts with it and before every other, bytewise', () => {
    const points = [
      'a',
      '\u007f',
      '\u0080',
      '\u07ff',
      '\u0800',
      '\ud7ff',
      '\ue000',
      '\uffff',
      '\u{10000}',
      '\u{10ffff}',
    ]
    const keys = points.flatMap((first) => [first, ...points.map((second) => first + second)])
    const before = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0
    for (const prefix of keys) {
      const end = prefixEnd(prefix)
      for (const key of keys) {
        const inside = !before(key, prefix) && (end === null || before(key, end))
        expect(inside).toBe(key.startsWith(prefix))
      }
    }
  })
})
