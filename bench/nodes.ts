// `bun bench/nodes.ts`: how soon a node knows what another one changed. Two nodes on one PostgreSQL, started for this.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { administer, startCluster } from '../test/support/postgres.ts'
import { command, temporaryFolder, undoLater, wholeNumber } from './processes.ts'
import { type Service, startService } from './service.ts'
import { table } from './table.ts'

const usage = `Usage: bun bench/nodes.ts [options]

How long after the answer a revoked key is refused by the other node, and a request that waits there is answered.

  --samples <n>     of each figure (default: 300)
  --polled          nodes that do not hear each other, as behind a pooler: they find changes by looking
  --root <folder>   the service of another checkout
  --help            this text`

/** A key must be remembered, and a wait must have begun, before the other node changes something. */
const settle_ms = 30

await command(async () => {
  const { values } = parseArgs({
    options: {
      samples: { type: 'string', default: '300' },
      polled: { type: 'boolean', default: false },
      root: { type: 'string', default: join(import.meta.dir, '..') },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const samples = wholeNumber(values.samples)
  const cluster = await startCluster()
  undoLater(() => void cluster.stop())
  const { folder, remove } = temporaryFolder()
  for (const name of ['nodes', 'elsewhere']) await administer(cluster.base_url, `create database ${name}`)
  const more = values.polled ? { DATABASE_LISTEN_URL: `${cluster.base_url}/elsewhere` } : {}
  // One folder, so that both have the same secrets.
  const here = await startService(values.root, folder, `${cluster.base_url}/nodes`, more)
  const there = await startService(values.root, folder, `${cluster.base_url}/nodes`, more)
  const pair = new Pair(here, there, await signUp(here))
  const rows = [
    ['a key that was rotated is refused', await collect(samples, () => pair.rotation())],
    ['a wait for a checkpoint is answered', await collect(samples, () => pair.decision())],
    ['a wait for a message is answered', await collect(samples, () => pair.message())],
  ] as const
  console.log(
    `ms after the answer of the other node, ${samples} samples, two nodes${values.polled ? ', polled' : ''}\n`,
  )
  console.log(
    table(
      ['', 'p50', 'p95', 'p99', 'most'],
      rows.map(([what, values]) => [
        what,
        ...[50, 95, 99, 100].map((percent) => percentile(values, percent)),
      ]),
    ),
  )
  await Promise.all([here.stop(), there.stop()])
  await cluster.stop()
  remove()
})

/** Two nodes: a change on `here` is awaited on `there`. */
class Pair {
  constructor(
    private readonly here: Service,
    private readonly there: Service,
    private readonly tenant: { admin_key: string; api_key: string },
  ) {}

  /** From the answer to a rotation until the old key is refused by the other node. */
  async rotation(): Promise<number> {
    const { admin_key, api_key } = this.tenant
    const status = async () => (await send(this.there, 'GET', '/v1/kv/a', api_key)).status
    if ((await status()) !== 200) throw new Error('a valid key was refused')
    const rotated = await send<{ api_key: string }>(
      this.here,
      'POST',
      '/v1/agents/bench/rotate-key',
      admin_key,
      {},
    )
    const answered_at = performance.now()
    while ((await status()) === 200);
    this.tenant.api_key = rotated.body.api_key
    return performance.now() - answered_at
  }

  /** From the answer to a decision until the answer to who waits for it at the other node. */
  async decision(): Promise<number> {
    const { admin_key, api_key } = this.tenant
    const body = { title: 'May I?', callback_url: null }
    const { id } = (await send<{ id: string }>(this.here, 'POST', '/v1/checkpoints', api_key, body)).body
    return this.#waited(`/v1/checkpoints/${id}?wait=55`, () =>
      send(this.here, 'POST', `/v1/checkpoints/${id}/approve`, admin_key),
    )
  }

  async message(): Promise<number> {
    const { api_key } = this.tenant
    const made = await send<{ data: { id: string; token: string } }>(
      this.here,
      'POST',
      '/api/webhook',
      api_key,
      {},
    )
    const { id, token } = made.body.data
    const took = await this.#waited(`/api/webhook/${id}/messages?wait=55`, () =>
      send(this.here, 'POST', `/hook/${token}`, null, { n: 1 }),
    )
    await send(this.here, 'DELETE', `/api/webhook/${id}`, api_key)
    return took
  }

  /** 0 when the wait is answered before the answer to the change has arrived. */
  async #waited(path: string, change: () => Promise<unknown>): Promise<number> {
    const waiting = send(this.there, 'GET', path, this.tenant.api_key).then(() => performance.now())
    await Bun.sleep(settle_ms + Math.random() * settle_ms) // not in step with what looks at intervals
    await change()
    const answered_at = performance.now()
    return Math.max(0, (await waiting) - answered_at)
  }
}

async function collect(samples: number, take: () => Promise<number>): Promise<number[]> {
  const values: number[] = []
  for (let i = 0; i < samples; i++) values.push(await take())
  return values.toSorted((a, b) => a - b)
}

function percentile(sorted: number[], percent: number): string {
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)]!.toFixed(1)
}

async function signUp(service: Service) {
  const tenant = await send<{ admin_key: string }>(service, 'POST', '/v1/tenants', null, {
    ...{ name: 'bench-nodes', owner_email: 'bench@example.com', plan: 'unlimited' },
  })
  const { admin_key } = tenant.body
  const agent = await send<{ api_key: string }>(service, 'POST', '/v1/agents', admin_key, { name: 'bench' })
  return { admin_key, api_key: agent.body.api_key }
}

async function send<T>(service: Service, method: string, path: string, key: string | null, body?: object) {
  const answer = await fetch(service.url + path, {
    method,
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await answer.text()
  if (answer.status >= 400 && answer.status !== 401) {
    throw new Error(`${method} ${path} answered ${answer.status}: ${text}`)
  }
  return { status: answer.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
}
