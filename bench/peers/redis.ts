// A Redis of its own that flushes its append-only file before it answers a write.

import { RedisClient } from 'bun'
import { cores, end, start, temporaryFolder } from '../processes.ts'
import { freePort } from '../service.ts'
import { type Availability, versionOf } from './peer.ts'
import { slowDisk } from './slow-disk.ts'

const start_ms_max = 5_000
export const redis_binary = Bun.which('redis-server')

export async function redisAvailable(): Promise<Availability> {
  if (!redis_binary) return { missing: 'redis-server is not installed' }
  return { version: versionOf([redis_binary, '--version'], /v=(\S+)/) ?? 'unknown' }
}

export interface Redis {
  url: string
  port: number
  pid: number
  send(command: string, ...args: string[]): Promise<unknown>
  /** Calls of these commands that succeeded. */
  calls(...commands: string[]): Promise<number>
  stop(): Promise<void>
}

/** The file is never rewritten during a run, which would take part of the core for seconds. */
export async function startRedis(flush_delay_ms = 0): Promise<Redis> {
  const { folder, remove } = temporaryFolder()
  const port = freePort()
  const settings = {
    ...{ port: String(port), bind: '127.0.0.1', dir: folder, save: '' },
    ...{ appendonly: 'yes', appendfsync: 'always', 'auto-aof-rewrite-percentage': '0' },
  }
  const child = start(
    [redis_binary!, ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])],
    {
      core: cores.server,
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', ...slowDisk(flush_delay_ms) },
    },
  )
  const said = new Response(child.stdout).text()
  const url = `redis://127.0.0.1:${port}`
  const client = new RedisClient(url, { autoReconnect: false })
  for (const began = performance.now(); !(await listens(port)); ) {
    if (child.exitCode !== null || performance.now() - began > start_ms_max)
      throw new Error(`redis-server did not start: ${child.exitCode === null ? 'no answer' : await said}`)
    await Bun.sleep(10)
  }
  await client.connect()
  const redis: Redis = {
    ...{ url, port, pid: child.pid },
    send: (command, ...args) => client.send(command, args),
    async calls(...commands) {
      const stats = String(await client.send('INFO', ['commandstats']))
      return commands.reduce((sum, command) => sum + succeeded(stats, command), 0)
    },
    async stop() {
      client.close()
      await end(child)
      remove()
    },
  }
  const { appendfsync } = (await redis.send('CONFIG', 'GET', 'appendfsync')) as Record<string, string>
  if (appendfsync === 'always') return redis
  await redis.stop()
  throw new Error(`appendfsync of Redis is ${appendfsync}`)
}

function succeeded(stats: string, command: string): number {
  const line = new RegExp(`^cmdstat_${command}:(.*)$`, 'm').exec(stats)?.[1] ?? ''
  const of = (name: string) => Number(new RegExp(`\\b${name}=(\\d+)`).exec(line)?.[1] ?? 0)
  return of('calls') - of('failed_calls')
}

/** True when something accepts connections there. */
export async function listens(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
    socket.end()
    return true
  } catch {
    return false
  }
}
