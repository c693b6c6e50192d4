// The rate limiter that a team would build on Fastify and rate-limiter-flexible: the same route, the same body, keys
// checked by their hash. Argument: the URL of Redis, or nothing to count in memory, where a restart forgets.

import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'

const [redis_url] = process.argv.slice(2)
const store = redis_url && new Redis(redis_url, { enableAutoPipelining: true })
const limiters = new Map()
const agents = new Map([[hashOf('bench-key'), 'bench-agent']])

const body = {
  type: 'object',
  required: ['key', 'limit', 'windowSeconds'],
  additionalProperties: false,
  properties: {
    key: { type: 'string', minLength: 1, maxLength: 512 },
    limit: { type: 'integer', minimum: 1 },
    windowSeconds: { type: 'integer', minimum: 1 },
  },
}
const response = {
  200: {
    type: 'object',
    properties: {
      allowed: { type: 'boolean' },
      count: { type: 'integer' },
      remaining: { type: 'integer' },
      resetAt: { type: 'string' },
    },
  },
}

const app = Fastify()
app.addHook('onRequest', async (request, reply) => {
  const agent = agents.get(hashOf(String(request.headers['x-api-key'])))
  if (!agent) return reply.code(401).send({ error: 'UNAUTHORIZED' })
})
app.post(
  '/api/rate-limit/check',
  { schema: { body, response } },
  async ({ body: { key, limit, windowSeconds } }) => {
    const limiter = limiterOf(limit, windowSeconds)
    const result = await limiter.consume(key).catch((refused) => {
      if (refused instanceof Error) throw refused
      return refused
    })
    return {
      allowed: result.consumedPoints <= limit,
      count: result.consumedPoints,
      remaining: result.remainingPoints,
      resetAt: new Date(Date.now() + result.msBeforeNext).toISOString(),
    }
  },
)
await app.listen({ host: '127.0.0.1', port: 0 })
console.log(`port ${app.server.address().port}`)

/** A limiter has one limit and one window: one for each pair. */
function limiterOf(points, duration) {
  const name = `${points}/${duration}`
  let limiter = limiters.get(name)
  if (!limiter) {
    const options = { keyPrefix: name, points, duration }
    limiter = store
      ? new RateLimiterRedis({ ...options, storeClient: store })
      : new RateLimiterMemory(options)
    limiters.set(name, limiter)
  }
  return limiter
}

function hashOf(key) {
  return createHash('sha256').update(key).digest('base64')
}
