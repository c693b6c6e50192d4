// Several nodes on one PostgreSQL hear of each other's changes at once. The clock stands still and no request looks by
// itself unless a test says otherwise, so nothing but a signal can be the cause.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { groupOf, signalOf, topicOf } from '../src/base/signal-text.ts'
import * as tenants from '../src/tenants/service.ts'
import { TestClock } from './support/clock.ts'
import { type Wire, wireTo } from './support/crash-postgres.ts'
import { onPostgres } from './support/databases.ts'
import { follow } from './support/event-streams.ts'
import { inTime, until } from './support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { startReceiver } from './support/receiver.ts'
import { type ServerProcess, startServer } from './support/server-process.ts'
import { cron_secret, served, TestService, type TestTenant } from './support/service.ts'

const secret_key = 'the key that every node has'
/** A node does not know what others wait for until this long after it began to hear them. */
const learnt_ms = 15_000

class Cluster {
  readonly clock = new TestClock()
  readonly nodes: TestService[] = []
  tenant!: TestTenant

  private constructor(
    readonly database_url: string,
    readonly sql: SQL,
  ) {}

  static async start(count: number): Promise<Cluster> {
    const database_url = await newPostgresDatabase()
    const cluster = new Cluster(database_url, new SQL({ url: database_url, max: 1 }))
    for (let i = 0; i < count; i++) await cluster.startNode()
    cluster.clock.advance(learnt_ms)
    cluster.tenant = await cluster.nodes[0]!.signUp()
    return cluster
  }

  async startNode(environment: Record<string, string> = {}, looks_again = false): Promise<TestService> {
    const node = new TestService({ SECRET_KEY: secret_key, ...environment })
    node.clock = this.clock
    node.looks_again = looks_again
    this.nodes.push(node)
    await node.start(this.database_url)
    // On a busy machine it may hear itself after the start alone.
    if (!environment.DATABASE_LISTEN_URL) await until(() => hears(node))
    return node
  }

  /** Ends the connections on which nodes listen. */
  async terminate(): Promise<void> {
    await this.sql`select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'waystation listen' and datname = current_database()`
  }

  async listening(): Promise<number> {
    const [row] = await this.sql`select count(*)::int as count from pg_stat_activity
                                  where application_name = 'waystation listen' and datname = current_database()`
    return row.count
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop()
    await this.sql.close()
    await dropPostgresDatabase(this.database_url)
  }
}

const hears = async (node: TestService) =>
  (await node.ask('GET', '/readyz?verbose')).body.other_nodes === 'heard'

const topicOfOne = ({ tenant_id }: TestTenant, id: string) => topicOf(`${tenant_id}/${id}`)

const groups_used = new Set<number>()

/** Of a group that no other topic here has: a change of such a one would make a wait look once more. */
async function newCheckpoint(node: TestService, tenant: TestTenant): Promise<string> {
  for (;;) {
    const body = { title: 'May I?', callback_url: null }
    const made = await served(() => node.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body }))
    expect(made.status).toBe(201)
    const group = groupOf(topicOfOne(tenant, made.body.id))
    if (groups_used.has(group)) continue
    groups_used.add(group)
    return made.body.id
  }
}

const approve = (node: TestService, { admin_key }: TestTenant, id: string) =>
  served(() => node.ask('POST', `/v1/checkpoints/${id}/approve`, { key: admin_key }))

/** A request that waits on this node, once it has looked. */
async function waiting(node: TestService, path: string, key: string, statement: string, looks_max: number) {
  let looks = 0
  node.app.db.onStatement((name) => {
    if (name === statement) looks += 1
  })
  const answer = node.ask('GET', path, { key })
  await until(() => looks > 0)
  await node.ask('GET', '/readyz') // as long as a look takes
  return {
    async answer() {
      const { body } = await answer
      node.app.db.onStatement(null)
      expect(looks).toBeLessThanOrEqual(looks_max)
      return body
    },
  }
}

/** A request that waits looks at the beginning, and when it is notified. */
const notified_looks = 2

const waitFor = (node: TestService, { api_key }: TestTenant, id: string, looks_max = notified_looks) =>
  waiting(node, `/v1/checkpoints/${id}?wait=55`, api_key, 'checkpoints.find', looks_max)

onPostgres('Two nodes that hear each other', () => {
  let cluster: Cluster
  let here: TestService
  let there: TestService
  let tenant: TestTenant
  beforeAll(async () => {
    cluster = await Cluster.start(2)
    ;[here, there] = cluster.nodes as [TestService, TestService]
    tenant = cluster.tenant
  })
  afterAll(() => cluster.stop())

  test('/readyz?verbose says so, and each has one connection that listens', async () => {
    expect([await hears(here), await hears(there)]).toEqual([true, true])
    expect(await cluster.listening()).toBe(2)
  })

  test('a wait for a checkpoint ends with the decision on the other node, after two looks', async () => {
    const id = await newCheckpoint(here, tenant)
    const wait = await waitFor(there, tenant, id)
    await approve(here, tenant, id)
    expect((await wait.answer()).status).toBe('approved')
  })

  test('a wait for a message ends with its arrival at the other node, after two looks', async () => {
    const inbox = (await here.ask('POST', '/api/webhook', { key: tenant.api_key, body: {} })).body.data
    groups_used.add(groupOf(topicOfOne(tenant, inbox.id)))
    const path = `/api/webhook/${inbox.id}/messages?wait=55`
    const wait = await waiting(there, path, tenant.api_key, 'inbox.page', notified_looks)
    await here.ask('POST', `/hook/${inbox.token}`, { body: { n: 1 } })
    expect((await wait.answer()).data.items).toHaveLength(1)
  })

  test('no decision is missed, whenever it comes: while the wait begins, before it or after it', async () => {
    for (let round = 0; round < 60; round++) {
      const id = await newCheckpoint(here, tenant)
      const wait = there.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key: tenant.api_key })
      if (round % 3 === 1) await Bun.sleep(round % 5)
      const decided = approve(here, tenant, id)
      expect((await wait).body.status).toBe('approved')
      await decided
    }
  })

  test('no signal is sent for what nobody waits for', async () => {
    const heard: string[] = []
    const client = new SQL({ url: cluster.database_url, max: 1 })
    await client.listen('waystation', (text) => heard.push(text))
    const ids = await Promise.all(Array.from({ length: 10 }, () => newCheckpoint(here, tenant)))
    await Promise.all(ids.map((id) => approve(here, tenant, id)))
    const last = await newCheckpoint(here, tenant)
    const wait = await waitFor(there, tenant, last)
    await approve(here, tenant, last)
    await wait.answer()
    const signals = () => heard.filter((text) => text.startsWith('{')).map((text) => signalOf(text)!)
    const topics = () => signals().flatMap((signal) => signal.topics)
    // By its group when the decision came before the other node knew of the wait.
    const groups = () => signals().flatMap((signal) => signal.groups)
    await until(
      () =>
        topics().includes(topicOfOne(tenant, last)) || groups().includes(groupOf(topicOfOne(tenant, last))),
    )
    await client.close({ timeout: 0 })
    expect(topics().filter((topic) => ids.map((id) => topicOfOne(tenant, id)).includes(topic))).toEqual([])
    expect(heard.join()).not.toContain(tenant.tenant_id)
  })

  const statusOf = async (node: TestService, key: string) =>
    (await node.ask('GET', '/v1/kv/a', { key })).status

  test.each([
    ['key that was rotated', 401, 'POST', '/v1/agents/agent-one/rotate-key'],
    ['key of an agent that was removed', 401, 'DELETE', '/v1/agents/agent-one'],
    ['key of a tenant that was deleted', 403, 'DELETE', '/v1/tenants/:tenant_id'],
  ])(
    'the %s is refused by the other node although it was remembered there',
    async (_, status, method, path) => {
      const { api_key, admin_key, tenant_id } = await here.signUp()
      expect(await statusOf(there, api_key)).toBe(200)
      const body = path.includes('tenants') ? { confirm: 'DELETE ALL DATA' } : undefined
      const ended = await here.ask(method, path.replace(':tenant_id', tenant_id), { key: admin_key, body })
      expect(ended.status).toBeLessThan(300)
      await until(async () => (await statusOf(there, api_key)) === status)
    },
  )

  test('a tenant that was restored is served by the other node', async () => {
    const { api_key, admin_key, tenant_id } = await here.signUp()
    await here.ask('DELETE', `/v1/tenants/${tenant_id}`, {
      key: admin_key,
      body: { confirm: 'DELETE ALL DATA' },
    })
    expect(await statusOf(there, api_key)).toBe(403)
    await here.ask('POST', `/v1/tenants/${tenant_id}/restore`, { key: admin_key })
    await until(async () => (await statusOf(there, api_key)) === 200)
  })

  test('a plan that the operator set holds on every node', async () => {
    const { admin_key, tenant_id } = await here.signUp()
    const planOf = async (node: TestService) =>
      (await node.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body.quota.agents.limit
    expect([await planOf(here), await planOf(there)]).toEqual([25, 25])
    await tenants.setPlan(here.app.db, tenant_id, 'pro')
    for (const node of [here, there]) await until(async () => (await planOf(node)) === 500)
  })

  test('keys of other tenants stay remembered', async () => {
    const other = await here.signUp()
    expect([await statusOf(there, tenant.api_key), await statusOf(there, other.api_key)]).toEqual([200, 200])
    await here.ask('POST', '/v1/agents/agent-one/rotate-key', { key: other.admin_key })
    await until(async () => (await statusOf(there, other.api_key)) === 401)
    const seen: string[] = []
    there.app.db.onStatement((name) => seen.push(name))
    expect(await statusOf(there, tenant.api_key)).toBe(200)
    there.app.db.onStatement(null)
    expect(seen.filter((name) => name.startsWith('credentials.'))).toEqual([])
  })

  test('texts that are not signals change nothing', async () => {
    for (const text of ['', 'hello', '{}', '[1]', '{"from": 1}', '{"from":"x","waits":"?","topics":[1]}']) {
      await cluster.sql`select pg_notify('waystation', ${text})`
    }
    const id = await newCheckpoint(here, tenant)
    const wait = await waitFor(there, tenant, id)
    await approve(here, tenant, id)
    expect((await wait.answer()).status).toBe('approved')
  })

  test('a signal that names no topics but all makes every waiting request look', async () => {
    const id = await newCheckpoint(here, tenant)
    const wait = await waitFor(there, tenant, id)
    await cluster.sql`update checkpoints set status = 'approved', resolved_at = 1 where id = ${id}`
    await cluster.sql`select pg_notify('waystation', ${'{"from":"another","all_topics":true}'})`
    expect((await wait.answer()).status).toBe('approved')
  })

  test('a node that stops tells the others to look for jobs, and leaves no connection', async () => {
    const third = await cluster.startNode()
    expect(await cluster.listening()).toBe(3)
    const seen: string[] = []
    there.app.db.onStatement((name) => seen.push(name))
    await third.stop()
    await until(() => seen.some((name) => name.startsWith('jobs.')))
    there.app.db.onStatement(null)
    await until(async () => (await cluster.listening()) === 2)
  })

  test('a node that has no permits left for due jobs tells the others to look', async () => {
    const receiver = await startReceiver()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    receiver.answer = async () => {
      await released
      return {}
    }
    const owner = await here.signUp('pro')
    const body = { forwardUrl: `${receiver.url}/busy` }
    const { token } = (await here.ask('POST', '/api/webhook', { key: owner.api_key, body })).body.data
    const seen: string[] = []
    there.app.db.onStatement((name) => seen.push(name))
    const send = () => here.ask('POST', `/hook/${token}`, { body: { n: 1 } })
    await until(async () => {
      await send()
      cluster.clock.advance(1)
      return seen.some((name) => name.startsWith('jobs.'))
    })
    there.app.db.onStatement(null)
    release()
    await receiver.stop()
  })

  test('after pg_terminate_backend both listen again, and what was remembered is looked up again', async () => {
    const { api_key, admin_key } = await here.signUp()
    expect(await statusOf(there, api_key)).toBe(200)
    await cluster.terminate()
    await here.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key })
    await until(async () => (await statusOf(there, api_key)) === 401)
    await until(async () => (await hears(here)) && (await hears(there)))
    const messages = there.logged.map(({ message }) => message)
    expect(messages).toContain('signals from other nodes are not heard: polling for their changes')
    expect(
      messages.filter((message) => message === 'signals from other nodes are heard').length,
    ).toBeGreaterThan(1)
    const id = await newCheckpoint(here, tenant)
    const wait = await waitFor(there, tenant, id)
    await approve(here, tenant, id)
    expect((await wait.answer()).status).toBe('approved')
  })
})

onPostgres('A node whose connection that listens is cut', () => {
  let cluster: Cluster
  let wire: Wire
  let there: TestService
  beforeAll(async () => {
    cluster = await Cluster.start(1)
    wire = await wireTo(cluster.database_url)
    there = await cluster.startNode({ DATABASE_LISTEN_URL: wire.url })
  })
  afterAll(async () => {
    await cluster.stop()
    wire.close()
  })

  test('looks once when it listens again: a decision in between is not missed', async () => {
    const [here] = cluster.nodes as [TestService]
    const { tenant } = cluster
    await until(() => hears(there))
    const id = await newCheckpoint(here, tenant)
    const { api_key, admin_key } = await here.signUp()
    expect((await there.ask('GET', '/v1/kv/a', { key: api_key })).status).toBe(200)
    const wait = await waitFor(there, tenant, id, 3) // also when it hears no more, and when it does again
    wire.tap = () => 'cut_before'
    await cluster.terminate()
    await until(async () => !(await hears(there)))
    await approve(here, tenant, id)
    await here.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key })
    expect((await there.ask('GET', '/v1/kv/a', { key: api_key })).status).toBe(200) // remembered, for less than a second
    wire.tap = () => 'pass'
    await until(() => hears(there))
    expect((await wait.answer()).status).toBe('approved')
    expect((await there.ask('GET', '/v1/kv/a', { key: api_key })).status).toBe(401)
  })
})

/** A start waits a second to hear itself, which a busy machine may take longer for: then there is another. */
async function startThatHears(settings: Record<string, string>): Promise<ServerProcess> {
  let server!: ServerProcess
  await until(async () => {
    server = await startServer(settings)
    const hears = !server.banner.includes('LISTEN')
    if (!hears) await server.stop()
    return hears
  })
  return server
}

onPostgres('A node that cannot listen', () => {
  let cluster: Cluster
  let elsewhere: string
  const folder = mkdtempSync(join(tmpdir(), 'waystation-nodes-'))
  beforeAll(async () => {
    cluster = await Cluster.start(1)
    elsewhere = await newPostgresDatabase() // LISTEN works there, and nothing is heard: as behind a pooler
  })
  afterAll(async () => {
    await cluster.stop()
    await dropPostgresDatabase(elsewhere)
    rmSync(folder, { recursive: true, force: true })
  })

  const cannot = ['is in another database', 'refuses LISTEN', 'is silent'] as const

  describe.each(cannot)('because DATABASE_LISTEN_URL %s', (why) => {
    let node: TestService
    let wire: Wire | null = null
    beforeAll(async () => {
      wire = why === 'is in another database' ? null : await wireTo(cluster.database_url)
      if (wire) {
        const refuse = why === 'is silent' ? ('swallow' as const) : ('cut_before' as const)
        wire.tap = (bytes) => (bytes.includes('LISTEN') ? refuse : 'pass')
      }
      node = await cluster.startNode({ DATABASE_LISTEN_URL: wire?.url ?? elsewhere }, true)
    })
    afterAll(() => wire?.close())

    test('starts, says so, and finds by looking what others changed', async () => {
      const [here] = cluster.nodes as [TestService]
      const { tenant } = cluster
      expect((await node.ask('GET', '/readyz?verbose')).body.other_nodes).toBe('polled')
      expect(node.app.nodesTrouble()).toMatch(
        /^(a node does not hear its own NOTIFY|no connection that listens|the connection that listens|it has)/,
      )
      const id = await newCheckpoint(here, tenant)
      const wait = await waitFor(node, tenant, id, Number.POSITIVE_INFINITY)
      await approve(here, tenant, id)
      expect((await wait.answer()).status).toBe('approved')
    })

    test('refuses a key that was rotated elsewhere within 900 ms', async () => {
      const [here] = cluster.nodes as [TestService]
      const { api_key, admin_key } = await here.signUp()
      const status = async () => (await node.ask('GET', '/v1/kv/a', { key: api_key })).status
      expect(await status()).toBe(200)
      await here.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key })
      cluster.clock.advance(899)
      expect(await status()).toBe(200)
      cluster.clock.advance(1)
      expect(await status()).toBe(401)
    })

    test('ends the waits and streams of such a key without a request of its own', async () => {
      const [here] = cluster.nodes as [TestService]
      const { api_key: key, admin_key } = await here.signUp()
      const page = node.ask('GET', '/v1/events?type=dlq.created&after=0&wait=55', { key })
      const body = { any: [{ type: 'dlq.created' }], wait_seconds: 55 }
      const one = node.ask('POST', '/v1/wait', { key, body })
      const stream = await follow(node, key)
      expect((await stream.next())!.retry).toBe('1000')
      await here.ask('POST', '/v1/agents/agent-one/rotate-key', { key: admin_key })
      cluster.clock.advance(900)
      expect([(await inTime(page)).status, (await inTime(one)).status]).toEqual([401, 401])
      while ((await stream.next()) !== null); // the rotation may still be sent
    })

    test('still tells the others', async () => {
      const [here] = cluster.nodes as [TestService]
      const id = await newCheckpoint(here, cluster.tenant)
      const wait = await waitFor(here, cluster.tenant, id)
      await approve(node, cluster.tenant, id)
      expect((await wait.answer()).status).toBe('approved')
    })
  })

  test('as a process says so at its start, and listens to SIGTERM', async () => {
    const settings = {
      DATABASE_URL: cluster.database_url,
      SECRET_KEY: secret_key,
      CRON_SECRET: cron_secret,
      DATA_DIR: folder,
    }
    for (const WORKERS of ['1', '2']) {
      const polled = await startServer({ ...settings, DATABASE_LISTEN_URL: elsewhere, WORKERS })
      expect(polled.banner).toContain('warning     LISTEN does not work here')
      expect(await polled.stop()).toBe(0)
    }
    await until(async () => (await cluster.listening()) === 1)
    const hearing = await startThatHears(settings)
    await until(async () => (await cluster.listening()) === 2)
    expect(await hearing.stop()).toBe(0)
    await until(async () => (await cluster.listening()) === 1)
  })
})
