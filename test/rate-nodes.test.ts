// Of many checks at once exactly as many are allowed as the limit says, on one node and on several.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { forEachRacedService, isUnknown, served, TestService } from './support/service.ts'

const checks = 1_000
const limit = 100
/** Nodes of one database need one secret key. */
const environment = { SECRET_KEY: 'one secret key for every node' }
/** Of a round, until the outcome of each of its checks is known. */
const tries_max = 20

forEachRacedService(
  'checks at once',
  (service) => {
    const nodes: TestService[] = [service]

    beforeAll(async () => {
      const more = { sqlite: 0, postgres: 2 }[service.engine]
      for (let i = 0; i < more; i++) {
        const node = new TestService(environment)
        node.clock = service.clock
        nodes.push(await node.start(service.database_url))
      }
    })
    afterAll(async () => {
      for (const node of nodes.slice(1)) await node.stop()
    })

    test.each([
      ['fixed_window', 1, 1],
      ['fixed_window', 3, 1],
      ['sliding_window', 1, 1],
      ['sliding_window', 3, 1],
      ['fixed_window', 3, 4],
      ['sliding_window', 3, 4],
    ])(
      '%s, on up to %d nodes, each at a cost of %d: exactly the limit is allowed',
      async (algorithm, count, cost) => {
        const asked = nodes.slice(0, count)
        const body = { key: 'hot', limit, windowSeconds: 60, algorithm, cost }
        const query = new URLSearchParams({
          key: 'hot',
          limit: `${limit}`,
          window: '60',
          algorithm,
          cost: `${cost}`,
        })
        const checked = async () => {
          const { api_key, tenant_id, admin_key } = await service.signUp('pro')
          const check = (i: number) => {
            const node = asked[i % asked.length]!
            return served(() =>
              i % 2 === 0
                ? node.ask('POST', '/api/rate-limit/check', { key: api_key, body })
                : node.ask('GET', `/api/rate-limit/check?${query}`, { key: api_key }),
            )
          }
          const answers = await Promise.all(Array.from({ length: checks }, (_, i) => check(i)))
          const allowed = answers.filter(({ status }) => status === 200)
          expect(allowed.length).toBeLessThanOrEqual(limit / cost)
          return { answers, allowed, tenant_id, admin_key }
        }
        let round = await checked()
        // A machine that stands still for longer than callers wait leaves checks of which nobody knows: then the round does not count.
        for (let tries = 1; round.answers.some(isUnknown) && tries < tries_max; tries++)
          round = await checked()
        const { answers, allowed, tenant_id, admin_key } = round
        expect(allowed.length).toBe(limit / cost)
        expect(answers.filter(({ status }) => status === 429).length).toBe(checks - limit / cost)
        const counts = allowed.map(({ body }) => body.data.count).toSorted((one, other) => one - other)
        expect(counts).toEqual(Array.from({ length: limit / cost }, (_, i) => (i + 1) * cost))
        const { body: tenant } = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
        expect(tenant.quota.kv_keys.used).toBe(1)
      },
    )

    test('that each begin a window of another length leave one counter, counted once', async () => {
      const { api_key, tenant_id, admin_key } = await service.signUp('pro')
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => {
          const body = { key: 'hot', limit: 1, windowSeconds: 60 + (i % 3) }
          return nodes[i % nodes.length]!.ask('POST', '/api/rate-limit/check', { key: api_key, body })
        }),
      )
      expect(answers.filter(({ status }) => status !== 200 && status !== 429)).toEqual([])
      const { body: tenant } = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
      expect(tenant.quota.kv_keys.used).toBe(1)
    })

    test('and resets at once end in one counter or none, and the quota knows which', async () => {
      const { api_key, tenant_id, admin_key } = await service.signUp('pro')
      const body = { key: 'hot', limit: 1, windowSeconds: 60 }
      await Promise.all(
        Array.from({ length: 120 }, (_, i) =>
          nodes[i % nodes.length]!.ask('POST', `/api/rate-limit/${i % 2 === 0 ? 'check' : 'reset'}`, {
            key: api_key,
            body,
          }),
        ),
      )
      const { data } = (await service.ask('GET', '/api/rate-limit/hot', { key: api_key })).body
      const { body: tenant } = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
      expect(tenant.quota.kv_keys.used).toBe(data.windowExpired ? 0 : 1)
    })
  },
  environment,
)
