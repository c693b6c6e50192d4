// /api/rate-limit

import { type Static, Type } from 'typebox'
import { iso, type Millis, second_ms } from '../base/clock.ts'
import { type Issue, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import { api } from '../contract/group.ts'
import { type Context, type Param, Reply, route } from '../contract/route.ts'
import { Shape, Time } from '../contract/schemas.ts'
import * as limiter from './service.ts'
import {
  type Algorithm,
  type Check,
  ceilingOf,
  key_bytes_max,
  rateLimitHeaders,
  type Standing,
  secondsUntil,
  standingOf,
  window_seconds_max,
  windowOf,
} from './window.ts'

const tag = 'Rate limiter'
const key_rule = `must be 1 to ${key_bytes_max} bytes of UTF-8`

const Window = Type.Optional(
  Type.Number({
    minimum: 1,
    maximum: window_seconds_max,
    description: 'Length of the window. One of windowSeconds and window is needed; both are the same.',
  }),
)

const CheckInput = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: key_bytes_max,
      description: 'Names the counter: 1 to 256 bytes of UTF-8.',
    }),
    limit: Type.Number({ minimum: 1, description: 'Most hits in a window; counted by its floor.' }),
    windowSeconds: Window,
    window: Window,
    algorithm: Type.Optional(
      Type.Enum(['fixed_window', 'sliding_window', 'fixed-window', 'sliding-window'], {
        description: 'fixed_window, the default, starts at the first hit; sliding_window has no edges.',
      }),
    ),
    cost: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'How many hits this is: 1, the default, to limit.',
      }),
    ),
  },
  { 'x-one-of': ['windowSeconds', 'window'] },
)

const key: Param = {
  schema: Type.String({
    minLength: 1,
    maxLength: key_bytes_max,
    description: 'The counter: 1 to 256 bytes of UTF-8, percent-encoded once.',
  }),
  read: (decoded) => (isKey(decoded) ? decoded : null),
  message: `${key_rule} without NUL`,
}

const Count = Type.Number({ description: 'Hits of the window, this check included.' })
const Remaining = Type.Number({ description: 'Hits that the limit still allows.' })
const Limit = Type.Number({ description: 'As it was sent with the last check; 0 when that is not known.' })

const Allowed = Shape('RateLimitAllowed', {
  allowed: Type.Boolean(),
  count: Count,
  remaining: Remaining,
  resetAt: Time('The end of the window.'),
  limit: Limit,
})

const Blocked = Shape('RateLimitBlocked', {
  allowed: Type.Boolean(),
  count: Count,
  remaining: Remaining,
  resetAt: Time('The end of a fixed window; of a sliding one, when the same check would pass.'),
  retryAfter: Type.Integer({ description: 'Seconds until then, at least 1.' }),
  limit: Limit,
})

const Status = Shape('RateLimitStatus', {
  key: Type.String(),
  count: Type.Number({ description: 'Hits of the window; 0 when it is over.' }),
  remaining: Remaining,
  resetAt: Time('The end of the window; now when that is not known.'),
  windowExpired: Type.Boolean(),
  limit: Limit,
})

const Counter = Shape('RateLimitCounter', {
  key: Type.String(),
  algorithm: Type.Enum(['fixed_window', 'sliding_window']),
  limit: Limit,
  count: Type.Number({ description: 'Hits of the window.' }),
  remaining: Remaining,
  resetAt: Time('The end of the window.'),
  windowSeconds: Type.Number({ description: 'Length of the window.' }),
})

const rate_headers = { RateLimit: Type.String(), 'RateLimit-Policy': Type.String() }
const check_replies = {
  200: { body: Allowed, headers: rate_headers },
  429: { body: Blocked, headers: { ...rate_headers, 'Retry-After': Type.Integer() }, description: 'Blocked' },
}

const list_limit_default = 50
const list_limit_max = limit(
  'rate_limit.page',
  100,
  'rows',
  'Counters on a page. A larger `limit` counts as this.',
)

type Limiting = Context<TenantFacts>

export const listRateLimits = route({
  group: api,
  method: 'GET',
  path: '/api/rate-limit',
  tag,
  summary: 'List the counters whose window is running; what ends first comes first',
  sdk: { name: 'rateLimit.list' },
  cli: {
    usage: 'rate list',
    about: 'List the counters whose window is running',
    examples: ['waystation rate list --prefix openai'],
    options: { prefix: ['--prefix <text>', 'only keys that start with it'] },
    columns: ['key', 'count', 'limit', 'remaining', 'resetAt', 'algorithm'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Items, default 50; above 100 counts as 100.' }),
    ),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: limiter.total_max, description: 'Items to skip.' }),
    ),
    prefix: Type.Optional(
      Type.String({
        maxLength: key_bytes_max,
        description: 'Only counters whose key starts with it, among the 10,000 that end first.',
      }),
    ),
  }),
  replies: {
    200: {
      body: Shape({
        items: Type.Array(Counter),
        total: Type.Integer({ description: 'How many there are, counted to 10,000.' }),
      }),
    },
  },
  errors: [],
  async handle({ db, caller, now }, { query }) {
    const { limit = list_limit_default, offset = 0, prefix = '' } = query
    const rows_max = Math.min(limit, list_limit_max)
    const { counters, total } = await limiter.list(db, caller.tenant_id, prefix, now, offset, rows_max)
    return { items: counters.map((counter) => counterOf(counter, now)), total }
  },
})

export const checkRateLimit = route({
  group: api,
  method: 'POST',
  path: '/api/rate-limit/check',
  tag,
  summary: 'Count a hit and say whether it is within the limit',
  sdk: {
    name: 'rateLimit.check',
    arguments: ['key'],
    retry: { safe: false, why: 'a repeat would count twice' },
  },
  cli: {
    usage: 'rate check <key>',
    about: 'Count a hit: exit code 0 when it is allowed, 6 when it is blocked',
    group: 'Rate limits that all agents of a tenant share',
    examples: [
      'waystation rate check openai --limit 60 --window 1m && ./call',
      'waystation rate check openai --limit 60 --window 1m --wait 10m && ./call',
    ],
    options: {
      limit: ['--limit <n>', 'most hits in a window'],
      windowSeconds: ['--window <duration>', 'length of the window'],
      window: false,
      algorithm: ['--algorithm <name>', 'default fixed_window'],
      cost: ['--cost <n>', 'how many hits this is; default 1'],
    },
  },
  auth: ['agent', 'admin'],
  body: CheckInput,
  replies: check_replies,
  errors: [],
  handle: (context, { body }) => answered(context, body, '/'),
})

export const checkRateLimitByQuery = route({
  group: api,
  method: 'GET',
  path: '/api/rate-limit/check',
  tag,
  summary: 'The same check with its fields in the query; it counts, too',
  auth: ['agent', 'admin'],
  query: CheckInput,
  replies: check_replies,
  errors: ['OUTCOME_UNKNOWN', 'STORAGE_FULL'],
  handle: (context, { query }) => answered(context, query, 'query.'),
})

export const resetRateLimit = route({
  group: api,
  method: 'POST',
  path: '/api/rate-limit/reset',
  tag,
  summary: 'End the window of a counter',
  sdk: {
    name: 'rateLimit.reset',
    arguments: ['key'],
    retry: { safe: true, why: 'a window that has ended stays ended; `reset` then describes the repeat' },
  },
  cli: { usage: 'rate reset <key>', examples: ['waystation rate reset openai'] },
  auth: ['agent', 'admin'],
  destructive: true,
  body: Type.Pick(CheckInput, ['key']),
  replies: {
    200: {
      body: Shape('RateLimitReset', {
        key: Type.String(),
        reset: Type.Boolean({ description: 'False when no window was running.' }),
      }),
      headers: rate_headers,
    },
  },
  errors: [],
  async handle({ db, caller }, { body }) {
    if (!isKey(body.key)) throw invalid({ path: '/key', message: key_rule })
    const { reset, standing, now } = await limiter.reset(db, caller.tenant_id, body.key)
    return new Reply(200, { key: body.key, reset }, headersOf(standing, now))
  },
})

/** The path of POST …/reset is a counter's, too. */
export const getRateLimitNamedReset = route({
  group: api,
  method: 'GET',
  path: '/api/rate-limit/reset',
  tag,
  summary: 'Where the counter named reset stands',
  auth: ['agent', 'admin'],
  replies: { 200: { body: Status, headers: rate_headers } },
  errors: [],
  handle: (context) => standing(context, 'reset'),
})

export const getRateLimit = route({
  group: api,
  method: 'GET',
  path: '/api/rate-limit/:key',
  tag,
  summary: 'Where a counter stands, without counting',
  description: 'A counter named `check` or `reset` cannot be read here: those are other paths.',
  sdk: { name: 'rateLimit.status' },
  cli: {
    usage: 'rate status <key>',
    about: 'Show a counter without counting',
    examples: ['waystation rate status openai'],
  },
  auth: ['agent', 'admin'],
  params: { key },
  replies: { 200: { body: Status, headers: rate_headers } },
  errors: [],
  handle: (context, { params }) => standing(context, params.key),
})

async function answered(
  { db, caller, dependencies }: Limiting,
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

/** What the schema cannot say. `place` is where a field is told to be. Throws VALIDATION_FAILED with every issue. */
function checkOf(input: Static<typeof CheckInput>, place: string): Check {
  const { key, limit, windowSeconds, window, cost = 1 } = input
  const issues: Issue[] = []
  const seconds = windowSeconds ?? window
  if (!isKey(key)) issues.push({ path: `${place}key`, message: key_rule })
  if (seconds === undefined) issues.push({ path: `${place}windowSeconds`, message: 'is required' })
  if (window !== undefined && seconds !== window)
    issues.push({ path: `${place}window`, message: 'must not differ from windowSeconds' })
  if (cost > ceilingOf(limit)) issues.push({ path: `${place}cost`, message: 'must not be above limit' })
  if (issues.length > 0) throw invalid(...issues)
  const window_ms = Math.round(seconds! * second_ms)
  return { key, limit, window_ms, algorithm: algorithmOf(input.algorithm), cost }
}

function algorithmOf(name: string | undefined): Algorithm {
  return name === 'sliding_window' || name === 'sliding-window' ? 'sliding_window' : 'fixed_window'
}

function isKey(key: string): boolean {
  if (key === '' || key.includes('\0')) return false
  return key.length * 3 <= key_bytes_max || Buffer.byteLength(key) <= key_bytes_max
}

async function standing({ db, caller, now }: Limiting, key: string): Promise<Reply> {
  const found = await limiter.status(db, caller.tenant_id, key, now)
  const { count, remaining, reset_at, window_expired, limit } = found
  const body = { key, count, remaining, resetAt: iso(reset_at), windowExpired: window_expired, limit }
  return new Reply(200, body, headersOf(found, now))
}

function counterOf(counter: limiter.Counter, now: Millis) {
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

function headersOf({ limit, window_ms, remaining, reset_at }: Standing, now: Millis) {
  return rateLimitHeaders(limit, window_ms, remaining, secondsUntil(reset_at, now))
}
