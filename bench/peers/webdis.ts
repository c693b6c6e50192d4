// webdis in front of Redis: HTTP to one command of Redis each, both in C. It checks no keys and knows no tenants.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hook } from '../hook.ts'
import { bodyOfPut, keys_count } from '../kv-put.ts'
import { cores, end, start, temporaryFolder } from '../processes.ts'
import { freePort } from '../service.ts'
import { ask, type Operation, type Peer, type PeerLoad, type PeerRequest, versionOf } from './peer.ts'
import { listens, type Redis, redisAvailable, startRedis } from './redis.ts'

const start_ms_max = 5_000
const webdis_binary = Bun.which('webdis', { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/bin` })

/** A window that expires, counted and read in one step. */
const fixed_window = `local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {count, redis.call('PTTL', KEYS[1])}`
const window_ms = 86_400_000

type Loads = Partial<Record<Operation, (redis: Redis) => Promise<Omit<PeerLoad, 'url'>>>>

/** The operations as they would be built on Redis. */
const whole: Loads = {
  'kv-get': async (redis) => {
    const all = Array.from({ length: keys_count }, (_, n) => redis.send('SET', keyOf(n), textOfValue(n)))
    await Promise.all(all)
    return { requests: each((n) => get(`/GET/${keyOf(n)}`)) }
  },
  'kv-put': async (redis) => ({
    requests: each((n) => put(`/SET/${keyOf(n)}`, textOfValue(n))),
    kept: () => redis.calls('set'),
  }),
  'rate-check': async (redis) => {
    const sha = String(await redis.send('SCRIPT', 'LOAD', fixed_window))
    return {
      requests: each((n) => get(`/EVALSHA/${sha}/1/host-${n}/1/${window_ms}`)),
      kept: () => redis.calls('evalsha'),
    }
  },
  hook: async (redis) => ({
    requests: [put('/XADD/inbox/MAXLEN/~/1000/*/body', hook.request(0, '').body!)],
    kept: () => redis.calls('xadd'),
  }),
}

/** The one command that comes closest, though a counter then never ends and a list grows for ever. */
const bare: Loads = {
  'rate-check': async (redis) => ({
    requests: each((n) => get(`/INCR/host-${n}`)),
    kept: () => redis.calls('incr'),
  }),
  hook: async (redis) => ({
    requests: [put('/LPUSH/inbox', hook.request(0, '').body!)],
    kept: () => redis.calls('lpush'),
  }),
}

export const webdis = webdisWith(
  'webdis + Redis',
  'one command of Redis each, `appendfsync always`, no keys checked: `GET`, `SET`, a script of `INCRBY` and `PEXPIRE`, `XADD … MAXLEN ~ 1000`',
  whole,
)

export const webdis_bare = webdisWith(
  'webdis + Redis, bare commands',
  'the same with `INCR`, whose window never ends, and `LPUSH`, whose list has no bound',
  bare,
)

function webdisWith(name: string, how: string, loads: Loads): Peer {
  return {
    ...{ name, how, slow_disk: true },
    async available() {
      if (!webdis_binary) return { missing: 'webdis is not installed' }
      const redis = await redisAvailable()
      if ('missing' in redis) return redis
      const version = versionOf(['dpkg-query', '-W', '-f=${Version}\n', 'webdis'], /^(\d[\d.]*)/)
      return { version: `webdis ${version ?? '(version unknown)'}, Redis ${redis.version}` }
    },
    async start({ flush_delay_ms }) {
      const redis = await startRedis(flush_delay_ms)
      const gateway = await startWebdis(redis.port)
      return {
        pids: [redis.pid, gateway.pid],
        async load(operation) {
          const made = await loads[operation]?.(redis)
          if (!made) return null
          const answer = await ask(gateway.url, made.requests[0]!)
          if (/\[false|null/.test(answer)) throw new Error(`${name}, ${operation}: Redis answered ${answer}`)
          return { ...made, url: gateway.url }
        },
        async stop() {
          await gateway.stop()
          await redis.stop()
        },
      }
    },
  }
}

async function startWebdis(redis_port: number): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const { folder, remove } = temporaryFolder()
  const port = freePort()
  const config = join(folder, 'webdis.json')
  const settings = {
    ...{ redis_host: '127.0.0.1', redis_port, redis_auth: null, http_host: '127.0.0.1', http_port: port },
    ...{ threads: 1, daemonize: false, database: 0, verbosity: 0, logfile: join(folder, 'webdis.log') },
  }
  writeFileSync(config, JSON.stringify(settings))
  const child = start([webdis_binary!, config], { core: cores.server, cwd: folder })
  for (const began = performance.now(); !(await listens(port)); ) {
    if (child.exitCode !== null || performance.now() - began > start_ms_max)
      throw new Error('webdis did not start')
    await Bun.sleep(10)
  }
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid,
    async stop() {
      await end(child)
      remove()
    },
  }
}

function each(make: (n: string) => PeerRequest): PeerRequest[] {
  return Array.from({ length: keys_count }, (_, n) => make(String(n).padStart(4, '0')))
}

function keyOf(n: number | string): string {
  return `bench:key-${String(n).padStart(4, '0')}`
}

/** The value alone, as the service keeps it. */
function textOfValue(n: number | string): string {
  return JSON.stringify((JSON.parse(bodyOfPut(Number(n))) as { value: object }).value)
}

function get(path: string): PeerRequest {
  return { method: 'GET', path, headers: {} }
}

function put(path: string, body: string): PeerRequest {
  return { method: 'PUT', path, body, headers: {} }
}
