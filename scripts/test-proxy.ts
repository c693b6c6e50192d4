// `npm run test:proxy`: three nodes with the environment of deploy/compose/postgres.yml on a PostgreSQL of the tests, behind
// Caddy with deploy/compose/Caddyfile. Under load one node is stopped in order, and another killed. Needs Caddy 2.7 or newer.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { YAML } from 'bun'
import { Waystation } from '../sdk/src/index.ts'
import { freePort } from '../test/support/ports.ts'
import {
  dropPostgresDatabase,
  newPostgresDatabase,
  postgres_variable,
  startSharedCluster,
} from '../test/support/postgres.ts'
import { needVersion } from './needed.ts'
import { newKeys } from './new-keys.ts'

needVersion(
  'npm run test:proxy',
  ['caddy', 'version'],
  '2.7.0',
  'get Caddy 2.7 or newer, https://caddyserver.com/docs/install',
)

const root = join(import.meta.dir, '..')
const compose = 'deploy/compose/postgres.yml'
const writers = 4
const writes_of_each = 150
const ready_ms_max = 60_000

interface Composed {
  services: Record<string, { environment: Record<string, string> }>
}

const { services } = YAML.parse(await Bun.file(join(root, compose)).text()) as Composed
const scratch = mkdtempSync(join(tmpdir(), 'waystation-proxy-'))
const running: Bun.Subprocess[] = []
const cluster = await startSharedCluster()
process.env[postgres_variable] = cluster.base_url
const database_url = await newPostgresDatabase()
try {
  const nodes = ['node1', 'node2', 'node3'].map((name) => ({ name, port: freePort() }))
  const started = nodes.map(({ name, port }) => startNode(name, port))
  for (const { port } of nodes) await ready(`http://127.0.0.1:${port}`)
  const url = `http://127.0.0.1:${freePort()}`
  startProxy(url, nodes.map(({ port }) => `127.0.0.1:${port}`).join(' '))
  await ready(url)
  const { api_key } = await newKeys(url, 'acme')
  // No retries: what the proxy cannot hide shall be seen.
  const agent = new Waystation({ url, key: api_key, retries: 0 })
  await loaded(agent, 'all-nodes', async () => {})
  const lost = await loaded(agent, 'sigterm', async () => {
    started[0]!.kill('SIGTERM')
    await started[0]!.exited
  })
  if (lost > 0) throw new Error('requests failed while a node stopped in order')
  await loaded(agent, 'sigkill', async () => void started[1]!.kill('SIGKILL'))
} finally {
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(running.map((child) => child.exited))
  await dropPostgresDatabase(database_url)
  await cluster.stop()
  rmSync(scratch, { recursive: true, force: true })
}

/** Writes keys while `event` happens, then reads those that were acknowledged. Returns how many writes failed. */
async function loaded(agent: Waystation, namespace: string, event: () => Promise<void>): Promise<number> {
  const acknowledged: string[] = []
  const failures: string[] = []
  const write = async (writer: number) => {
    for (let i = 0; i < writes_of_each; i++) {
      const key = `${writer}-${i}`
      try {
        await agent.kv.put(namespace, key, key)
        acknowledged.push(key)
      } catch (error) {
        failures.push(String((error as Error).message))
      }
      if (writer === 0 && i === 30) happening = event()
    }
  }
  let happening = Promise.resolve()
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
  await happening
  for (const key of acknowledged) {
    const { value } = await agent.kv.get(namespace, key)
    if (value !== key) throw new Error(`${namespace}: ${key} was acknowledged and is lost`)
  }
  console.log(
    `ok  ${namespace}: ${acknowledged.length} writes acknowledged and read, ${failures.length} failed`,
  )
  for (const failure of new Set(failures)) console.log(`    ${failure}`)
  return failures.length
}

/** With the environment that Compose gives it, but for names and addresses that only its network has. */
function startNode(name: string, port: number): Bun.Subprocess {
  const composed = Object.entries(services[name]!.environment).map(([setting, value]) => [
    setting,
    value.replace(/\$\{\w+:[-?]([^}]*)\}/g, '$1'),
  ])
  const ours = { DATABASE_URL: database_url, SECRET_KEY: 'k'.repeat(32), CRON_SECRET: 'c'.repeat(32) }
  const here = {
    HOST: '127.0.0.1',
    PORT: String(port),
    TRUST_PROXY: '127.0.0.1',
    DATA_DIR: join(scratch, name),
  }
  return start([process.execPath, 'src/main.ts'], { ...Object.fromEntries(composed), ...ours, ...here })
}

function startProxy(url: string, nodes: string): void {
  const config = ['--adapter', 'caddyfile', '--config', 'deploy/compose/Caddyfile']
  start(['caddy', 'run', ...config], { SITE_ADDRESS: url, NODES: nodes, HOME: scratch })
}

function start(command: string[], env: Readonly<Record<string, string>>): Bun.Subprocess {
  const child = Bun.spawn(command, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', LOG_LEVEL: 'error', ...env },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  running.push(child)
  return child
}

async function ready(url: string): Promise<void> {
  const until = performance.now() + ready_ms_max
  while (performance.now() < until) {
    if ((await fetch(`${url}/readyz`).catch(() => null))?.ok) return
    await Bun.sleep(100)
  }
  throw new Error(`${url} is not ready`)
}
