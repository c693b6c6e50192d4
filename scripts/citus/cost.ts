// CPU time of the databases per call of the API: one PostgreSQL, and a coordinator with two workers, under the same load.

import { Waystation } from '../../sdk/src/index.ts'
import { startServer } from '../../test/support/server-process.ts'
import { newKeys } from '../new-keys.ts'
import { newCitusDatabase, type PostgresServer, tell, withServers } from './servers.ts'

const calls = 2_000
const at_once = 8

interface Caller {
  url: string
  api_key: string
  hook: string
}

type Call = (caller: Caller, i: number) => Promise<Response>

const json = (caller: Caller, method: string, path: string, body?: object) =>
  fetch(`${caller.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${caller.api_key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })

const operations: Record<string, Call> = {
  // First: it makes what the next one reads.
  'kv put': (caller, i) => json(caller, 'PUT', `/v1/kv/state/key-${i % 100}`, { value: i }),
  'kv get': (caller, i) => json(caller, 'GET', `/v1/kv/state/key-${i % 100}`),
  'audit append': (caller, i) => json(caller, 'POST', '/v1/audit', { action: 'order.paid', metadata: { i } }),
  'rate check': (caller, i) =>
    json(caller, 'POST', '/api/rate-limit/check', {
      key: `user-${i % 100}`,
      limit: 1_000_000,
      windowSeconds: 60,
    }),
  hook: (caller, i) => fetch(caller.hook, { method: 'POST', body: `{"i":${i}}` }),
  'schedule created': (caller, i) =>
    json(caller, 'POST', '/v1/schedules', {
      fire_at: '2090-01-01T00:00:00Z',
      callback_url: 'http://127.0.0.1:9/x',
      callback_payload: { i },
    }),
}

/** Prints a table: microseconds of the databases' CPU per call, and how many times the distributed one costs. */
export async function measureCost(names: readonly string[]): Promise<void> {
  const one = await withServers(['single'], { citus: false }, async (servers) => {
    await tell(`${servers[0]!.base_url}/postgres`, 'create database waystation')
    return costs(servers, `${servers[0]!.base_url}/waystation`)
  })
  const several = await withServers(names, { citus: true }, async (servers) => {
    const url = await newCitusDatabase(servers, 'waystation')
    return costs(servers, url, true)
  })
  console.log('| call | one PostgreSQL, µs | Citus, µs | times |\n|---|---|---|---|')
  for (const name of Object.keys(operations)) {
    const [single, distributed] = [one[name]!, several[name]!]
    console.log(
      `| ${name} | ${single.toFixed(0)} | ${distributed.toFixed(0)} | ${(distributed / single).toFixed(1)} |`,
    )
  }
}

async function costs(
  servers: readonly PostgresServer[],
  database_url: string,
  distributed = false,
): Promise<Record<string, number>> {
  const environment = {
    DATABASE_URL: database_url,
    SECRET_KEY: 'k'.repeat(32),
    TICK: 'external',
    ALLOW_PRIVATE_URLS: '1',
  }
  if (distributed) {
    // The first start makes the tables.
    await (await startServer(environment)).stop()
    const command = [process.execPath, 'src/admin.ts', 'distribute']
    const done = Bun.spawnSync(command, { env: { ...process.env, DATABASE_URL: database_url } })
    if (done.exitCode !== 0) throw new Error(done.stderr.toString())
  }
  const server = await startServer(environment)
  try {
    const caller = await newCaller(server.url)
    const found: Record<string, number> = {}
    for (const [name, call] of Object.entries(operations)) {
      await drive(caller, call, calls / 4)
      const before = sum(servers)
      await drive(caller, call, calls)
      found[name] = ((sum(servers) - before) / calls) * 1e6
    }
    return found
  } finally {
    await server.stop()
  }
}

function sum(servers: readonly PostgresServer[]): number {
  return servers.reduce((seconds, server) => seconds + server.cpuSeconds(), 0)
}

async function drive(caller: Caller, call: Call, count: number): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) {
      const response = await call(caller, next++)
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
      await response.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: at_once }, worker))
}

async function newCaller(url: string): Promise<Caller> {
  const { api_key } = await newKeys(url, 'Cost', 'unlimited')
  const inbox = await new Waystation({ url, key: api_key }).inboxes.create({ label: 'deliveries', ttl: 3600 })
  return { url, api_key, hook: `${url}/hook/${inbox.token}` }
}
