import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { exampleBody } from '../../test/support/contract-examples.ts'
import { forEachDatabase } from '../../test/support/databases.ts'
import { Bench, rowsOf } from '../../test/support/job-bench.ts'
import { purgeStep } from '../../test/support/maintenance.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { requested } from '../../test/support/requested.ts'
import {
  type Answer,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { purge as purgeAudit } from '../audit/store.ts'
import { day_ms, iso } from '../base/clock.ts'
import { Remembered } from '../base/remembered.ts'
import * as checkpoints from '../checkpoints/store.ts'
import { type Awaitable, type Tx, turnOf, unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { DueLists } from '../db/sweep-tenants.ts'
import * as dlq from '../dlq/sweep-store.ts'
import { default_plans, features } from '../features.ts'
import * as inboxes from '../inbox/service.ts'
import * as kv from '../kv/sweep-store.ts'
import * as schedules from '../schedules/store.ts'
import { secretsUnder } from '../secrets/service.ts'
import * as addresses from '../subscriptions/address-store.ts'
import * as delivered from '../subscriptions/attempt-store.ts'

const cron_secret = 'the cron secret of the tests'
const grace_ms = 30 * day_ms

const owned_tables = {
  sqlite: `select m.name as name from sqlite_schema m join pragma_table_info(m.name) c on c.name = 'tenant_id'
            where m.type = 'table' order by m.name`,
  postgres: `select table_name as name from information_schema.columns
              where table_schema = 'public' and column_name = 'tenant_id' order by table_name`,
}

forEachRacedService(
  'the purge of a tenant',
  (service) => {
    let receiver: Receiver
    let tables: string[]
    beforeAll(async () => {
      receiver = await startReceiver()
      const found = await rowsOf<{ name: string }>(service.app.db, owned_tables[service.engine])
      tables = found.map(({ name }) => name)
    })
    afterAll(() => receiver.stop())

    const tick = async () => (await service.ask('POST', '/v1/tick', { key: cron_secret })).body
    const step = () => purgeStep(service.app.db, service.clock.now())

    const tenantRoute = (method: string, { tenant_id, admin_key }: TestTenant, verb = '', body?: object) =>
      service.ask(method, `/v1/tenants/${tenant_id}${verb}`, { key: admin_key, ...(body ? { body } : {}) })
    const remove = (tenant: TestTenant) => tenantRoute('DELETE', tenant, '', { confirm: 'DELETE ALL DATA' })

    /** How many rows each table has of this tenant. */
    async function rowsPerTable(tenant_id: string): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (const table of tables) {
        const text = `select count(*) as count from ${table} where tenant_id = :tenant_id`
        const [row] = await rowsOf<{ count: number }>(service.app.db, text, { tenant_id })
        counts[table] = row!.count
      }
      return counts
    }

    const nothing = () => Object.fromEntries(tables.map((table) => [table, 0]))

    /** Every row of this tenant, in a stable order. */
    async function everythingOf(tenant_id: string): Promise<string> {
      const all: Record<string, unknown> = {}
      for (const table of tables) {
        const rows = await rowsOf<object>(
          service.app.db,
          `select * from ${table} where tenant_id = :tenant_id`,
          {
            tenant_id,
          },
        )
        all[table] = rows.map((row) => JSON.stringify(row)).toSorted()
      }
      return JSON.stringify(all)
    }

    /** Something in every table that has rows of tenants. */
    async function settled(): Promise<TestTenant> {
      const tenant = await service.signUp('pro')
      await fill(service, receiver, tenant)
      const empty = Object.entries(await rowsPerTable(tenant.tenant_id)).filter(([, count]) => count === 0)
      await fillByExamples(
        service,
        tenant,
        empty.map(([table]) => table),
      )
      await tick()
      const counts = await rowsPerTable(tenant.tenant_id)
      expect(Object.entries(counts).filter(([, count]) => count === 0)).toEqual([])
      return tenant
    }

    test('concerns every table with rows of tenants', () => {
      for (const known of ['tenants', 'jobs', 'attempts', 'dlq_items', 'schedules', 'checkpoints']) {
        expect(tables).toContain(known)
      }
    })

    test('comes 30 days after the deletion, not a millisecond before, and leaves nothing in any table', async () => {
      const tenant = await settled()
      const other = await settled()
      const untouched = await everythingOf(other.tenant_id)
      const deleted = await remove(tenant)
      expect(deleted.status).toBe(202)
      expect(deleted.body.purge_at).toBe(iso(service.clock.now() + grace_ms))
      const before = await rowsPerTable(tenant.tenant_id)

      service.clock.advance(grace_ms - 1)
      expect(await step()).toEqual({ purged: [], more: false })
      expect(await rowsPerTable(tenant.tenant_id)).toEqual(before)

      service.clock.advance(1)
      expect(await step()).toEqual({ purged: [tenant.tenant_id], more: false })
      expect(await rowsPerTable(tenant.tenant_id)).toEqual(nothing())
      expect(await everythingOf(other.tenant_id)).toBe(untouched)
      expect(await step()).toEqual({ purged: [], more: false })
    })

    test('is done by the tick, which counts it once; the name is free again, the key is unknown', async () => {
      const tenant = await settled()
      await remove(tenant)
      service.clock.advance(grace_ms)
      expect((await tick()).tenants_purged).toBe(1)
      expect((await tick()).tenants_purged).toBe(0)
      expect(await rowsPerTable(tenant.tenant_id)).toEqual(nothing())
      service.clock.advance(1_000)
      expect((await tenantRoute('GET', tenant)).status).toBe(401)
      const body = { name: tenant.name, owner_email: 'owner@example.com' }
      expect((await service.ask('POST', '/v1/tenants', { body })).status).toBe(201)
    })

    test('by three at once is told once', async () => {
      const tenants = [await settled(), await settled()]
      for (const tenant of tenants) await remove(tenant)
      service.clock.advance(grace_ms)
      const steps = await Promise.all([step(), step(), step()])
      const ids = tenants.map(({ tenant_id }) => tenant_id).toSorted()
      expect(steps.flatMap(({ purged }) => purged).toSorted()).toEqual(ids)
      for (const { tenant_id } of tenants) expect(await rowsPerTable(tenant_id)).toEqual(nothing())
    })

    test('of more tenants than a step takes is told to go on', async () => {
      const tenants = []
      for (let i = 0; i < 6; i++) tenants.push(await service.signUp())
      for (const tenant of tenants) await remove(tenant)
      service.clock.advance(grace_ms)
      const first = await step()
      expect(first.purged).toHaveLength(4)
      expect(first.more).toBe(true)
      const second = await step()
      expect(second.purged).toHaveLength(2)
      expect(second.more).toBe(false)
    })

    test('of tenants that cannot be purged now keeps no other from its own, also of more than a step works on', async () => {
      const { app, clock } = service
      const stuck: string[] = []
      for (let i = 0; i < 5; i++) {
        const tenant = await service.signUp()
        await remove(tenant)
        stuck.push(tenant.tenant_id)
        clock.advance(1)
      }
      const other = await service.signUp()
      await remove(other)
      clock.advance(grace_ms)
      const write = app.db.write.bind(app.db)
      const failing = (tx: Tx) => {
        const run: Tx['run'] = (statement, params) => {
          const fails = statement.name === 'audit.purge' && stuck.includes(String(params.tenant_id))
          if (fails) throw new DbError('busy', 'canceling statement due to statement timeout')
          return tx.run(statement, params)
        }
        return new Proxy(tx, {
          get: (_, name) => {
            const value = name === 'run' ? run : Reflect.get(tx, name)
            return typeof value === 'function' ? value.bind(tx) : value
          },
        })
      }
      const writing = spyOn(app.db, 'write').mockImplementation(((owner: never, given: never) => {
        const [turn, work] = turnOf<(tx: Tx) => Awaitable<unknown>>(owner, given)
        return write(turn, (tx) => work(failing(tx)))
      }) as never)
      const errors: unknown[] = []
      const lists = new DueLists(clock, (error) => errors.push(error))
      try {
        expect(await purgeStep(app.db, clock.now(), lists)).toEqual({ purged: [], more: true })
        expect(await purgeStep(app.db, clock.now(), lists)).toEqual({
          ...{ purged: [other.tenant_id], more: false },
        })
      } finally {
        writing.mockRestore()
      }
      const failed = 'DbError: canceling statement due to statement timeout'
      expect(errors.map(String)).toEqual(Array(2).fill(failed)) // the first of each step
      expect(await step()).toEqual({ purged: stuck.slice(0, 4), more: true })
      expect(await step()).toEqual({ purged: stuck.slice(4), more: false })
    })

    describe('of many rows', () => {
      const rows = 5_300

      async function fillAudit(tenant_id: string): Promise<void> {
        const INSERT = unnamedAcrossTenants(
          'test.fill',
          `insert into audit_entries (tenant_id, seq, id, action, actor, request_id, created_at)
           values (:tenant_id, :seq, :id, 'x', 'admin', 'req', 0)`,
        )
        await service.app.db.write(upkeep, async (tx) => {
          for (let seq = 10; seq < 10 + rows; seq++)
            await tx.run(INSERT, { tenant_id, seq, id: `log_${seq}` })
        })
      }

      test('goes in chunks of 500 rows of a table, goes on where it was left, and ends', async () => {
        const tenant = await settled()
        await fillAudit(tenant.tenant_id)
        await remove(tenant)
        service.clock.advance(grace_ms)
        const left = [(await rowsPerTable(tenant.tenant_id)).audit_entries!]
        let deletes = 0
        service.app.db.onStatement((name) => {
          deletes += name === 'audit.purge' ? 1 : 0
        })
        const purged: string[] = []
        for (let more = true; more; ) {
          const done = await step()
          purged.push(...done.purged)
          more = done.more
          left.push((await rowsPerTable(tenant.tenant_id)).audit_entries!)
          if (!more) break
          // The next step may run on another node, which knows nothing of this one.
          expect((await rowsPerTable(tenant.tenant_id)).tenants).toBe(1)
        }
        service.app.db.onStatement(null)
        expect(purged).toEqual([tenant.tenant_id])
        expect(left.length).toBeGreaterThan(2)
        expect(left.at(-1)).toBe(0)
        expect(deletes).toBeGreaterThanOrEqual(Math.ceil(rows / 500))
        expect(await rowsPerTable(tenant.tenant_id)).toEqual(nothing())
      })

      test('leaves the name taken until the own row of the tenant is gone', async () => {
        const tenant = await settled()
        await fillAudit(tenant.tenant_id)
        await remove(tenant)
        service.clock.advance(grace_ms)
        const body = { name: tenant.name.toUpperCase(), owner_email: 'owner@example.com' }
        const signUp = async () => (await service.ask('POST', '/v1/tenants', { body })).status
        expect(await step()).toEqual({ purged: [], more: true })
        expect(await signUp()).toBe(409)
        while ((await step()).more) expect(await signUp()).toBe(409)
        expect(await rowsPerTable(tenant.tenant_id)).toEqual(nothing())
        expect(await signUp()).toBe(201)
      })

      test('that has begun cannot be taken back', async () => {
        const tenant = await settled()
        await fillAudit(tenant.tenant_id)
        await remove(tenant)
        service.clock.advance(grace_ms)
        expect(await step()).toEqual({ purged: [], more: true })
        expect([401, 409]).toContain((await tenantRoute('POST', tenant, '/restore')).status)
        while ((await step()).more);
        expect(await rowsPerTable(tenant.tenant_id)).toEqual(nothing())
      })
    })

    describe('can be taken back', () => {
      const moments: [when: string, before_ms: number, check: (answer: Answer) => void][] = [
        [
          'until a millisecond before it',
          1,
          (answer) => {
            expect(answer.status).toBe(200)
            expect(answer.body).toMatchObject({ status: 'active', purge_at: null })
          },
        ],
        [
          'no longer once its time has come',
          0,
          (answer) => {
            expect(answer.status).toBe(409)
            expect(answer.body.error).toMatchObject({
              ...{ code: 'INVALID_STATE', details: { status: 'pending_deletion' } },
            })
          },
        ],
      ]
      test.each(moments)('%s', async (_, before_ms, check) => {
        const tenant = await settled()
        await remove(tenant)
        service.clock.advance(grace_ms - before_ms)
        check(await tenantRoute('POST', tenant, '/restore'))
        service.clock.advance(1)
        const { purged } = await step()
        expect(purged).toEqual(before_ms === 0 ? [tenant.tenant_id] : [])
      })
    })
  },
  { CRON_SECRET: cron_secret },
  { background: false },
)

/** Tables that no call above fills: by an example of each route of their feature that creates. */
async function fillByExamples(service: TestService, tenant: TestTenant, tables: string[]): Promise<void> {
  const owners = features.filter(({ migrations = [] }) =>
    migrations.some(({ text }) => tables.some((table) => text.includes(`create table ${table} (`))),
  )
  for (const { route } of owners.flatMap(({ routes = [] }) => routes)) {
    if (!route.create || route.auth.length === 0 || route.path.includes(':')) continue
    const key = route.auth.includes('agent') ? tenant.api_key : tenant.admin_key
    const answer = await service.ask(route.method, route.path, { key, body: exampleBody(route) })
    expect([route.path, Math.floor(answer.status / 100)]).toEqual([route.path, 2])
  }
}

async function fill(service: TestService, receiver: Receiver, tenant: TestTenant): Promise<void> {
  const { admin_key, api_key, agent_id } = tenant
  const callback_url = `${receiver.url}/hook`
  const soon = iso(service.clock.now())
  const later = iso(service.clock.now() + 365 * day_ms)
  const requests: [method: string, path: string, key: string, body: object][] = [
    ['POST', '/v1/agents', admin_key, { name: 'agent-two' }],
    ['POST', `/v1/agents/${agent_id}/rotate-key`, admin_key, { grace_seconds: 600 }],
    ['POST', '/v1/approval-keys', admin_key, { label: 'desk' }],
    ['PUT', '/v1/kv/state/key', api_key, { value: 1 }],
    ['PUT', '/v1/kv/state/short', api_key, { value: 1, ttl_seconds: 60 }],
    ['POST', '/v1/audit', api_key, { action: 'x' }],
    ['POST', '/v1/dlq', api_key, { payload: 1, error: 'x' }],
    ['POST', '/v1/dlq', api_key, { payload: 1, error: 'x', workflow_id: 'many' }],
    ['POST', '/v1/dlq/discard', api_key, { filter: { workflow_id: 'many' } }],
    ['POST', '/v1/schedules', api_key, { callback_url, callback_payload: 1, fire_at: soon }],
    ['POST', '/v1/schedules', api_key, { callback_url, callback_payload: 1, fire_at: later }],
    [
      'POST',
      '/v1/checkpoints',
      api_key,
      { title: 'x', callback_url, expires_at: soon, timeout_action: 'dlq' },
    ],
    ['POST', '/v1/checkpoints', api_key, { title: 'x', callback_url, expires_at: later }],
    ['POST', '/v1/effects', api_key, { type: 'refund', key: 'order-7', payload: 1 }],
    ['PUT', '/v1/effect-policies/refund', admin_key, { approval: 'required' }],
    [
      'POST',
      '/v1/subscriptions',
      admin_key,
      { url: callback_url, types: ['subscription.paused'], workflow_id: 'w' },
    ],
  ]
  for (const [method, path, key, body] of requests) {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const answer = await service.ask(method, path, { key, headers, body })
    expect([path, Math.floor(answer.status / 100)]).toEqual([path, 2])
  }
  await fillVotes(service, tenant)
  await fillEdge(service, tenant)
}

/** A checkpoint with a vote that is not enough, and a comment. */
async function fillVotes(service: TestService, { admin_key, api_key }: TestTenant): Promise<void> {
  const body = { title: 'x', callback_url: null, required_approvals: 2 }
  const asked = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
  const path = `/v1/checkpoints/${asked.body.id}`
  expect((await service.ask('POST', `${path}/approve`, { key: admin_key })).body.status).toBe('pending')
  const comment = await service.ask('POST', `${path}/comments`, { key: admin_key, body: { text: 'x' } })
  expect(comment.status).toBe(201)
}

/** Not through /api, whose calls are counted, and written when their second is over. */
async function fillEdge({ app, url }: TestService, { tenant_id }: TestTenant): Promise<void> {
  const caller = { kind: 'admin', tenant_id, plan: 'pro', status: 'active', ...requested } as const
  const keys = { secrets: secretsUnder('a key of the test') }
  const dependencies = { plans: default_plans, keys, shared: { tokens: new Remembered<never>(1) } }
  const input = { label: '', forward_url: null, workflow_id: null, ttl_seconds: day_ms / 1_000 }
  const { token } = await app.db.write((tx) => inboxes.create(tx, caller, dependencies, input))
  for (let n = 0; n < 2; n++)
    expect((await fetch(`${url}/hook/${token}`, { method: 'POST' })).status).toBe(200)
  const CALLS = unnamedAcrossTenants(
    'test.calls',
    `insert into api_calls (tenant_id, month, calls) values (:tenant_id, '2026-01', 7)`,
  )
  const HOUR = unnamedAcrossTenants(
    'test.usage',
    `insert into usage_hours (tenant_id, hour, feature, calls, failures) values (:tenant_id, :hour, 'test', 1, 0)`,
  )
  const NAMESPACE = unnamedAcrossTenants(
    'test.namespace',
    `insert into kv_namespaces (tenant_id, namespace, created_at) values (:tenant_id, 'state', 0)`,
  )
  const CHECKPOINT = unnamedAcrossTenants(
    'test.seal_checkpoint',
    `insert into seal_checkpoints (tenant_id, size, root, created_at, note) values (:tenant_id, 0, '', 0, '')`,
  )
  const VOTE = unnamedAcrossTenants(
    'test.vote',
    `insert into checkpoint_votes (tenant_id, checkpoint_id, voter, decision, counts, edited, uses, at)
     values (:tenant_id, 'chk_x', 'admin', 'approved', 1, 0, 1, 0)`,
  )
  const COMMENT = unnamedAcrossTenants(
    'test.comment',
    `insert into checkpoint_comments (tenant_id, checkpoint_id, id, author, at, text)
     values (:tenant_id, 'chk_x', 'cmt_x', 'admin', 0, 'x')`,
  )
  await app.db.write(async (tx) => {
    await tx.run(VOTE, { tenant_id })
    await tx.run(COMMENT, { tenant_id })
    await tx.run(CHECKPOINT, { tenant_id })
    await tx.run(NAMESPACE, { tenant_id })
    await tx.run(CALLS, { tenant_id })
    await tx.run(HOUR, { tenant_id, hour: tx.now })
    await fillSubscriptions(tx, tenant_id)
  })
}

/** A delivery and an email, without a receiver. */
async function fillSubscriptions(tx: Tx, tenant_id: string): Promise<void> {
  const event = { event_id: 'evt_x', event_seq: 1, event_type: 'x.y' }
  const outcome = { attempt: 1, started_at: 0, duration_ms: 0, status_code: 204, error: null }
  await delivered.put(tx, tenant_id, 'sub_x', { number: 0, ...event, ...outcome })
  const address = { address_hash: 'x', token_hash: tenant_id, token: '', asked_by: 'sub_x', expires_at: 0 }
  await addresses.insert(tx, tenant_id, address)
  await addresses.countMail(tx, tenant_id)
}

forEachDatabase('A chunk of a purge', (databases) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(databases)
  })

  type Purge = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => number | Promise<number>
  /** `:text` is what may be large. */
  const tables: [table: string, columns: string, values: string, purge: Purge][] = [
    [
      'dlq_items',
      'id, status, payload, error, cause, source, lock_seconds, claims, created_at, updated_at',
      ":id, 'failed', :text, '', '', 'agent', 1, 0, 0, 0",
      dlq.purge,
    ],
    [
      'schedules',
      'id, status, callback_url, callback_payload, fire_at, dlq_on_failure, agent_id, attempts, name, created_at, updated_at',
      ":id, 'fired', '', :text, 0, 0, '', 0, '', 0, 0",
      schedules.purge,
    ],
    [
      'checkpoints',
      `id, status, title, prompt, callback_url, timeout_action, expires_at, agent_id, callback_status, callback_attempts,
       created_at, updated_at`,
      ":id, 'expired', '', :text, '', 'dlq', 0, '', 'none', 0, 0, 0",
      checkpoints.purge,
    ],
    [
      'kv_entries',
      'namespace, key, value, version, created_version, counted, updated_at',
      "'n', :id, :text, 1, 1, 1, 0",
      kv.purge,
    ],
    [
      'audit_entries',
      'seq, id, action, actor, metadata, request_id, created_at',
      ":seq, :id, '', '', :text, '', 0",
      purgeAudit[0],
    ],
  ]
  const bounds: [rows_max: number, bytes_max: number, taken: number][] = [
    [500, 1, 1],
    [500, 100, 1],
    [500, 101, 2],
    [2, 1_000, 2],
    [3, 1_000, 3],
  ]
  test.each(tables.flatMap(([table, ...how]) => bounds.map((bound) => [...bound, table, ...how] as const)))(
    'of %i rows and %i bytes takes %i of three in %s',
    async (...row) => {
      const [rows_max, bytes_max, taken, table, columns, values, purge] = row
      const tenants = [(await bench.tenant()).tenant_id, (await bench.tenant()).tenant_id]
      await bench.write('delete from audit_heads') // a row of its own, which counts
      const insert = `insert into ${table} (tenant_id, ${columns}) values (:tenant_id, ${values})`
      for (const tenant_id of tenants) {
        for (const seq of [1, 2, 3]) {
          await bench.write(insert, { tenant_id, id: `id_${seq}`, seq, text: 'ü'.repeat(50) })
        }
      }
      const [tenant_id, other] = tenants as [string, string]
      expect(await bench.db.write(async (tx) => purge(tx, tenant_id, rows_max, bytes_max))).toBe(taken)
      const leftOf = (tenant_id: string) =>
        bench.rows(`select tenant_id from ${table} where tenant_id = :tenant_id`, { tenant_id })
      expect(await leftOf(tenant_id)).toHaveLength(3 - taken)
      expect(await leftOf(other)).toHaveLength(3)
    },
  )
})
