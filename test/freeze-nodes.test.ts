// Three nodes of one PostgreSQL: a freeze on one of them holds on all within a second, for changes, leases and attempts.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { iso, second_ms } from '../src/base/clock.ts'
import { TestClock } from './support/clock.ts'
import { onPostgres } from './support/databases.ts'
import { until } from './support/patience.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { cron_secret, TestService, type TestTenant } from './support/service.ts'

const nodes_count = 3
const schedules_count = 60
/** A node takes a key that it looked up for no longer. */
const known_ms = second_ms

onPostgres('Three nodes of which one freezes a tenant', () => {
  const clock = new TestClock()
  const nodes: TestService[] = []
  let database_url: string
  let receiver: Receiver
  beforeAll(async () => {
    receiver = await startReceiver()
    database_url = await newPostgresDatabase()
    for (let i = 0; i < nodes_count; i++) {
      const node = new TestService({ SECRET_KEY: 'the key that every node has' })
      node.clock = clock
      nodes.push(await node.start(database_url))
    }
  })
  afterAll(async () => {
    for (const node of nodes) await node.stop()
    await dropPostgresDatabase(database_url)
    await receiver.stop()
  })

  const first = () => nodes[0]!
  const tenantVerb = ({ tenant_id, admin_key }: TestTenant, verb: string, node = first()) =>
    node.ask('POST', `/v1/tenants/${tenant_id}/${verb}`, { key: admin_key })
  const onAll = <T>(work: (node: TestService, number: number) => Promise<T>) => Promise.all(nodes.map(work))
  const put = (node: TestService, { api_key: key }: TestTenant, name: string) =>
    node.ask('PUT', `/v1/kv/a/${name}`, { key, body: { value: 1 } })
  const tick = (node: TestService) => node.ask('POST', '/v1/tick', { key: cron_secret })
  const sent = (path: string) => receiver.requests.filter(({ target }) => target.startsWith(path)).length

  test('all refuse its agents from a second after the answer on, although they remember the key', async () => {
    const tenant = await first().signUp()
    const before = await onAll((node, n) => put(node, tenant, `before-${n}`))
    expect(before.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await tenantVerb(tenant, 'freeze')).status).toBe(200)
    clock.advance(known_ms)
    const codes = await onAll(async (node, n) => (await put(node, tenant, `after-${n}`)).body.error?.code)
    expect(codes).toEqual(['TENANT_FROZEN', 'TENANT_FROZEN', 'TENANT_FROZEN'])
    await tenantVerb(tenant, 'resume', nodes[1])
    clock.advance(known_ms)
    const resumed = await onAll(async (node, n) => (await put(node, tenant, `after-${n}`)).status)
    expect(resumed).toEqual([200, 200, 200])
  })

  test('none claims a dead letter, and none begins an attempt; after the resume each is made once', async () => {
    const tenant = await first().signUp()
    const path = `/of/${tenant.tenant_id}/`
    const { api_key: key } = tenant
    for (let n = 0; n < schedules_count; n++) {
      const body = {
        callback_url: `${receiver.url}${path}${n}`,
        callback_payload: {},
        fire_at: iso(clock.now()),
      }
      expect((await first().ask('POST', '/v1/schedules', { key, body })).status).toBe(201)
    }
    await first().ask('POST', '/v1/dlq', { key, body: { payload: {}, error: 'failed' } })

    const ticking = onAll(tick)
    expect((await tenantVerb(tenant, 'freeze', nodes[2])).status).toBe(200)
    await ticking
    clock.advance(known_ms)
    const sent_before = sent(path)
    await onAll(tick)
    expect(sent(path)).toBe(sent_before)
    const claims = await onAll((node) => node.ask('POST', '/v1/dlq/claim', { key, body: {} }))
    expect(claims.map(({ body }) => body.error?.code)).toEqual(nodes.map(() => 'TENANT_FROZEN'))

    expect((await tenantVerb(tenant, 'resume', nodes[1])).body.frozen_at).toBeNull()
    // On a busy machine a tick may be refused.
    await until(async () => {
      await onAll(tick)
      return sent(path) >= schedules_count
    })
    await onAll(tick)
    const targets = receiver.requests.map(({ target }) => target).filter((target) => target.startsWith(path))
    const each = Array.from({ length: schedules_count }, (_, n) => `${path}${n}`)
    expect(targets.toSorted()).toEqual(each.toSorted())
  })

  test('what a freeze on one and a resume on another leave is moved once, by the time in between', async () => {
    const tenant = await first().signUp()
    const { api_key: key } = tenant
    const body = { title: 'May I?', callback_url: null, timeout_seconds: 60 }
    const { id } = (await first().ask('POST', '/v1/checkpoints', { key, body })).body
    const expires_at = clock.now() + 60 * second_ms
    await tenantVerb(tenant, 'freeze', nodes[1])
    clock.advance(600 * second_ms)
    await onAll(tick)
    await Promise.all([...nodes, ...nodes].map((node) => tenantVerb(tenant, 'resume', node)))
    await onAll(tick)
    const shown = await nodes[2]!.ask('GET', `/v1/checkpoints/${id}`, { key })
    expect([shown.body.status, shown.body.expires_at]).toEqual(['pending', iso(expires_at + 600 * second_ms)])
  })
})
