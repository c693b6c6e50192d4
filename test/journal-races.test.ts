// Racing writers, nodes that are killed, and readers that follow: every change is in the journal once, in an order in
// which no reader ever misses one. `npm run journal-races` does it with 20,000 changes on each engine.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { default_plans, event_types } from '../src/features.ts'
import { forEachDatabase } from './support/databases.ts'
import { faultsOf, type Race } from './support/journal-judge.ts'
import { JournalLoad, type RacingTenant } from './support/journal-load.ts'
import { answered } from './support/patience.ts'
import { randomFrom } from './support/random.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'

const changes_count = Number(process.env.JOURNAL_CHANGES ?? 600)
const kills = Number(process.env.JOURNAL_KILLS ?? 3)
const seed = Number(process.env.JOURNAL_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
/** Kinds of changes that have events by now. */
const changed_types = ['audit.appended', 'dlq.created', 'schedule.created'].filter((type) =>
  event_types.has(type),
)
const writers = 24
const test_ms_max = 240_000 + changes_count * 30

class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'waystation-journal-'))
  readonly #nodes: ServerProcess[] = []
  readonly #environment: Record<string, string>

  constructor(
    database_url: string,
    private readonly count: number,
  ) {
    const { enterprise } = default_plans
    const plans = { ...default_plans, free: enterprise, pro: enterprise }
    writeFileSync(join(this.folder, 'plans.json'), JSON.stringify(plans))
    this.#environment = {
      DATABASE_URL: database_url,
      DATA_DIR: this.folder,
      PLANS_FILE: join(this.folder, 'plans.json'),
      SECRET_KEY: 'one secret key for every node',
      CALLBACK_ALLOW: '127.0.0.1',
    }
  }

  async start(): Promise<void> {
    for (let n = 0; n < this.count; n++) this.#nodes.push(await startServer(this.#environment))
  }

  url(n: number): string {
    return this.#nodes[n % this.#nodes.length]!.url
  }

  async replace(n: number): Promise<void> {
    const at = n % this.#nodes.length
    await this.#nodes[at]!.kill()
    this.#nodes[at] = await startServer(this.#environment)
  }

  async stop(): Promise<void> {
    for (const node of this.#nodes) await node.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async newTenant(): Promise<RacingTenant> {
    const post = async (path: string, body: object, key?: string) => {
      const send = () =>
        fetch(`${this.url(0)}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
          body: JSON.stringify(body),
        })
      const response = await answered(send)
      expect(response.status).toBe(201)
      return (await response.json()) as { admin_key: string; api_key: string }
    }
    const { admin_key } = await post('/v1/tenants', { name: 'racers', owner_email: 'owner@example.com' })
    return { admin_key, api_key: (await post('/v1/agents', { name: 'racer' }, admin_key)).api_key }
  }
}

forEachDatabase('The journal under racing writers', (databases) => {
  const count = databases.engine === 'sqlite' ? 1 : 3
  let cluster: Cluster
  beforeAll(async () => {
    cluster = new Cluster(await databases.newUrl(), count)
    await cluster.start()
  }, 300_000)
  afterAll(() => cluster.stop())

  test(
    `has each of ${changes_count} changes once, without gaps, and no reader misses one, though nodes are killed ${kills} times`,
    async () => {
      const random = randomFrom(seed)
      const load = new JournalLoad(cluster, await cluster.newTenant(), changed_types)
      for (let n = 0; n < 2; n++) for (const way of ['pages', 'waits', 'stream'] as const) load.follow(way, n)
      const writing = load.write(writers, changes_count)
      for (let kill = 1; kill <= kills; kill++) {
        const wanted = Math.floor((changes_count * kill) / (kills + 1))
        while (load.acknowledged < wanted) await Bun.sleep(10)
        await cluster.replace(random(count))
      }
      await writing
      await load.end()
      const race: Race = {
        changes: load.changes,
        kept: await load.kept(),
        journal: await load.journal(),
        readers: load.readers,
      }
      expect([seed, load.refused.slice(0, 5)]).toEqual([seed, []])
      expect([seed, faultsOf(race)]).toEqual([seed, []])
      expect(load.acknowledged).toBeGreaterThanOrEqual(changes_count)
      const lost = load.changes.length - load.acknowledged
      console.log(`${databases.engine}: ${race.journal.length} events, ${lost} answers lost, seed ${seed}`)
    },
    test_ms_max,
  )
})
