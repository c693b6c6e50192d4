// Windows when the wall clock is set back.

import { describe, expect, test } from 'bun:test'
import { randomFrom } from '../../test/support/random.ts'
import { forEachService } from '../../test/support/service.ts'
import { hour_ms } from '../base/clock.ts'

const window_seconds = 10

forEachService('A rate window after the clock was set back', (service) => {
  async function limiter(algorithm: string) {
    const { api_key: key } = await service.signUp('pro')
    const asked = { key: 'k', limit: 3, windowSeconds: window_seconds, algorithm }
    const check = (change = {}) =>
      service.ask('POST', '/api/rate-limit/check', { key, body: { ...asked, ...change } })
    const ask = (path: string) => service.ask('GET', `/api/rate-limit/${path}`, { key })
    return { key, check, ask }
  }
  const until = (resetAt: string) => Date.parse(resetAt) - service.clock.now()

  describe.each(['fixed_window', 'sliding_window'])('%s', (algorithm) => {
    test('begins now: what was counted counts on, and nobody waits longer than a window', async () => {
      const { key, check, ask } = await limiter(algorithm)
      for (let i = 0; i < 3; i++) expect((await check()).status).toBe(200)
      service.clock.jump(-2 * hour_ms)
      const seen = await ask('k')
      expect([seen.body.data.count, until(seen.body.data.resetAt)]).toEqual([3, 10_000])
      const { items } = (await service.ask('GET', '/api/rate-limit', { key })).body.data
      expect(items.map(({ resetAt }: { resetAt: string }) => until(resetAt))).toEqual([10_000])
      const blocked = await check()
      expect([blocked.status, blocked.body.data.retryAfter <= window_seconds * 2]).toEqual([429, true])
      if (algorithm === 'fixed_window') {
        expect([blocked.headers.get('retry-after'), blocked.body.data.retryAfter]).toEqual(['10', 10])
      }
      service.clock.advance(2 * window_seconds * 1_000)
      expect((await check()).status).toBe(200)
    })

    test('that has room allows as many as are left, in the window that begins now', async () => {
      const { check } = await limiter(algorithm)
      await check()
      service.clock.jump(-hour_ms)
      const answers = [await check(), await check(), await check()]
      expect(answers.map(({ status, body }) => [status, body.data.count])).toEqual([
        [200, 2],
        [200, 3],
        [429, 4],
      ])
      expect(answers.map(({ body }) => until(body.data.resetAt) <= 2 * window_seconds * 1_000)).toEqual([
        ...[true, true, true],
      ])
      expect(until(answers[0]!.body.data.resetAt)).toBe(10_000)
    })

    test.each([1, 2, 3, 4])(
      'however the clock jumps, retryAfter and resetAt never exceed the window (%d)',
      async (seed) => {
        const { check, ask } = await limiter(algorithm)
        const random = randomFrom(seed)
        // The whole of the bucket before has to fade, which takes the rest of this one and a window more.
        const most_ms = (algorithm === 'fixed_window' ? 1 : 2) * window_seconds * 1_000
        for (let step = 0; step < 60; step++) {
          if (random(3) === 0) service.clock.jump(random(2) === 0 ? -random(hour_ms) : random(hour_ms))
          else service.clock.advance(random(6_000))
          const { status, body } = await check({ cost: 1 + random(3) })
          const standing = (await ask('k')).body.data
          expect(status === 200 || status === 429).toBe(true)
          expect(until(body.data.resetAt)).toBeLessThanOrEqual(most_ms)
          expect(until(standing.resetAt)).toBeLessThanOrEqual(window_seconds * 1_000)
          if (status === 429) expect(body.data.retryAfter * 1_000).toBeLessThanOrEqual(most_ms)
        }
      },
    )
  })

  test('that did not begin later than now is left alone', async () => {
    const { check } = await limiter('fixed_window')
    await check()
    service.clock.advance(4_000)
    service.clock.jump(-4_000)
    const names: string[] = []
    service.app.db.onStatement((name) => names.push(name))
    const answer = await check()
    service.app.db.onStatement(null)
    expect([until(answer.body.data.resetAt), names.includes('ratelimit.begin_now')]).toEqual([10_000, false])
  })
})
