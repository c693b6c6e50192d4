// Concurrent requests end as if they had come one after the other. On PostgreSQL several nodes share the
// database; SQLite has one server per file.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import * as audit from '../src/audit/service.ts'
import { day_ms } from '../src/base/clock.ts'
import { unnamedAcrossTenants } from '../src/db/db.ts'
import { default_plans } from '../src/features.ts'
import { claimOf } from '../src/idempotency/service.ts'
import { type Tap, type Wire, wireTo } from './support/crash-postgres.ts'
import { onPostgres } from './support/databases.ts'
import { sweep } from './support/maintenance.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './support/postgres.ts'
import { requested } from './support/requested.ts'
import {
  type Answer,
  type Ask,
  forEachRacedService,
  TestService,
  type TestTenant,
} from './support/service.ts'

const agents_max = 25
const kv_keys_max = 10
const folder = mkdtempSync(join(tmpdir(), 'waystation-races-'))
const plans_file = join(folder, 'plans.json')
const { free, pro } = default_plans
writeFileSync(plans_file, JSON.stringify({ free: { ...free, kv_keys: kv_keys_max }, pro }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Nodes of one database need one secret key. */
const environment = { PLANS_FILE: plans_file, SECRET_KEY: 'one secret key for every node' }
/** Longer than any node believes a key without asking. */
const cache_ms = 1_001

const COUNT_AGENT_KEYS = unnamedAcrossTenants<{ live: number; in_grace: number }>(
  'test.count_keys',
  `select count(case when expires_at is null then 1 end) as live, count(expires_at) as in_grace from credentials
    where tenant_id = :tenant_id and kind = :kind and subject = :subject`,
)
const COUNT_TENANTS = unnamedAcrossTenants<{ count: number }>(
  'test.count_tenants',
  'select count(*) as count from tenants where name = :name',
)

type Times = <T>(count: number, make: (i: number) => T) => Promise<Awaited<T>[]>
const times: Times = (count, make) => Promise.all(Array.from({ length: count }, (_, i) => make(i)))
const statuses = (answers: Answer[]) => answers.map(({ status }) => status).toSorted()
const withStatus = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status)

forEachRacedService(
  'races',
  (service) => {
    const nodes: TestService[] = [service]
    const others: TestService[] = []

    beforeAll(async () => {
      const more = { sqlite: 0, postgres: 2 }[service.engine]
      for (let i = 0; i < more; i++) {
        const node = new TestService(environment)
        node.clock = service.clock
        await node.start(service.database_url)
        others.push(node)
      }
      nodes.push(...others)
    })
    afterAll(async () => {
      for (const node of others) await node.stop()
    })

    /**
     * The i-th call goes to the i-th node, round and round. Repeated after UNAVAILABLE, which has had no effect, as a
     * client does: 50 that want one row may wait longer for it than a busy database allows.
     */
    async function ask(i: number, method: string, path: string, options: Ask): Promise<Answer> {
      for (;;) {
        const answer = await nodes[i % nodes.length]!.ask(method, path, options)
        if (answer.status !== 503 || answer.body.error.code !== 'UNAVAILABLE') return answer
      }
    }

    const quotaOf = async ({ tenant_id, admin_key }: TestTenant, quota: string) =>
      (await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })).body.quota[quota]

    const keysOf = (tenant_id: string, kind: string, subject: string) =>
      service.app.db.one(COUNT_AGENT_KEYS, { tenant_id, kind, subject })

    /** How each of these keys fares on each node, once no node remembers it. */
    async function statusOf(key: string, path: string): Promise<number[]> {
      service.clock.advance(cache_ms)
      return (await times(nodes.length, (i) => ask(i, 'GET', path, { key }))).map(({ status }) => status)
    }

    describe('quotas', () => {
      test('50 agents at once at one below the limit: one is created, the others are told the exact numbers', async () => {
        const tenant = await service.signUp('free')
        for (let i = 1; i < agents_max - 1; i++) await service.addAgent(tenant.admin_key, `agent-no-${i}`)
        expect(await quotaOf(tenant, 'agents')).toEqual({ used: agents_max - 1, limit: agents_max })

        const answers = await times(50, (i) =>
          ask(i, 'POST', '/v1/agents', { key: tenant.admin_key, body: { name: `racer-${i}` } }),
        )
        expect(statuses(answers)).toEqual([201, ...Array(49).fill(402)])
        for (const { body } of withStatus(answers, 402)) {
          expect(body.error.code).toBe('QUOTA_EXCEEDED')
          expect(body.error.details).toEqual({ quota: 'agents', used: agents_max, limit: agents_max })
        }
        expect(await quotaOf(tenant, 'agents')).toEqual({ used: agents_max, limit: agents_max })
        const { body } = await service.ask('GET', '/v1/agents?limit=200', { key: tenant.admin_key })
        expect(body.items.length).toBe(agents_max)
      })

      test('50 removals of one agent at once release one place', async () => {
        const tenant = await service.signUp('free')
        await service.addAgent(tenant.admin_key, 'leaver')
        const answers = await times(50, (i) =>
          ask(i, 'DELETE', '/v1/agents/leaver', { key: tenant.admin_key }),
        )
        expect(statuses(answers)).toEqual([204, ...Array(49).fill(404)])
        expect(await quotaOf(tenant, 'agents')).toEqual({ used: 1, limit: agents_max })
      })

      const put = (i: number, { api_key }: TestTenant, key: string, body: object = { value: i }) =>
        ask(i, 'PUT', `/v1/kv/race/${key}`, { key: api_key, body })

      test('50 new keys at once at one below the limit: one is made', async () => {
        const tenant = await service.signUp('free')
        await times(kv_keys_max - 1, (i) => put(i, tenant, `key-${i}`))
        const answers = await times(50, (i) => put(i, tenant, `racer-${i}`))
        expect(statuses(answers)).toEqual([200, ...Array(49).fill(402)])
        for (const { body } of withStatus(answers, 402)) {
          expect(body.error.details).toEqual({ quota: 'kv_keys', used: kv_keys_max, limit: kv_keys_max })
        }
        expect(await quotaOf(tenant, 'kv_keys')).toEqual({ used: kv_keys_max, limit: kv_keys_max })
        const { body } = await service.ask('GET', '/v1/kv/race?limit=200', { key: tenant.api_key })
        expect(body.items.length).toBe(kv_keys_max)
      })

      test('50 puts of one new key at the last place all go well and count once', async () => {
        const tenant = await service.signUp('free')
        await times(kv_keys_max - 1, (i) => put(i, tenant, `key-${i}`))
        const answers = await times(50, (i) => put(i, tenant, 'the-last'))
        expect(statuses(answers)).toEqual(Array(50).fill(200))
        expect(answers.map(({ body }) => body.version).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 50 }, (_, i) => i + 1),
        )
        expect(await quotaOf(tenant, 'kv_keys')).toEqual({ used: kv_keys_max, limit: kv_keys_max })
      })

      test('what has expired fills no quota: two expired keys make room for exactly two of 50', async () => {
        const tenant = await service.signUp('free')
        await times(kv_keys_max, (i) =>
          put(i, tenant, `key-${i}`, { value: i, ...(i < 2 ? { ttl_seconds: 1 } : {}) }),
        )
        expect((await put(0, tenant, 'no-room')).status).toBe(402)
        service.clock.advance(1_000)
        const answers = await times(50, (i) => put(i, tenant, `racer-${i}`))
        expect(statuses(answers)).toEqual([200, 200, ...Array(48).fill(402)])
        expect(await quotaOf(tenant, 'kv_keys')).toEqual({ used: kv_keys_max, limit: kv_keys_max })
      })

      test('puts, removals, expiry and sweeps pell-mell leave used at the number of keys that are there', async () => {
        const tenant = await service.signUp('free')
        for (let round = 0; round < 5; round++) {
          const answers = await times(60, (i) => {
            const key = `key-${(i * 7 + round) % 15}`
            if (i % 4 === 0) return ask(i, 'DELETE', `/v1/kv/race/${key}`, { key: tenant.api_key })
            if (i % 10 === 1) return sweep(nodes[i % nodes.length]!.app.db, service.clock).then(() => null)
            return put(i, tenant, key, { value: i, ...(i % 3 === 0 ? { ttl_seconds: 1 } : {}) })
          })
          const odd = answers.filter((answer) => answer && ![200, 204, 402, 404].includes(answer.status))
          expect(odd).toEqual([])
          service.clock.advance(700)
          const { body } = await service.ask('GET', '/v1/kv/race?limit=200', { key: tenant.api_key })
          const { used } = await quotaOf(tenant, 'kv_keys')
          expect(used).toBe(body.items.length)
          expect(used).toBeLessThanOrEqual(kv_keys_max)
        }
      })
    })

    describe('equal Idempotency-Keys', () => {
      interface Case {
        path: string
        body: (round: number) => object
        key: (tenant: TestTenant) => string | undefined
        /** How many of it there are. */
        count: (tenant: TestTenant, round: number) => Promise<number>
      }
      const listed = async (path: string, key: string, matches: (item: Record<string, unknown>) => boolean) =>
        (await service.ask('GET', `${path}?limit=200`, { key })).body.items.filter(matches).length
      const cases: Record<string, Case> = {
        tenants: {
          path: '/v1/tenants',
          body: (round) => ({ name: `race-${service.engine}-${round}`, owner_email: 'owner@example.com' }),
          key: () => undefined,
          count: async (_, round) =>
            (await service.app.db.one(COUNT_TENANTS, { name: `race-${service.engine}-${round}` }))!.count,
        },
        agents: {
          path: '/v1/agents',
          body: (round) => ({ name: `twin-${round}` }),
          key: ({ admin_key }) => admin_key,
          count: ({ admin_key }, round) =>
            listed('/v1/agents', admin_key, ({ name }) => name === `twin-${round}`),
        },
        'approval-keys': {
          path: '/v1/approval-keys',
          body: (round) => ({ label: `twin-${round}` }),
          key: ({ admin_key }) => admin_key,
          count: ({ admin_key }, round) =>
            listed('/v1/approval-keys', admin_key, ({ label }) => label === `twin-${round}`),
        },
        audit: {
          path: '/v1/audit',
          body: (round) => ({ action: `twin-${round}`, metadata: { round } }),
          key: ({ api_key }) => api_key,
          count: ({ api_key }, round) =>
            listed('/v1/audit', api_key, ({ action }) => action === `twin-${round}`),
        },
      }

      test.each(Object.keys(cases))(
        '20 at once on POST /v1/%s give one effect and one answer',
        async (name) => {
          const { path, body, key, count } = cases[name]!
          const tenant = await service.signUp('pro')
          const bearer = key(tenant)
          for (let round = 0; round < 5; round++) {
            const options: Ask = {
              ...(bearer ? { key: bearer } : {}),
              headers: { 'idempotency-key': `the-race-of-round-${round}-${name}-${service.engine}` },
              body: body(round),
            }
            const answers = await times(20, (i) => ask(i, 'POST', path, options))
            const created = withStatus(answers, 201)
            const waiting = withStatus(answers, 409)
            expect(created.length + waiting.length).toBe(20)
            expect(new Set(created.map(({ text }) => text)).size).toBe(1)
            expect(created.filter(({ headers }) => !headers.has('idempotent-replayed')).length).toBe(1)
            for (const { body, headers } of waiting) {
              expect(body.error.code).toBe('IDEMPOTENCY_IN_PROGRESS')
              expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
            }
            expect(await count(tenant, round)).toBe(1)
            const later = await ask(round, 'POST', path, options)
            expect(later.status).toBe(201)
            expect(later.text).toBe(created[0]!.text)
            expect(later.headers.get('idempotent-replayed')).toBe('true')
          }
        },
      )

      test('20 at once with two different bodies: one body has its effect, the other is 422', async () => {
        const { api_key } = await service.signUp('pro')
        const answers = await times(20, (i) =>
          ask(i, 'POST', '/v1/audit', {
            key: api_key,
            headers: { 'idempotency-key': 'two-bodies' },
            body: { action: i % 2 === 0 ? 'even' : 'odd' },
          }),
        )
        const created = withStatus(answers, 201)
        expect(new Set(created.map(({ body }) => body.action)).size).toBe(1)
        for (const { body } of withStatus(answers, 422))
          expect(body.error.code).toBe('IDEMPOTENCY_KEY_REUSED')
        expect(statuses(answers).filter((status) => ![201, 409, 422].includes(status))).toEqual([])
        expect((await service.ask('GET', '/v1/audit', { key: api_key })).body.items.length).toBe(1)
      })

      test('20 at once of a request that is refused leave no key behind: mended, it goes well', async () => {
        const tenant = await service.signUp('pro')
        const send = (i: number) =>
          ask(i, 'POST', '/v1/agents', {
            key: tenant.admin_key,
            headers: { 'idempotency-key': 'refused-first' },
            body: { name: tenant.agent_id },
          })
        const answers = await times(20, send)
        expect(statuses(answers)).toEqual(Array(20).fill(409))
        expect(
          (await service.ask('DELETE', `/v1/agents/${tenant.agent_id}`, { key: tenant.admin_key })).status,
        ).toBe(204)
        const mended = await send(0)
        expect(mended.status).toBe(201)
        expect(mended.headers.has('idempotent-replayed')).toBe(false)
      })
    })

    describe('compare-and-set', () => {
      const conditions: [string, (version: number) => Partial<Ask> & { cas?: number }, number][] = [
        ['cas_version', (version) => ({ cas: version }), 409],
        ['If-Match', (version) => ({ headers: { 'if-match': `"${version}"` } }), 412],
      ]
      test.each(conditions)(
        'of 50 puts at once on one version by %s one wins',
        async (_, condition, refused) => {
          const { api_key } = await service.signUp('pro')
          const path = '/v1/kv/race/cas'
          let version = (await service.ask('PUT', path, { key: api_key, body: { value: 'first' } })).body
            .version
          for (let round = 0; round < 3; round++) {
            const { headers, cas } = condition(version)
            const answers = await times(50, (i) =>
              ask(i, 'PUT', path, {
                key: api_key,
                ...(headers ? { headers } : {}),
                body: { value: { round, i }, ...(cas === undefined ? {} : { cas_version: cas }) },
              }),
            )
            expect(statuses(answers)).toEqual([200, ...Array(49).fill(refused)])
            for (const { body } of withStatus(answers, refused)) {
              expect(body.error.code).toBe('VERSION_MISMATCH')
              expect(body.error.details).toEqual({ current_version: version + 1 })
            }
            const winner = answers.findIndex(({ status }) => status === 200)
            const { body } = await service.ask('GET', path, { key: api_key })
            expect(body).toMatchObject({ version: version + 1, value: { round, i: winner } })
            version = body.version
          }
        },
      )

      const absences: [string, Ask, object, number][] = [
        ['cas_version 0', {}, { cas_version: 0 }, 409],
        ['If-None-Match *', { headers: { 'if-none-match': '*' } }, {}, 412],
      ]
      test.each(absences)(
        'of 50 puts at once with %s on an absent, a deleted and an expired key one wins each time',
        async (name, options, member, refused) => {
          const { api_key } = await service.signUp('pro')
          const path = '/v1/kv/race/absent'
          const won: number[] = []
          const endings = [
            () => service.ask('DELETE', path, { key: api_key }),
            async () => {
              await service.ask('PUT', path, { key: api_key, body: { value: 0, ttl_seconds: 1 } })
              service.clock.advance(1_000)
            },
            async () => {},
          ]
          for (const end of endings) {
            const answers = await times(50, (i) =>
              ask(i, 'PUT', path, { key: api_key, ...options, body: { value: { name, i }, ...member } }),
            )
            expect(statuses(answers)).toEqual([200, ...Array(49).fill(refused)])
            const winner = answers.findIndex(({ status }) => status === 200)
            const { version } = answers[winner]!.body
            won.push(version)
            for (const { body } of withStatus(answers, refused)) {
              expect(body.error.code).toBe('VERSION_MISMATCH')
              expect(body.error.details).toEqual({ current_version: version })
            }
            expect((await service.ask('GET', path, { key: api_key })).body).toMatchObject({
              version,
              value: { name, i: winner },
            })
            await end()
          }
          expect(won).toEqual([1, 2, 4])
        },
      )

      test('of 50 removals at once of one version one wins', async () => {
        const { api_key } = await service.signUp('pro')
        const path = '/v1/kv/race/removed'
        await service.ask('PUT', path, { key: api_key, body: { value: 1 } })
        const answers = await times(50, (i) =>
          ask(i, 'DELETE', path, { key: api_key, headers: { 'if-match': '1' } }),
        )
        expect(statuses(answers)).toEqual([204, ...Array(49).fill(404)])
      })
    })

    describe('versions', () => {
      test('never repeat for a key, across put, removal, expiry and the sweep of its tombstone', async () => {
        const { api_key } = await service.signUp('pro')
        const path = '/v1/kv/race/forever'
        const versions: number[] = []
        const put = async (body: object) => {
          const answer = await service.ask('PUT', path, { key: api_key, body })
          expect(answer.status).toBe(200)
          versions.push(answer.body.version)
        }
        const remove = async () =>
          expect((await service.ask('DELETE', path, { key: api_key })).status).toBe(204)
        const sweepAll = async () => {
          while ((await sweep(service.app.db, service.clock)).more);
        }
        for (let round = 0; round < 3; round++) {
          await put({ value: 'lives' })
          await put({ value: 'lives on' })
          await remove()
          await put({ value: 'again', ttl_seconds: 1 })
          service.clock.advance(1_000)
          await put({ value: 'after expiry, before the sweep' })
          await put({ value: 'expires', ttl_seconds: 1 })
          service.clock.advance(1_000)
          await sweepAll()
          await put({ value: 'after the sweep of what expired' })
          await remove()
          service.clock.advance(day_ms - 1)
          await sweepAll()
          await put({ value: 'one millisecond before the tombstone may go' })
          await remove()
          service.clock.advance(day_ms)
          await sweepAll()
        }
        const rising = versions.every((version, i) => i === 0 || version > versions[i - 1]!)
        expect({ rising, versions }).toEqual({ rising: true, versions: versions.toSorted((a, b) => a - b) })
        expect(new Set(versions).size).toBe(3 * 7)
        // Within the life of its tombstone they rise by one, and a removal is not a version.
        expect(versions.slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7])
      })

      test('never repeat for a key while puts, removals and sweeps race', async () => {
        const { api_key } = await service.signUp('pro')
        const given = new Map<string, number[]>()
        for (let round = 0; round < 4; round++) {
          await times(90, async (i) => {
            const key = `key-${i % 3}`
            const path = `/v1/kv/race/${key}`
            if (i % 5 === 0) await ask(i, 'DELETE', path, { key: api_key })
            else if (i % 11 === 1) await sweep(nodes[i % nodes.length]!.app.db, service.clock)
            else {
              const body = { value: i, ...(i % 2 === 0 ? { ttl_seconds: 1 } : {}) }
              const answer = await ask(i, 'PUT', path, { key: api_key, body })
              expect(answer.status).toBe(200)
              given.set(key, [...(given.get(key) ?? []), answer.body.version])
            }
          })
          service.clock.advance(day_ms + 2_000)
        }
        expect(given.size).toBe(3)
        for (const versions of given.values()) {
          expect(new Set(versions).size).toBe(versions.length)
          expect(versions.length).toBeGreaterThan(50)
        }
      })
    })

    describe('the audit log', () => {
      test('numbers 200 entries that come at once without a gap, failed ones among them', async () => {
        const { api_key, agent_id, tenant_id } = await service.signUp('pro')
        const caller = {
          kind: 'agent',
          tenant_id,
          agent_id,
          plan: 'pro',
          status: 'active',
          ...requested,
        } as const
        const input = { action: 'undone', workflow_id: null, actor: null, metadata: null }
        const undo = new Error('undone')
        const [answers] = await Promise.all([
          times(200, (i) => ask(i, 'POST', '/v1/audit', { key: api_key, body: { action: `entry-${i}` } })),
          times(50, async (i) => {
            const undone = nodes[i % nodes.length]!.app.db.write(async (tx) => {
              await audit.append(tx, caller, default_plans, input)
              throw undo
            })
            expect(await undone.catch((error) => error)).toBe(undo)
          }),
          times(50, async (i) => {
            const refused = await ask(i, 'POST', '/v1/audit', { key: api_key, body: { action: '' } })
            expect(refused.status).toBe(400)
          }),
        ])
        expect(statuses(answers)).toEqual(Array(200).fill(201))
        const numbers = Array.from({ length: 200 }, (_, i) => i + 1)
        expect(answers.map(({ body }) => body.seq).toSorted((a, b) => a - b)).toEqual(numbers)

        const { body } = await service.ask('GET', '/v1/audit?limit=200', { key: api_key })
        expect(body.next_cursor).toBeNull()
        expect(body.items.map(({ seq }: { seq: number }) => seq)).toEqual(numbers.toReversed())
        expect(new Set(body.items.map(({ id }: { id: string }) => id)).size).toBe(200)
        const actions = body.items.map(({ action }: { action: string }) => action)
        expect(actions.toSorted()).toEqual(numbers.map((n) => `entry-${n - 1}`).toSorted())
      })
    })

    describe('rotations', () => {
      test('20 at once of one agent’s key leave exactly one that is alive', async () => {
        const { admin_key, api_key, agent_id, tenant_id } = await service.signUp('pro')
        const path = `/v1/agents/${agent_id}`
        const answers = await times(20, (i) => ask(i, 'POST', `${path}/rotate-key`, { key: admin_key }))
        expect(statuses(answers)).toEqual(Array(20).fill(200))
        const keys = answers.map(({ body }) => body.api_key)
        expect(new Set(keys).size).toBe(20)
        expect(await keysOf(tenant_id, 'agent', agent_id)).toEqual({ live: 1, in_grace: 0 })

        const dead = Array(nodes.length).fill(401)
        expect(await statusOf(api_key, path)).toEqual(dead)
        const alive = []
        for (const key of keys) alive.push((await statusOf(key, path)).join())
        expect(alive.toSorted()).toEqual([
          Array(nodes.length).fill(200).join(),
          ...Array(19).fill(dead.join()),
        ])
      })

      test('20 at once with a grace leave one key alive and one in grace', async () => {
        const { admin_key, agent_id, tenant_id } = await service.signUp('pro')
        const path = `/v1/agents/${agent_id}`
        const answers = await times(20, (i) =>
          ask(i, 'POST', `${path}/rotate-key`, { key: admin_key, body: { grace_seconds: 3_600 } }),
        )
        expect(statuses(answers)).toEqual(Array(20).fill(200))
        expect(await keysOf(tenant_id, 'agent', agent_id)).toEqual({ live: 1, in_grace: 1 })
      })

      test('20 at once of the admin key leave exactly one that is alive', async () => {
        const { admin_key, tenant_id } = await service.signUp('pro')
        const path = `/v1/tenants/${tenant_id}`
        const answers = await times(20, (i) => ask(i, 'POST', `${path}/rotate-key`, { key: admin_key }))
        // A request after the first rotation came with an ended key.
        expect(statuses(answers).filter((status) => ![200, 401].includes(status))).toEqual([])
        const keys = withStatus(answers, 200).map(({ body }) => body.admin_key)
        expect(keys.length).toBeGreaterThan(0)
        expect(await keysOf(tenant_id, 'admin', '')).toEqual({ live: 1, in_grace: 0 })
        const alive = []
        for (const key of [admin_key, ...keys]) alive.push((await statusOf(key, path)).join())
        expect(alive.filter((status) => !status.includes('401'))).toEqual([
          Array(nodes.length).fill(200).join(),
        ])
      })

      test('that race with the removal of the agent leave no key alive', async () => {
        const { admin_key, tenant_id } = await service.signUp('pro')
        for (let round = 0; round < 5; round++) {
          const { agent_id, api_key } = await service.addAgent(admin_key, 'contested')
          const path = `/v1/agents/${agent_id}`
          const answers = await times(11, (i) =>
            i === 3 + round
              ? ask(i, 'DELETE', path, { key: admin_key })
              : ask(i, 'POST', `${path}/rotate-key`, { key: admin_key, body: { grace_seconds: i % 2 } }),
          )
          expect(withStatus(answers, 204).length).toBe(1)
          expect(statuses(answers).filter((status) => ![200, 204, 404].includes(status))).toEqual([])
          expect(await keysOf(tenant_id, 'agent', agent_id)).toEqual({ live: 0, in_grace: 0 })
          const keys = [api_key, ...withStatus(answers, 200).map(({ body }) => body.api_key)]
          for (const key of keys) expect(await statusOf(key, path)).toEqual(Array(nodes.length).fill(401))
        }
      })
    })

    describe('names', () => {
      test('50 sign-ups at once under one name, however it is written, make one tenant', async () => {
        const name = `Same-${service.engine}`
        const answers = await times(50, (i) =>
          ask(i, 'POST', '/v1/tenants', {
            body: { name: i % 2 === 0 ? name : name.toUpperCase(), owner_email: 'owner@example.com' },
          }),
        )
        expect(statuses(answers)).toEqual([201, ...Array(49).fill(409)])
        for (const { body } of withStatus(answers, 409)) expect(body.error.code).toBe('TENANT_NAME_TAKEN')
      })

      test('50 agents at once under one name make one agent, which counts once', async () => {
        const tenant = await service.signUp('free')
        const answers = await times(50, (i) =>
          ask(i, 'POST', '/v1/agents', { key: tenant.admin_key, body: { name: 'the-same' } }),
        )
        expect(statuses(answers)).toEqual([201, ...Array(49).fill(409)])
        for (const { body } of withStatus(answers, 409)) expect(body.error.code).toBe('AGENT_ID_TAKEN')
        expect(await quotaOf(tenant, 'agents')).toEqual({ used: 2, limit: agents_max })
      })
    })
  },
  environment,
)

onPostgres('on PostgreSQL', () => {
  let url: string
  let wire: Wire
  const service = new TestService(environment)
  beforeAll(async () => {
    url = await newPostgresDatabase()
    wire = await wireTo(url)
    await service.start(wire.url)
  })
  afterAll(async () => {
    await service.stop()
    wire.close()
    await dropPostgresDatabase(url)
  })

  test('a repeat while the first request is still running is 409 IDEMPOTENCY_IN_PROGRESS with Retry-After', async () => {
    const { api_key, tenant_id, agent_id } = await service.signUp()
    const key = 'still-running'
    const body = JSON.stringify({ action: 'slow' })
    const caller = { kind: 'agent', tenant_id, agent_id, plan: 'free', status: 'active' } as const
    const { key_hash, fingerprint } = claimOf({
      ...{ key, caller, route: 'POST /v1/audit' },
      body: Buffer.from(body),
    })
    const first = new SQL({ url, max: 1 })
    await first.unsafe('begin').simple()
    await first.unsafe(
      `insert into idempotency_keys (tenant_id, key_hash, fingerprint, expires_at) values ($1, $2, $3, $4)`,
      [tenant_id, key_hash, fingerprint, service.clock.now() + day_ms],
    )
    const send = () =>
      service.ask('POST', '/v1/audit', {
        key: api_key,
        headers: { 'idempotency-key': key, 'content-type': 'application/json' },
        body,
      })
    const repeat = await send()
    await first.unsafe('rollback').simple()
    await first.close()
    expect(repeat.status).toBe(409)
    expect(repeat.body.error.code).toBe('IDEMPOTENCY_IN_PROGRESS')
    expect(repeat.headers.get('retry-after')).toBe('1')
    expect((await send()).status).toBe(201)
  }, 300_000)

  const cuts: [string, ReturnType<Tap>, string | null][] = [
    ['before COMMIT arrived', 'cut_before', null],
    ['after it had been done', 'cut_after', 'true'],
  ]
  test.each(cuts)(
    'a connection lost %s is 503 OUTCOME_UNKNOWN, and the repeat with the same Idempotency-Key gives one effect',
    async (name, how, replayed) => {
      const { api_key } = await service.signUp()
      const send = () =>
        service.ask('POST', '/v1/audit', {
          key: api_key,
          headers: { 'idempotency-key': `lost ${how}`.replace(' ', '-') },
          body: { action: name },
        })
      let cut = false
      wire.tap = (bytes) => {
        if (cut || !/^Q.{4}COMMIT/s.test(bytes.toString('latin1'))) return 'pass'
        cut = true
        return how
      }
      const lost = await send()
      wire.tap = () => 'pass'
      expect(lost.status).toBe(503)
      expect(lost.body.error.code).toBe('OUTCOME_UNKNOWN')
      expect(lost.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      const repeat = await send()
      expect(repeat.status).toBe(201)
      expect(repeat.headers.get('idempotent-replayed')).toBe(replayed)
      const { body } = await service.ask('GET', '/v1/audit', { key: api_key })
      expect(body.items.map(({ action }: { action: string }) => action)).toEqual([name])
    },
  )
})
