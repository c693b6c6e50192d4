// Answers that the routes share.

import { type Static, Type } from 'typebox'
import { iso, type Millis, second_ms } from '../base/clock.ts'
import type { TenantFacts } from '../contract/caller.ts'
import { type Context, Reply } from '../contract/route.ts'
import { Shape, Time } from '../contract/schemas.ts'
import { type CheckInput, checkOf } from './input.ts'
import * as limiter from './service.ts'
import { type Standing, standingOf, windowOf } from './standing.ts'
import { rateLimitHeaders, secondsUntil } from './window.ts'

const Count = Type.Number({ description: 'Hits in the window, this check included.' })
const Remaining = Type.Number({ description: 'Hits that the limit still allows.' })
const Limit = Type.Number({ description: 'As it was sent with the last check; 0 when that is not known.' })

const Allowed = Shape(
  'RateLimitAllowed',
  {
    of: 'RateLimitCheck',
    about: 'A hit that is within the limit.',
    shared: 'The outcome of a check: the hit was counted, or it was blocked.',
  },
  {
    allowed: Type.Boolean(),
    count: Count,
    remaining: Remaining,
    resetAt: Time('The end of the window.'),
    limit: Limit,
  },
)

const Blocked = Shape(
  'RateLimitBlocked',
  { of: 'RateLimitCheck', about: 'A hit that is past the limit.' },
  {
    allowed: Type.Boolean(),
    count: Count,
    remaining: Remaining,
    resetAt: Time('The end of a fixed window; for a sliding one, when the same check would pass.'),
    retryAfter: Type.Integer({ description: 'Seconds until then, at least 1.' }),
    limit: Limit,
  },
)

export const Status = Shape(
  'RateLimitStatus',
  {
    of: 'RateLimit',
    about: 'The state of a key against the limit of its last check.',
    shared: 'A counter of hits and the limit that it is checked against.',
  },
  {
    key: Type.String(),
    count: Type.Number({ description: 'Hits in the window; 0 when it is over.' }),
    remaining: Remaining,
    resetAt: Time('The end of the window; now when that is not known.'),
    windowExpired: Type.Boolean(),
    limit: Limit,
  },
)

export const Counter = Shape(
  'RateLimitCounter',
  { of: 'RateLimit', about: 'A counter that is running.' },
  {
    key: Type.String(),
    algorithm: Type.Enum(['fixed_window', 'sliding_window']),
    limit: Limit,
    count: Type.Number({ description: 'Hits in the window.' }),
    remaining: Remaining,
    resetAt: Time('The end of the window.'),
    windowSeconds: Type.Number({ description: 'Length of the window.' }),
  },
)

export const rate_headers = { RateLimit: Type.String(), 'RateLimit-Policy': Type.String() }

export const check_replies = {
  200: { body: Allowed, headers: rate_headers },
  429: { body: Blocked, headers: { ...rate_headers, 'Retry-After': Type.Integer() }, description: 'Blocked' },
}

type RateContext = Context<TenantFacts>

export async function answered(
  { db, caller, dependencies }: RateContext,
  input: Static<typeof CheckInput>,
  place: string,
): Promise<Reply> {
  const check = checkOf(input, place)
  const { now, allowed, count, remaining, reset_at } = await limiter.check(db, caller, dependencies, check)
  const { limit, window_ms } = check
  const seconds = secondsUntil(reset_at, now)
  const resetAt = iso(reset_at)
  if (allowed) {
    const headers = rateLimitHeaders(limit, window_ms, remaining, seconds)
    return new Reply(200, { allowed, count, remaining, resetAt, limit }, headers)
  }
  const retryAfter = Math.max(1, seconds)
  return new Reply(
    429,
    { allowed, count, remaining, resetAt, retryAfter, limit },
    {
      ...rateLimitHeaders(limit, window_ms, remaining, retryAfter),
      'retry-after': String(retryAfter),
    },
  )
}

export async function standing({ db, caller, now }: RateContext, key: string): Promise<Reply> {
  const found = await limiter.status(db, caller.tenant_id, key, now)
  const { count, remaining, reset_at, window_expired, limit } = found
  const body = { key, count, remaining, resetAt: iso(reset_at), windowExpired: window_expired, limit }
  return new Reply(200, body, headersOf(found, now))
}

export function counterOf(counter: limiter.Counter, now: Millis) {
  const { limit, count, remaining, reset_at, window_ms } = standingOf(counter, now)
  return {
    key: counter.key,
    algorithm: windowOf(counter),
    limit,
    count,
    remaining,
    resetAt: iso(reset_at),
    windowSeconds: window_ms! / second_ms,
  }
}

export function headersOf({ limit, window_ms, remaining, reset_at }: Standing, now: Millis) {
  return rateLimitHeaders(limit, window_ms, remaining, secondsUntil(reset_at, now))
}

export const tag = 'Rate limiter'
