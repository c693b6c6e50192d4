// Fastify with rate-limiter-flexible: what a team would write for itself in an afternoon, for the rate check alone.

import { rateCheck } from '../rate-check.ts'
import { packagesMissing, startProgram, versionOfPackage } from './packages.ts'
import { ask, type Peer, type PeerRequest } from './peer.ts'
import { redisAvailable, startRedis } from './redis.ts'

const requests_count = 1_000

export const fastify = fastifyWith(
  'Fastify + rate-limiter-flexible',
  'the same route with keys checked by their hash, counted in Redis with `appendfsync always`, commands pipelined',
  true,
)

export const fastify_memory = fastifyWith(
  'Fastify + rate-limiter-flexible, in memory',
  'the same, counted in memory: a restart forgets',
  false,
)

function fastifyWith(name: string, how: string, durable: boolean): Peer {
  return {
    ...{ name, how, slow_disk: durable },
    async available() {
      const missing = packagesMissing()
      if (missing) return { missing }
      const redis = durable ? await redisAvailable() : { version: '' }
      if ('missing' in redis) return redis
      const own = `Fastify ${versionOfPackage('fastify')}, rate-limiter-flexible ${versionOfPackage('rate-limiter-flexible')}`
      return { version: durable ? `${own}, Redis ${redis.version}` : own }
    },
    async start({ flush_delay_ms }) {
      const redis = durable ? await startRedis(flush_delay_ms) : null
      const program = await startProgram('fastify', redis ? [redis.url] : [])
      const url = `http://127.0.0.1:${program.port}`
      return {
        pids: redis ? [program.pid, redis.pid] : [program.pid],
        async load(operation) {
          if (operation !== 'rate-check') return null
          const requests = Array.from({ length: requests_count }, request)
          await ask(url, requests[0]!)
          return { url, requests, ...(redis ? { kept: () => redis.calls('evalsha', 'eval') } : {}) }
        },
        async stop() {
          await program.stop()
          await redis?.stop()
        },
      }
    },
  }
}

function request(): PeerRequest {
  const headers = { 'x-api-key': 'bench-key', 'content-type': 'application/json' }
  return { ...rateCheck.request(0, ''), headers }
}
