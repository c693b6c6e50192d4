// The list of running counters.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { api } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Part } from '../contract/schemas.ts'
import * as limiter from './service.ts'
import { Counter, counterOf, tag } from './shapes.ts'
import { key_bytes_max } from './window.ts'

const list_limit_default = 50

const list_limit_max = limit(
  'rate_limit.page',
  100,
  'rows',
  'Counters on a page. A larger `limit` counts as this.',
)

export const listRateLimits = route({
  group: api,
  method: 'GET',
  path: '/api/rate-limit',
  tag,
  summary: 'List the running counters, those that end first at the top',
  description:
    'A fixed window ends at its `resetAt`, a sliding counter with its second bucket. Can be filtered by the beginning of the key.',
  sdk: { name: 'rateLimit.list' },
  cli: {
    usage: 'rate list',
    about: 'List the counters whose window is running',
    examples: ['waystation rate list --prefix openai'],
    options: { prefix: ['--prefix <text>', 'only keys that start with this'] },
    columns: ['key', 'count', 'limit', 'remaining', 'resetAt', 'algorithm'],
  },
  auth: ['agent', 'admin'],
  heavy: true,
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Items, default 50; more than 100 counts as 100.' }),
    ),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: limiter.total_max, description: 'Items to skip.' }),
    ),
    prefix: Type.Optional(
      Type.String({
        maxLength: key_bytes_max,
        description: 'Only counters whose key starts with this text, among the 10,000 that end first.',
      }),
    ),
  }),
  replies: {
    200: {
      body: Part(
        'RateLimitPage',
        { of: 'Listing', about: 'Counters that are running, and how many there are.' },
        {
          items: Type.Array(Counter),
          total: Type.Integer({ description: 'The number of counters, counted to 10,000.' }),
        },
      ),
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
