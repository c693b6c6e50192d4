import { describe, expect, test } from 'bun:test'
import { last_instant_ms } from './clock.ts'
import { type IdPrefix, newId, newSequencedId, randomStep, sequenceOf } from './ids.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const now = Date.UTC(2026, 0, 1)

describe('an id', () => {
  test.each(['ten', 'apk', 'log', 'req'] satisfies IdPrefix[])(
    'of kind %s is its prefix and 26 characters',
    (prefix) => {
      expect(newId(prefix, now)).toMatch(new RegExp(`^${prefix}_[${alphabet}]{26}$`))
    },
  )

  test.each([0, 1, 31, 32, 1_023, 2 ** 30 - 1, 2 ** 30, now, now + 1, last_instant_ms])(
    'begins with its time in milliseconds: %p',
    (at) => {
      const digits = Array.from(newId('log', at).slice(4, 14), (character) => alphabet.indexOf(character))
      expect(digits.reduce((value, digit) => value * 32 + digit, 0)).toBe(at)
    },
  )

  test('sorts by time as text', () => {
    const times = [
      0,
      1,
      999,
      2 ** 30 - 1,
      2 ** 30,
      2 ** 35,
      now - 1,
      now,
      now + 1,
      now + 86_400_000,
      last_instant_ms,
    ]
    const ids = times.map((at) => newId('log', at))
    expect(ids.toSorted()).toEqual(ids)
    // The order does not depend on the ids that were made in between.
    expect(newId('log', now) < newId('log', now + 1)).toBe(true)
    expect(newId('log', now - 1) < newId('log', now)).toBe(true)
  })

  test('is fresh: 100,000 of the same millisecond are all different, every character as frequent as any other', () => {
    const ids = new Set<string>()
    const counts = new Map(Array.from(alphabet, (character) => [character, 0]))
    for (let i = 0; i < 100_000; i++) {
      const id = newId('log', now)
      ids.add(id)
      for (let at = 14; at < 30; at++) counts.set(id[at]!, counts.get(id[at]!)! + 1)
    }
    expect(ids.size).toBe(100_000)
    // The standard deviation of a count is 0.44 % of it: 4 % is nine of them.
    for (const [character, count] of counts)
      expect([character, Math.abs(count - 50_000) < 2_000]).toEqual([character, true])
  })

  test('has 80 random bits: no place of its random part stands still', () => {
    const seen = Array.from({ length: 16 }, () => new Set<string>())
    for (let i = 0; i < 2_000; i++) {
      const id = newId('req', now)
      seen.forEach((characters, at) => {
        characters.add(id[14 + at]!)
      })
    }
    expect(seen.map((characters) => characters.size)).toEqual(new Array(16).fill(32))
  })
})

describe('an id with a number', () => {
  const seq_max = 2 ** 40 - 1

  test.each([0, 1, 31, 32, 1_023, 1_024, 2 ** 20 - 1, 2 ** 20, 2 ** 31, 2 ** 32 + 7, seq_max])(
    'returns %d',
    (seq) => {
      const id = newSequencedId('msg', now, seq)
      expect(id).toMatch(new RegExp(`^msg_[${alphabet}]{26}$`))
      expect(id.slice(4, 14)).toBe(newId('msg', now).slice(4, 14))
      expect(sequenceOf('msg', id)).toBe(seq)
    },
  )

  test('holds no other number', () => {
    for (const seq of [-1, seq_max + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => newSequencedId('msg', now, seq)).toThrow('no id can hold the number')
    }
  })

  test('sorts by time, then by number', () => {
    const ids = [
      [now, 9],
      [now, 10],
      [now, 1_025],
      [now + 1, 1],
    ] as const
    const made = ids.map(([at, seq]) => newSequencedId('msg', at, seq))
    expect(made.toSorted()).toEqual(made)
  })

  test('has 40 random bits', () => {
    const tails = new Set(Array.from({ length: 10_000 }, () => newSequencedId('msg', now, 7).slice(22)))
    expect(tails.size).toBe(10_000)
  })

  test('of another kind or form has no number', () => {
    const id = newSequencedId('msg', now, 7)
    const odd = [
      '',
      'msg',
      `${id}0`,
      id.slice(1),
      id.toUpperCase(),
      id.replace('msg', 'log'),
      `${id.slice(0, -1)}u`,
    ]
    expect(odd.map((text) => sequenceOf('msg', text))).toEqual(odd.map(() => null))
  })
})

test('a random step is a whole number from 1 to 65,536', () => {
  const steps = Array.from({ length: 5_000 }, randomStep)
  expect(steps.every((step) => Number.isInteger(step) && step >= 1 && step <= 65_536)).toBe(true)
  expect(new Set(steps).size).toBeGreaterThan(4_000)
})
