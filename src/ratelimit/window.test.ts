import { describe, expect, test } from 'bun:test'
import { randomFrom } from '../../test/support/random.ts'
import { RateModel } from '../../test/support/rate-model.ts'
import { type Known, standingOf } from './standing.ts'
import {
  type Check,
  ceilingOf,
  decideFixed,
  decideSliding,
  rateLimitHeaders,
  secondsUntil,
} from './window.ts'

const max = Number.MAX_SAFE_INTEGER
const check = (change: Partial<Check> = {}): Check => ({
  key: 'k',
  limit: 10,
  window_ms: 1_000,
  algorithm: 'fixed_window',
  cost: 1,
  ...change,
})

/** From 0 up to, but not, 1. */
function fractions(seed: number): () => number {
  const draw = randomFrom(seed)
  return () => draw(2 ** 32) / 2 ** 32
}

describe('a limit', () => {
  test.each([
    [1, 1],
    [1.999, 1],
    [2.5, 2],
    [max, max],
    [max + 1, max],
    [1e300, max],
  ])('%d counts as %d', (limit, ceiling) => {
    expect(ceilingOf(limit)).toBe(ceiling)
  })
})

describe('a fixed window', () => {
  test.each([
    [1, 10, true, 9],
    [10, 10, true, 0],
    [11, 10, false, 0],
    [10, 10.9, true, 0],
    [11, 10.9, false, 0],
    [max, max, true, 0],
    [max + 1, 1e300, false, 0],
  ])('%d hits of a limit of %d: allowed %p, remaining %d', (hits, limit, allowed, remaining) => {
    expect(decideFixed(check({ limit }), { hits, expires_at: 5_000 })).toEqual({
      allowed,
      count: hits,
      remaining,
      reset_at: 5_000,
    })
  })
})

describe('a sliding window', () => {
  // The current bucket runs from 10,000 to 11,000, and expires at 12,000.
  const expires_at = 12_000
  test.each([
    // now, previous, hits after, taken, cost -> allowed, count, remaining, reset_at
    [10_000, 0, 1, 1, 1, true, 1, 9, 11_000],
    [10_000, 9, 1, 1, 1, true, 10, 0, 11_000],
    [10_001, 9, 1, 1, 1, true, 9, 1, 11_000], // 8.991 counts as 8
    [10_500, 9, 1, 1, 1, true, 5, 5, 11_000],
    [10_999, 9, 1, 1, 1, true, 1, 9, 11_000],
    [10_000, 10, 0, 0, 1, false, 11, 0, 10_001],
    [10_000, 10, 5, 0, 3, false, 18, 0, 10_701],
    [10_500, 0, 10, 0, 1, false, 11, 0, 11_001],
    [10_500, 4, 10, 0, 1, false, 13, 0, 11_001],
    [10_500, 0, 10, 0, 10, false, 20, 0, 11_901],
  ] as [number, number, number, number, number, boolean, number, number, number][])(
    'at %d, %d before, %d now (%d by this check of %d): allowed %p, count %d, remaining %d, reset at %d',
    (now, previous, hits, taken, cost, allowed, count, remaining, reset_at) => {
      const asked = check({ algorithm: 'sliding_window', cost })
      expect(decideSliding(asked, { hits, previous, taken, expires_at }, now)).toEqual({
        allowed,
        count,
        remaining,
        reset_at,
      })
    },
  )

  test('is told to be over its limit exactly when it is blocked, and to have the rest of it when it is not', () => {
    const random = fractions(11)
    for (let i = 0; i < 20_000; i++) {
      const limit = 1 + Math.floor(random() * 20)
      const cost = 1 + Math.floor(random() * limit)
      const window_ms = 1_000 + Math.floor(random() * 5_000)
      const now = 1_767_225_600_000 + Math.floor(random() * 1e6)
      const left = 1 + Math.floor(random() * window_ms)
      const previous = Math.floor(random() * (limit + 1))
      const hits_before = Math.floor(random() * (limit + 1))
      const fits = Math.floor((previous * left) / window_ms) + hits_before + cost <= limit
      const taken = fits ? cost : 0
      const decided = decideSliding(
        check({ algorithm: 'sliding_window', limit, cost, window_ms }),
        { hits: hits_before + taken, previous, taken, expires_at: now + window_ms + left },
        now,
      )
      expect(decided.allowed).toBe(fits)
      expect(decided.count > limit).toBe(!fits)
      expect(decided.remaining).toBe(fits ? limit - decided.count : 0)
      expect(decided.reset_at).toBeGreaterThan(now)
    }
  })

  test('never searches long for the moment it is free, however large its numbers are', () => {
    const window_ms = 31_536_000_000
    const asked = check({ algorithm: 'sliding_window', limit: max, window_ms })
    for (const [previous, hits] of [
      [2, max - 1],
      [max, max - 2],
      [max, 0],
      [1, max],
    ] as const) {
      const decided = decideSliding(asked, { hits, previous, taken: 0, expires_at: 2 * window_ms }, 0)
      expect(decided.reset_at).toBeGreaterThan(0)
      expect(decided.reset_at).toBeLessThanOrEqual(2 * window_ms)
    }
  })
})

describe('against a log of every hit', () => {
  const window_ms = 60_000
  const limit = 100
  type Shape = (random: () => number, at: number) => number
  /** Milliseconds to the next check. */
  const shapes: [string, Shape][] = [
    ['steady, just below the limit', () => 640],
    ['random, a third below the limit', (random) => -Math.log(1 - random()) * 900],
    ['random, at the limit', (random) => -Math.log(1 - random()) * 600],
    ['random, at three times the limit', (random) => -Math.log(1 - random()) * 200],
    [
      'bursts of a second, ten a minute',
      (random, at) => (at % 6_000 < 1_000 ? random() * 100 : 6_000 - (at % 6_000)),
    ],
    [
      'a rate that swings over five minutes',
      (random, at) => -Math.log(1 - random()) * (600 + 500 * Math.sin(at / 48_000)),
    ],
  ]

  interface Measured {
    /** How far the estimate is from the log, in parts of the limit: on average over the checks, and at most. */
    mean: number
    largest: number
    /** Most that was allowed in any window, in parts of the limit. */
    most: number
    /** All that was allowed, in parts of what a limiter with a log of its own allows. */
    allowed: number
  }

  function measured(next: Shape, seed: number): Measured {
    const random = fractions(seed)
    const model = new RateModel()
    const asked = { algorithm: 'sliding_window', window_ms, limit, cost: 1 } as const
    const log = new Log()
    const exact = new Log()
    let sum = 0
    let checks = 0
    const found: Measured = { mean: 0, largest: 0, most: 0, allowed: 0 }
    for (let now = 0; now < 100 * window_ms; now += Math.max(1, Math.round(next(random, now)))) {
      const { allowed, count } = model.check(asked, now)
      const error = Math.abs(count - 1 - log.at(now)) / limit
      if (allowed) log.add(now)
      if (exact.at(now) < limit) exact.add(now)
      sum += error
      checks += 1
      found.largest = Math.max(found.largest, error)
      found.most = Math.max(found.most, log.at(now) / limit)
    }
    return { ...found, mean: sum / checks, allowed: log.total / exact.total }
  }

  class Log {
    total = 0
    readonly #hits: number[] = []
    add(now: number) {
      this.#hits.push(now)
      this.total += 1
    }
    /** Hits of the last window. */
    at(now: number): number {
      while (this.#hits.length > 0 && this.#hits[0]! <= now - window_ms) this.#hits.shift()
      return this.#hits.length
    }
  }

  test.each(shapes)('%s: the estimate stays within the bounds that docs/rate-limit.md states', (_, next) => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const found = measured(next, seed)
      expect(found.mean).toBeLessThan(0.08)
      expect(found.largest).toBeLessThan(0.7)
      expect(found.most).toBeLessThan(1.25)
      expect(found.allowed).toBeGreaterThan(0.9)
      expect(found.allowed).toBeLessThan(1.05)
    }
  })

  test('a client that knows its buckets gets less than twice the limit into one window, and no more', () => {
    const model = new RateModel()
    const asked = { algorithm: 'sliding_window', window_ms, limit, cost: 1 } as const
    const log = new Log()
    let most = 0
    const checkAt = (now: number) => {
      if (model.check(asked, now).allowed) log.add(now)
      most = Math.max(most, log.at(now))
    }
    // One hit begins the bucket; the rest of the limit comes at its very end, and then as much as fits.
    checkAt(0)
    for (let i = 0; i < limit; i++) checkAt(window_ms - 1)
    for (let now = window_ms; now < 2 * window_ms; now++) checkAt(now)
    expect(most).toBeLessThan(2 * limit)
    expect(most).toBeGreaterThan(1.9 * limit)
  })
})

describe('where a counter stands', () => {
  const fixed: Known = {
    value: '{}',
    limit: 2.5,
    window_ms: 1_000,
    hits: 2,
    previous: null,
    expires_at: 1_000,
  }
  const sliding: Known = { ...fixed, limit: 10, hits: 4, previous: 5, expires_at: 2_000 }
  test.each([
    ['nothing is known', null, 7, [0, 0, 7, true, 0, null]],
    ['a fixed window runs', fixed, 999, [2, 0, 1_000, false, 2.5, 1_000]],
    ['it is over its limit', { ...fixed, hits: 3 }, 0, [3, 0, 1_000, false, 2.5, 1_000]],
    ['it has elapsed', fixed, 1_000, [0, 2, 1_000, true, 2.5, 1_000]],
    ['it was swept or reset', { ...fixed, value: null }, 1_000, [0, 2, 1_000, true, 2.5, 1_000]],
    ['a sliding window runs', sliding, 500, [6, 4, 1_000, false, 10, 1_000]],
    ['its bucket has ended', sliding, 1_000, [4, 6, 2_000, false, 10, 1_000]],
    ['the next bucket is half over', sliding, 1_500, [2, 8, 2_000, false, 10, 1_000]],
    ['the next bucket nearly is', sliding, 1_999, [0, 10, 2_000, false, 10, 1_000]],
    ['both buckets have ended', sliding, 2_000, [0, 10, 2_000, true, 10, 1_000]],
  ] as [string, Known | null, number, (number | boolean | null)[]][])('%s', (_, known, now, expected) => {
    const { count, remaining, reset_at, window_expired, limit, window_ms } = standingOf(known, now)
    expect([count, remaining, reset_at, window_expired, limit, window_ms]).toEqual(expected)
  })
})

describe('the header fields', () => {
  test.each([
    [100, 60_000, 50, 30, '"default";q=100;w=60', '"default";r=50;t=30'],
    [2.5, 1_500, 0, 2, '"default";q=2;w=2', '"default";r=0;t=2'],
    [0, null, 0, 0, '"default";q=0', '"default";r=0;t=0'],
    [1e300, 1_000, max, 1, '"default";q=999999999999999;w=1', '"default";r=999999999999999;t=1'],
  ])(
    'of limit %d and window %p: whole numbers of 15 digits',
    (limit, window_ms, remaining, seconds, policy, left) => {
      expect(rateLimitHeaders(limit, window_ms, remaining, seconds)).toEqual({
        'ratelimit-policy': policy,
        ratelimit: left,
      })
    },
  )

  test.each([
    [0, 0],
    [-5, 0],
    [1, 1],
    [1_000, 1],
    [1_001, 2],
  ])('%d ms from now is %d seconds', (ms, seconds) => {
    expect(secondsUntil(10_000 + ms, 10_000)).toBe(seconds)
  })
})
