// 64 writers on two nodes of one PostgreSQL, all on the same few keys, counters, logs and inboxes. `npm run shared-keys`
// does the same for 30 minutes.

import { expect, test } from 'bun:test'
import { sequenceOf } from '../src/base/ids.ts'
import { isRetryable } from '../src/db/errors.ts'
import { recount } from '../src/db/recount.ts'
import { recounted_tables } from '../src/features.ts'
import { TestClock } from './support/clock.ts'
import { startCrashCluster } from './support/crash-postgres.ts'
import { onPostgres } from './support/databases.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { randomFrom } from './support/random.ts'
import { type Answer, TestService, type TestTenant } from './support/service.ts'

const minutes = Number(process.env.SHARED_KEYS_MINUTES ?? 0)
const writers = 64
/** Of each writer, in the short form. */
const writes_count = 40
const keys_count = 5
const environment = { SECRET_KEY: 'one secret key for every node' }

/** How many writes of a kind were acknowledged, and of how many more nobody knows. */
interface Tally {
  done: number
  unknown: number
}

interface Shared {
  nodes: TestService[]
  tenants: (TestTenant & { inbox_id: string; token: string })[]
  /** By tenant and kind. */
  tallies: Map<string, Tally>
  /** Answers that no write may get. */
  faults: string[]
  entries: Set<string>
  /** Writes that a deadlock or a conflict has ended for their caller. */
  deadlocks: number
  /** The database was stopped. */
  may_be_away: boolean
}

async function open(database_url: string): Promise<Shared> {
  const clock = new TestClock()
  const nodes = []
  for (let i = 0; i < 2; i++) {
    const node = new TestService(environment)
    node.clock = clock
    nodes.push(await node.start(database_url))
  }
  const tenants = []
  for (let i = 0; i < 2; i++) {
    const tenant = await nodes[0]!.signUp('pro')
    const { body } = await nodes[0]!.ask('POST', '/api/webhook', { key: tenant.api_key, body: {} })
    tenants.push({ ...tenant, inbox_id: body.data.id, token: body.data.token })
  }
  const shared: Shared = {
    ...{ nodes, tenants, tallies: new Map(), faults: [], entries: new Set() },
    ...{ deadlocks: 0, may_be_away: false },
  }
  for (const node of nodes) countDeadlocks(node, shared)
  return shared
}

function countDeadlocks({ app: { db } }: TestService, shared: Shared): void {
  const write = db.write.bind(db) as (...given: unknown[]) => Promise<never>
  db.write = (...given: unknown[]) =>
    write(...given).catch((error) => {
      if (isRetryable(error)) shared.deadlocks += 1
      throw error
    })
}

interface Writer {
  shared: Shared
  node: TestService
  tenant: Shared['tenants'][number]
  random: (below: number) => number
}

function ask({ node, tenant }: Writer, method: string, path: string, body?: unknown): Promise<Answer> {
  return node.ask(method, path, { key: tenant.api_key, ...(body === undefined ? {} : { body }) })
}

/** Counts the answer. True when it is one of these. */
function judged(
  { shared, tenant }: Writer,
  kind: string,
  answer: Answer,
  done: number[],
  refused: number[] = [],
) {
  const name = `${tenant.tenant_id} ${kind}`
  const tally = shared.tallies.get(name) ?? { done: 0, unknown: 0 }
  shared.tallies.set(name, tally)
  if (done.includes(answer.status)) tally.done += 1
  else if (answer.status === 503) {
    // A busy machine refuses what waits too long, and does nothing of it.
    if (answer.body.error.code === 'OUTCOME_UNKNOWN') tally.unknown += 1
  } else if (!refused.includes(answer.status)) shared.faults.push(`${kind}: ${answer.status} ${answer.text}`)
  return done.includes(answer.status)
}

const WRITES: ((writer: Writer) => Promise<void>)[] = [
  async function put(writer) {
    const { random } = writer
    const answer = await ask(writer, 'PUT', `/v1/kv/put/k${random(keys_count)}`, { value: random(1_000) })
    judged(writer, 'put', answer, [200])
  },
  async function addOne(writer) {
    const path = `/v1/kv/sum/k${writer.random(keys_count)}`
    const { status, body } = await ask(writer, 'GET', path)
    if (status !== 200 && status !== 404) return
    const [value, cas_version] = status === 200 ? [body.value + 1, body.version] : [1, 0]
    judged(writer, 'sum', await ask(writer, 'PUT', path, { value, cas_version }), [200], [409])
  },
  async function makeAndRemove(writer) {
    const path = `/v1/kv/lock/k${writer.random(keys_count)}`
    const made = await ask(writer, 'PUT', path, { value: 1, cas_version: 0 })
    if (judged(writer, 'make', made, [200], [409])) {
      judged(writer, 'remove', await ask(writer, 'DELETE', path), [204], [404])
    }
  },
  async function append(writer) {
    const answer = await ask(writer, 'POST', '/v1/audit', { action: 'a' })
    if (judged(writer, 'entry', answer, [201])) writer.shared.entries.add(answer.body.id)
  },
  async function check(writer) {
    const asked = { key: `c${writer.random(2)}`, limit: 1_000_000_000, windowSeconds: 31_536_000 }
    judged(writer, 'hit', await ask(writer, 'POST', '/api/rate-limit/check', asked), [200])
  },
  async function send(writer) {
    const { node, tenant } = writer
    judged(writer, 'message', await node.ask('POST', `/hook/${tenant.token}`, { body: 'x' }), [200])
  },
]

/** Each writer goes on until `ended`, which it asks with the number of writes that it has made. */
async function write(shared: Shared, ended: (count: number) => boolean): Promise<void> {
  await Promise.all(
    Array.from({ length: writers }, async (_, i) => {
      const random = randomFrom(i + 1)
      for (let count = 0; !ended(count); count++) {
        const node = shared.nodes[(i + count) % shared.nodes.length]!
        const tenant = shared.tenants[random(shared.tenants.length)]!
        await WRITES[random(WRITES.length)]!({ shared, node, tenant, random })
        node.clock.advance(1)
      }
    }),
  )
}

/** Asserts that the kept writes are the acknowledged ones, and at most those of unknown outcome besides. */
async function expectKept(shared: Shared): Promise<void> {
  expect(shared.faults.slice(0, 5)).toEqual([])
  for (const tenant of shared.tenants) {
    const kept = await keptOf(shared, tenant)
    for (const [kind, count] of Object.entries(kept)) {
      const { done, unknown } = shared.tallies.get(`${tenant.tenant_id} ${kind}`) ?? { done: 0, unknown: 0 }
      expect([kind, count >= done && count <= done + unknown, count, done, unknown]).toEqual([
        ...[kind, true, count, done, unknown],
      ])
    }
    const [node] = shared.nodes
    for (const { app } of shared.nodes) await app.db.maintain()
    const unknown = [...shared.tallies.values()].some((tally) => tally.unknown > 0)
    const missing = await recount(node!.app.db, recounted_tables, tenant.tenant_id)
    if (!unknown && !shared.may_be_away) expect(missing).toBe(0)
  }
}

/** How many writes of each kind the rows of a tenant show. Asserts that the log has no gaps and the quota counts the keys. */
async function keptOf(shared: Shared, tenant: Shared['tenants'][number]): Promise<Record<string, number>> {
  const [node] = shared.nodes
  const get = async (path: string, key = tenant.api_key) => (await node!.ask('GET', path, { key })).body
  const keys = async (namespace: string) => (await get(`/v1/kv/${namespace}?limit=200`)).items
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
  const [puts, sums, locks] = await Promise.all([keys('put'), keys('sum'), keys('lock')])
  const values = await Promise.all(
    sums.map(async ({ key }: { key: string }) => (await get(`/v1/kv/sum/${key}`)).value),
  )
  const counters = await Promise.all(['c0', 'c1'].map((key) => get(`/api/rate-limit/${key}`)))
  const { quota } = await get('/v1/tenants/me', tenant.admin_key)
  expect(quota.kv_keys.used).toBe(puts.length + sums.length + locks.length + counters.length)
  const { messages } = (await get(`/api/webhook/${tenant.inbox_id}`)).data
  const entries = []
  for (let cursor = ''; ; ) {
    const page = await get(`/v1/audit?limit=200&action=a${cursor}`)
    entries.push(...page.items)
    if (page.next_cursor === null) break
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
  const newest = entries[0].seq
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => newest - i))
  for (const { id } of entries) shared.entries.delete(id)
  return {
    put: sum(puts.map(({ version }: { version: number }) => version)),
    sum: sum(values),
    entry: entries.length,
    hit: sum(counters.map(({ data }) => data.count)),
    message: sequenceOf('msg', messages[0].id)!,
  }
}

onPostgres('64 writers on two nodes', () => {
  const form = minutes > 0 ? `for ${minutes} minutes` : `${writes_count} writes each`
  test(
    `on shared keys, ${form}: no deadlock reaches a caller, and sums are exact`,
    async () => {
      const database_url = await newPostgresDatabase()
      const shared = await open(database_url)
      const until = performance.now() + minutes * 60_000
      await write(shared, (count) => (minutes > 0 ? performance.now() > until : count >= writes_count))
      await expectKept(shared)
      const done = [...shared.tallies.values()].reduce((total, tally) => total + tally.done, 0)
      expect([shared.deadlocks, done > (writers * writes_count) / 2, [...shared.entries]]).toEqual([
        0,
        true,
        [],
      ])
      for (const node of shared.nodes) await node.stop()
      await dropPostgresDatabase(database_url)
    },
    (minutes + 5) * 60_000,
  )

  test('a database that is killed in the middle, twice, loses nothing that was acknowledged', async () => {
    const cluster = await startCrashCluster()
    const shared = await open(cluster.url)
    try {
      shared.may_be_away = true
      let ended = false
      const writing = write(shared, () => ended)
      const done = () => [...shared.tallies.values()].reduce((total, tally) => total + tally.done, 0)
      for (let outage = 1; outage <= 2; outage++) {
        const before = done()
        while (done() < before + 300) await Bun.sleep(5)
        await cluster.stopImmediately()
        await cluster.start()
      }
      const before = done()
      while (done() < before + 300) await Bun.sleep(5)
      ended = true
      await writing
      await expectKept(shared)
      expect([...shared.entries]).toEqual([])
    } finally {
      for (const node of shared.nodes) await node.stop()
      await cluster.remove()
    }
  }, 300_000)
})
