// The rate limiter: exact counts in fixed and sliding windows.

import { equal, holds, invalid, matches, refused, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { minute } from '../contract.ts'
import { hasShape, rateCheck, rateReset, rateStatus } from '../shapes.ts'
import { type Actor, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const window_seconds_max = 31_536_000
const check_path = '/api/rate-limit/check'

export const rate_limit = chapter('rate-limit', {
  check: [
    'A check increments the counter by one and compares it with limit: 200 with allowed, count, remaining, resetAt and limit',
    'edge 2, edge 3, edge 4, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      for (const count of [1, 2, 3]) {
        const data = succeeded(await agent.post(check_path, { key, limit: 3, windowSeconds: 60 }), 200)
        hasShape(data, rateCheck, 'POST /api/rate-limit/check')
        equal(
          [data.allowed, data.count, data.remaining, data.limit],
          [true, count, 3 - count, 3],
          'the check',
        )
        equal('retryAfter' in data, false, 'retryAfter of an allowed check')
      }
    },
  ],
  blocked: [
    'Above limit: 429 with success false, allowed false, remaining 0, resetAt and retryAfter, and Retry-After; a blocked check counts',
    'edge 3, edge 7, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const body = { key, limit: 1, windowSeconds: 60 }
      const first = succeeded(await agent.post(check_path, body), 200)
      for (const count of [2, 3]) {
        const answer = await agent.post(check_path, body)
        const data = succeeded(answer, 429)
        hasShape(data, rateCheck, 'a blocked check')
        equal(
          [data.allowed, data.count, data.remaining, data.limit],
          [false, count, 0, 1],
          'the blocked check',
        )
        equal(data.resetAt, first.resetAt, 'resetAt')
        holds(
          Number.isInteger(data.retryAfter) && data.retryAfter >= 1 && data.retryAfter <= 60,
          `retryAfter is ${data.retryAfter}`,
        )
        equal(answer.headers['retry-after'], String(data.retryAfter), 'Retry-After')
      }
    },
  ],
  exact: [
    'Of N simultaneous checks exactly limit are allowed',
    'edge 1, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      for (const algorithm of ['fixed_window', 'sliding_window']) {
        const body = { key: `${key}-${algorithm}`, limit: 7, windowSeconds: 3_600, algorithm }
        const answers = await Promise.all(Array.from({ length: 20 }, () => agent.post(check_path, body)))
        equal(answers.filter(({ status }) => status === 200).length, 7, `allowed checks of ${algorithm}`)
        equal(answers.filter(({ status }) => status === 429).length, 13, `blocked checks of ${algorithm}`)
      }
    },
  ],
  query: [
    'GET /api/rate-limit/check is the same with key, limit and window in the query, with Cache-Control: no-store',
    'edge 4, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const first = await agent.get(`${check_path}?key=${key}&limit=2&window=60`)
      equal(first.headers['cache-control'], 'no-store', 'Cache-Control')
      hasShape(succeeded(first, 200), rateCheck, 'GET /api/rate-limit/check')
      equal(
        succeeded(await agent.post(check_path, { key, limit: 2, windowSeconds: 60 }), 200).count,
        2,
        'count of both forms',
      )
      equal(
        succeeded(await agent.get(`${check_path}?key=${key}&limit=2&windowSeconds=60`), 429).count,
        3,
        'count',
      )
      equal(
        succeeded(await agent.post(check_path, { key: `${key}-w`, limit: 2, window: 60 }), 200).count,
        1,
        'count with window',
      )
      const costly = await agent.get(
        `${check_path}?key=${key}-c&limit=5&window=60&cost=3&algorithm=sliding-window`,
      )
      equal(succeeded(costly, 200).count, 3, 'count with cost=3 in the query')
    },
  ],
  'query-form': [
    'GET /api/rate-limit/check is always the check form (missing parameters: 400); GET /api/rate-limit/reset is a counter’s status',
    'decisions 6',
    async (t) => {
      const { agent } = await target(t)
      refused(await agent.get(check_path), 'VALIDATION_FAILED')
      refused(await agent.get(`${check_path}?key=x&limit=1`), 'VALIDATION_FAILED')
      refused(await agent.post(check_path, { key: 'x', limit: 1 }), 'VALIDATION_FAILED')
      invalid(await agent.get(`${check_path}?key=x&limit=0&window=60`), 'query.limit')
      equal(succeeded(await agent.get('/api/rate-limit/reset'), 200).key, 'reset', 'key')
    },
  ],
  numbers: [
    'limit is any number of at least 1; a window is any number of 1 to 31536000 seconds; cost is 1 to limit',
    'edge 2, edge 8, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const check = (rest: object) =>
        agent.post(check_path, { key: `${key}-${unique()}`, limit: 10, windowSeconds: 60, ...rest })
      for (const rest of [
        { limit: 1 },
        { limit: 2.5 },
        { windowSeconds: 1 },
        { windowSeconds: 1.5 },
        { windowSeconds: window_seconds_max },
      ])
        succeeded(await check(rest), 200)
      for (const limit of [0, 0.5, -1, '10']) invalid(await check({ limit }), '/limit')
      for (const windowSeconds of [0, 0.5, window_seconds_max + 1, '60'])
        invalid(await check({ windowSeconds }), '/windowSeconds')
      equal(succeeded(await check({ cost: 10 }), 200).count, 10, 'count with cost 10')
      for (const cost of [0, -1, 1.5, 11, '1']) invalid(await check({ cost }), '/cost')
    },
  ],
  algorithms: [
    'algorithm is fixed_window, the default, or sliding_window; - and _ are both accepted',
    'edge 4, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      for (const algorithm of ['fixed_window', 'fixed-window', 'sliding_window', 'sliding-window']) {
        const body = { key: `${key}-${unique()}`, limit: 2, windowSeconds: 60, algorithm }
        equal(succeeded(await agent.post(check_path, body), 200).count, 1, `count with ${algorithm}`)
      }
      invalid(
        await agent.post(check_path, { key, limit: 2, windowSeconds: 60, algorithm: 'leaky' }),
        '/algorithm',
      )
      const both = { key, limit: 5, windowSeconds: 60 }
      succeeded(await agent.post(check_path, both), 200)
      equal(
        succeeded(await agent.post(check_path, { ...both, algorithm: 'fixed-window' }), 200).count,
        2,
        'count of the default',
      )
      equal(
        succeeded(await agent.post(check_path, { ...both, algorithm: 'sliding_window' }), 200).count,
        1,
        'count of another algorithm',
      )
    },
  ],
  'other-window': [
    'The limit applies per call; another window starts a new one',
    'decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const check = async (limit: number, windowSeconds: number) =>
        (await agent.post(check_path, { key, limit, windowSeconds })).json.data
      equal((await check(1, 60)).allowed, true, 'allowed, first with limit 1')
      equal((await check(1, 60)).allowed, false, 'allowed, second with limit 1')
      equal((await check(5, 60)).allowed, true, 'allowed, third with limit 5')
      equal((await check(5, 61)).count, 1, 'count of another window')
    },
  ],
  headers: [
    'All answers carry RateLimit and RateLimit-Policy',
    'decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const body = { key, limit: 1, windowSeconds: 60 }
      const answers = [
        await agent.post(check_path, body),
        await agent.post(check_path, body),
        await agent.get(`/api/rate-limit/${key}`),
      ]
      for (const { headers, status } of answers) {
        // Drafts before the eighth wrote them otherwise.
        matches(headers.ratelimit, /\b(r|remaining)=0\b/, `RateLimit of a ${status}`)
        matches(headers['ratelimit-policy'], /\bq=1\b|^"?1"?;\s*w=60\b/, `RateLimit-Policy of a ${status}`)
      }
    },
  ],
  status: [
    'GET /api/rate-limit/{key}, URL-encoded, answers key, count, remaining, resetAt and windowExpired, and counts nothing',
    'edge 2, edge 4, decisions 6',
    async (t) => {
      const { agent, key: plain } = await target(t)
      const key = `${plain} /ü:?`
      const made = succeeded(await agent.post(check_path, { key, limit: 3, windowSeconds: 60 }), 200)
      for (let i = 0; i < 2; i++) {
        const data = succeeded(await agent.get(`/api/rate-limit/${encodeURIComponent(key)}`), 200)
        hasShape(data, rateStatus, 'GET /api/rate-limit/{key}')
        equal([data.key, data.count, data.remaining], [key, 1, 2], 'key, count and remaining')
        equal(
          [data.resetAt, data.windowExpired, data.limit],
          [made.resetAt, false, 3],
          'resetAt, windowExpired and limit',
        )
      }
    },
  ],
  absent: [
    'The status of an absent or reset counter is 200 with count 0 and windowExpired true',
    'decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const absent = succeeded(await agent.get(`/api/rate-limit/${key}`), 200)
      hasShape(absent, rateStatus, 'status of an absent counter')
      equal([absent.count, absent.windowExpired], [0, true], 'count and windowExpired')
      equal([absent.remaining, absent.limit], [0, 0], 'remaining and limit')
    },
  ],
  reset: [
    'Reset removes the counter of the key: data key and reset',
    'edge 2, edge 3, edge 4',
    async (t) => {
      const { agent, key } = await target(t)
      const body = { key, limit: 1, windowSeconds: 60 }
      succeeded(await agent.post(check_path, body), 200)
      succeeded(await agent.post(check_path, body), 429)
      const data = succeeded(await agent.post('/api/rate-limit/reset', { key }), 200)
      hasShape(data, rateReset, 'POST /api/rate-limit/reset')
      equal(data.key, key, 'key')
      const shown = succeeded(await agent.get(`/api/rate-limit/${key}`), 200)
      equal([shown.count, shown.windowExpired], [0, true], 'count and windowExpired after the reset')
      equal(succeeded(await agent.post(check_path, body), 200).count, 1, 'count after the reset')
    },
  ],
  key: [
    'A key has 1 to 256 bytes',
    'decisions 6',
    async (t) => {
      const { agent } = await target(t)
      const check = (key: unknown) => agent.post(check_path, { key, limit: 10, windowSeconds: 1 })
      for (const key of [unique().padEnd(256, 'x'), unique().padEnd(132, 'ü').slice(0, 132)])
        succeeded(await check(key), 200)
      for (const key of ['', 'x'.repeat(257), 'ü'.repeat(129), 7]) invalid(await check(key), '/key')
    },
  ],
  'admin-key': [
    'The admin key checks the same counters',
    'edge 5, decisions 2, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const { admin } = await t.tenant()
      const body = { key, limit: 5, windowSeconds: 60 }
      succeeded(await agent.post(check_path, body), 200)
      equal(succeeded(await admin.post(check_path, body), 200).count, 2, 'count of the admin’s check')
      const other = await (await t.tenant()).other()
      equal(succeeded(await other.post(check_path, body), 200).count, 3, 'count of another agent’s check')
    },
  ],
  'window-ends': timed(
    2 * minute,
    'A fixed window starts at the first hit; when it has elapsed the counter is expired and the next check starts at 1',
    'edge 3, decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const body = { key, limit: 1, windowSeconds: minute }
      const { resetAt } = succeeded(await agent.post(check_path, body), 200)
      const seconds = (Date.parse(resetAt) - (await t.time.now())) / 1_000
      holds(Math.abs(seconds - minute) < 5, `resetAt is in ${seconds} s`)
      await t.time.wait(minute - 5)
      succeeded(await agent.post(check_path, body), 429)
      await t.time.wait(10)
      const shown = succeeded(await agent.get(`/api/rate-limit/${key}`), 200)
      equal([shown.count, shown.windowExpired, shown.resetAt], [0, true, resetAt], 'the elapsed counter')
      equal([shown.limit, shown.remaining], [1, 1], 'limit and remaining of the elapsed counter')
      equal(succeeded(await agent.post(check_path, body), 200).count, 1, 'count after the window')
    },
  ),
  'sliding-window': timed(
    4 * minute,
    'A sliding window weighs the window before: most of a burst right after it is blocked; a polling client gets free again',
    'decisions 6',
    async (t) => {
      const { agent, key } = await target(t)
      const body = { key, limit: 10, windowSeconds: minute, algorithm: 'sliding_window' }
      for (let i = 0; i < 10; i++) succeeded(await agent.post(check_path, body), 200)
      for (let i = 0; i < 30; i++) succeeded(await agent.post(check_path, body), 429)
      await t.time.wait(minute + 5)
      const burst = await Promise.all(Array.from({ length: 10 }, () => agent.post(check_path, body)))
      const allowed = burst.filter(({ status }) => status === 200).length
      holds(allowed <= 3, `${allowed} checks are allowed 5 s after a window that was full`)
      await polledFree(t, agent, body)
    },
  ),
})

/** At most limit + 1 are stored, so that the weight of the window before sinks below the limit. */
async function polledFree(t: Trial, agent: Actor, body: object): Promise<void> {
  for (let tries = 0; tries < 18; tries++) {
    await t.time.wait(10)
    if ((await agent.post(check_path, body)).status === 200) return
  }
  holds(false, 'a client that polls every 10 s is blocked for ever')
}

async function target(t: Trial): Promise<{ agent: Actor; key: string }> {
  return { agent: await (await t.tenant()).agent(), key: `rl-${unique()}` }
}
