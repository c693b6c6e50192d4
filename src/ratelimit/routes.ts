// /api/rate-limit

import { Type } from 'typebox'
import { invalid } from '../base/errors.ts'
import { api } from '../contract/group.ts'
import { Reply, route } from '../contract/route.ts'
import { Shape, sharing } from '../contract/schemas.ts'
import { CheckInput, isKey, key, key_rule } from './input.ts'
import * as limiter from './service.ts'
import { answered, check_replies, headersOf, rate_headers, Status, standing, tag } from './shapes.ts'

export const checkRateLimit = route({
  group: api,
  method: 'POST',
  path: '/api/rate-limit/check',
  tag,
  summary: 'Count a hit and say whether it is within the limit',
  description:
    'Counting and checking are one step, across all nodes. A blocked hit gets 429, with the seconds until the next may pass.',
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
      limit: ['--limit <n>', 'the most hits in a window'],
      windowSeconds: ['--window <duration>', 'length of the window'],
      window: false,
      algorithm: ['--algorithm <name>', 'default fixed_window'],
      cost: ['--cost <n>', 'how many hits this is; default 1', 'number'],
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
  summary: 'The same check with its fields in the query; it also counts',
  description: 'For clients that can send only GET. A repeat counts again.',
  auth: ['agent', 'admin'],
  frozen: 'refused', // as by POST
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
  description: 'The next hit begins a new window.',
  sdk: {
    name: 'rateLimit.reset',
    arguments: ['key'],
    retry: { safe: false, why: 'a repeat could end a window that began in between' },
  },
  cli: { usage: 'rate reset <key>', examples: ['waystation rate reset openai'] },
  auth: ['agent', 'admin'],
  destructive: true,
  body: Type.Object(
    { key: CheckInput.properties.key },
    sharing('RateLimitRequest', 'The counter, and the limit that it is checked against.'),
  ),
  replies: {
    200: {
      body: Shape(
        'RateLimitReset',
        { of: 'Acknowledgement', about: 'The outcome of a reset.' },
        {
          key: Type.String(),
          reset: Type.Boolean({ description: 'False when no window was running.' }),
        },
      ),
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
  summary: 'Read the counter named reset',
  description: 'The path for a counter with exactly this name; a POST to it resets a counter.',
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
  summary: 'Read a counter without counting',
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
