// Operations on many dead letters, as clients see them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { becomes } from '../../test/support/patience.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import {
  cron_secret,
  forEachRacedService,
  type TestService,
  type TestTenant,
} from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'
import { type ErrorCode, errors } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { limits } from '../base/limit.ts'
import { unnamedAcrossTenants, upkeep } from '../db/db.ts'
import { slots_max } from './operation-store.ts'

const items_max = limits.get('dlq.operation_items')!.value
const per_second_max = limits.get('dlq.operation_per_second')!.value
const per_second_min = limits.get('dlq.operation_per_second_min')!.value
const looked_max = limits.get('dlq.operation_looked_at_rows')!.value
const kept_ms = limits.get('dlq.operation_kept')!.value

type Body = Record<string, unknown>

forEachRacedService('Operations on many dead letters', (service: TestService) => {
  const ask = (method: string, path: string, key: string, body?: object) =>
    service.ask(method, path, { key, ...(body && { body }) })

  async function capture({ api_key }: TestTenant, body: Body = {}): Promise<string> {
    service.clock.advance(1)
    const answer = await ask('POST', '/v1/dlq', api_key, { payload: 1, error: 'boom', ...body })
    expect(answer.status).toBe(201)
    return answer.body.id
  }

  /** Letters made inside the engine, with the counter of their quota. */
  async function plant({ tenant_id }: TestTenant, count: number, cause = 'common', workflow_id = 'wf') {
    const prefix = newId('dlq', service.clock.now()).slice(0, 20)
    service.clock.advance(1)
    await service.app.db.write(upkeep, async (tx) => {
      await tx.run(
        unnamedAcrossTenants(
          'test.plant',
          `insert into dlq_items (tenant_id, id, status, source, lock_seconds, claims, created_at, updated_at, cause,
             workflow_id, error, payload)
           with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
           select :tenant_id, :prefix || (1000000 + i), 'failed', 'agent', 300, 0, 1, 1, :cause, :workflow_id,
                  'e', '1' from numbers`,
        ),
        { tenant_id, prefix, cause, workflow_id },
      )
      await tx.run(
        unnamedAcrossTenants(
          'test.count',
          `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'dlq_items', :count, 0)
           on conflict (tenant_id, quota) do update set used = quota_usage.used + excluded.used`,
        ),
        { tenant_id, count },
      )
    })
  }

  const discard = ({ admin_key }: TestTenant, body: Body) => ask('POST', '/v1/dlq/discard', admin_key, body)

  const read = async ({ api_key }: TestTenant, id: string) =>
    (await ask('GET', `/v1/dlq/operations/${id}`, api_key)).body

  /** Once it has ended; its steps run by themselves. */
  async function ended(tenant: TestTenant, id: string) {
    for (;;) {
      const operation = await read(tenant, id)
      if (operation.status !== 'running') return operation
      await Bun.sleep(2)
    }
  }

  async function itemsOf({ api_key }: TestTenant, id: string) {
    const all: Body[] = []
    for (let cursor = ''; ; ) {
      const { body } = await ask('GET', `/v1/dlq/operations/${id}/items?limit=200${cursor}`, api_key)
      all.push(...body.items)
      if (body.next_cursor === null) return all
      cursor = `&cursor=${body.next_cursor}`
    }
  }

  const used = async ({ tenant_id, admin_key }: TestTenant) =>
    (await ask('GET', `/v1/tenants/${tenant_id}`, admin_key)).body.quota.dlq_items.used

  const statusOf = async ({ api_key }: TestTenant, id: string) =>
    (await ask('GET', `/v1/dlq/${id}`, api_key)).body.status

  function expectIssues(answer: Awaited<ReturnType<typeof discard>>, ...issues: [string, string][]) {
    expect(answer.status).toBe(400)
    expect(answer.body.error).toEqual({
      code: 'VALIDATION_FAILED',
      message: errors.VALIDATION_FAILED.message,
      details: { issues: issues.map(([path, message]) => ({ path, message })) },
      request_id: answer.headers.get('x-request-id'),
    })
  }

  function expectRefusal(answer: Awaited<ReturnType<typeof discard>>, code: ErrorCode) {
    const request_id = answer.headers.get('x-request-id')
    expect(answer.body).toEqual({ error: { code, message: errors[code].message, request_id } })
    expect(answer.status).toBe(errors[code].status)
  }

  const no_filter = {
    ...{ status: null, source: null, source_id: null, cause: null, workflow_id: null, from: null, to: null },
    ids_count: null,
  }

  test('discards those that match, and says what became of each', async () => {
    const tenant = await service.signUp()
    const [one, two, other] = [
      await capture(tenant, { error: 'no customer cus_1' }),
      await capture(tenant, { error: 'no customer cus_2' }),
      await capture(tenant, { error: 'other' }),
    ]
    service.clock.advance(1_000)
    const now = iso(service.clock.now())
    const answer = await discard(tenant, { filter: { cause: 'no customer cus_…' } })
    expect(answer.status).toBe(202)
    const operation = {
      id: expect.stringMatching(/^dop_[0-9a-z]{26}$/),
      verb: 'discard',
      status: 'running',
      filter: { ...no_filter, status: 'failed', cause: 'no customer cus_…' },
      matched: 2,
      done: 0,
      failed: 0,
      skipped: 0,
      max: items_max,
      per_second: null,
      more: false,
      looked_until: null,
      waiting_for: null,
      created_at: now,
      updated_at: now,
      finished_at: null,
    }
    expect(answer.body).toEqual(operation)
    const { id } = answer.body
    const after = await ended(tenant, id)
    expect(after).toEqual({ ...operation, id, status: 'succeeded', done: 2, finished_at: now })
    const done = { outcome: 'done', code: null, redriven_as: null }
    expect(await itemsOf(tenant, id)).toEqual([
      { id: one, ...done },
      { id: two, ...done },
    ])
    expect(await Promise.all([one, two, other].map((letter) => statusOf(tenant, letter)))).toEqual([
      'archived',
      'archived',
      'failed',
    ])
    const { body } = await ask('GET', `/v1/dlq/${one}`, tenant.api_key)
    expect(body).toMatchObject({ updated_at: now, resolved_at: null, locked_by: null })
    expect(await used(tenant)).toBe(1)
    const list = await ask('GET', '/v1/dlq/operations', tenant.api_key)
    expect(list.body).toEqual({ items: [after], next_cursor: null })
  })

  test('begun by an agent are the same', async () => {
    const tenant = await service.signUp()
    await capture(tenant)
    const answer = await ask('POST', '/v1/dlq/discard', tenant.api_key, { filter: {} })
    expect([answer.status, answer.body.matched]).toEqual([202, 1])
    expect((await ended(tenant, answer.body.id)).done).toBe(1)
  })

  test('with dry_run count, and change nothing', async () => {
    const tenant = await service.signUp()
    const id = await capture(tenant)
    await capture(tenant, { error: 'other' })
    for (const [body, matched] of [
      [{ filter: {} }, 2],
      [{ filter: {}, max: 1 }, 1],
      [{ filter: { cause: 'boom' } }, 1],
      [{ filter: { cause: 'none' } }, 0],
      [{ filter: { ids: [id] } }, 1],
    ] as [Body, number][]) {
      const answer = await discard(tenant, { ...body, dry_run: true })
      expect([answer.status, answer.text]).toEqual([200, JSON.stringify({ matched })])
    }
    expect((await ask('GET', '/v1/dlq/operations', tenant.api_key)).body.items).toEqual([])
    expect(await statusOf(tenant, id)).toBe('failed')
  })

  test('without a match have succeeded at once', async () => {
    const tenant = await service.signUp()
    const { status, body } = await discard(tenant, { filter: {} })
    expect(status).toBe(202)
    expect(body).toMatchObject({ status: 'succeeded', matched: 0, done: 0, finished_at: body.created_at })
    expect(await itemsOf(tenant, body.id)).toEqual([])
  })

  test('take the filter of the list', async () => {
    const tenant = await service.signUp()
    const first = await capture(tenant, { workflow_id: 'wf-1' })
    service.clock.advance(1_000)
    const later = iso(service.clock.now())
    const second = await capture(tenant, { workflow_id: 'wf-1' })
    await capture(tenant, { workflow_id: 'wf-2' })
    const matched = async (filter: Body) => (await discard(tenant, { filter, dry_run: true })).body.matched
    expect(await matched({ workflow_id: 'wf-1' })).toBe(2)
    expect(await matched({ workflow_id: 'wf-1', from: later })).toBe(1)
    expect(await matched({ to: later })).toBe(1)
    expect(await matched({ source: 'agent', status: 'failed' })).toBe(3)
    expect(await matched({ source: 'schedule' })).toBe(0)
    expect(await matched({ source_id: 'sch_1' })).toBe(0)
    expect(await matched({ ids: [first, second, first], from: later })).toBe(1)
    expect(await matched({ workflow_id: null, from: null, ids: null })).toBe(3)
  })

  test('of named items say of each that is there what became of it', async () => {
    const tenant = await service.signUp()
    const [failed, claimed, archived, resolved, expired] = [
      await capture(tenant),
      await capture(tenant),
      await capture(tenant),
      await capture(tenant),
      await capture(tenant),
    ]
    const move = (id: string, verb: string, body?: object) =>
      ask('POST', `/v1/dlq/${id}/${verb}`, tenant.api_key, body)
    await move(expired, 'claim', { lock_seconds: 1 })
    await move(claimed, 'claim')
    await move(archived, 'claim')
    await move(archived, 'fail')
    await move(resolved, 'resolve')
    service.clock.advance(1_000)
    const ids = [resolved, failed, 'dlq_none', claimed, archived, expired, failed, '', 'x y\n']
    const strict = await discard(tenant, { filter: { ids, status: 'failed' }, dry_run: true })
    expect(strict.body).toEqual({ matched: 2 })
    const { body } = await discard(tenant, { filter: { ids } })
    expect(body.filter).toEqual({ ...no_filter, ids_count: ids.length })
    expect(await ended(tenant, body.id)).toMatchObject({ matched: 5, done: 2, skipped: 3, failed: 0 })
    const skipped = (code: string) => ({ outcome: 'skipped', code, redriven_as: null })
    const done = { outcome: 'done', code: null, redriven_as: null }
    expect(await itemsOf(tenant, body.id)).toEqual([
      { id: failed, ...done },
      { id: claimed, ...skipped('ALREADY_CLAIMED') },
      { id: archived, ...skipped('INVALID_STATE') },
      { id: resolved, ...skipped('INVALID_STATE') },
      { id: expired, ...done },
    ])
    expect(await used(tenant)).toBe(1)
  })

  test('skip what was claimed, resolved or removed before its turn', async () => {
    const tenant = await service.signUp()
    const ids = [await capture(tenant), await capture(tenant), await capture(tenant), await capture(tenant)]
    // One a second: the first is taken at once, the others wait for the clock.
    const { body } = await discard(tenant, { filter: {}, per_second: 1 })
    while ((await read(tenant, body.id)).done < 1) await Bun.sleep(2)
    await ask('POST', `/v1/dlq/${ids[1]}/claim`, tenant.api_key)
    await ask('POST', `/v1/dlq/${ids[2]}/resolve`, tenant.api_key)
    await ask('DELETE', `/v1/dlq/${ids[3]}`, tenant.api_key)
    expect((await itemsOf(tenant, body.id)).map(({ outcome }) => outcome)).toEqual([
      ...['done', 'waiting', 'waiting', 'waiting'],
    ])
    await finish(tenant, body.id)
    expect((await itemsOf(tenant, body.id)).map(({ code }) => code)).toEqual([
      ...[null, 'ALREADY_CLAIMED', 'INVALID_STATE', 'DLQ_NOT_FOUND'],
    ])
    expect(await read(tenant, body.id)).toMatchObject({ status: 'succeeded', done: 1, skipped: 3 })
    expect(await used(tenant)).toBe(1)
  })

  /** Lets the clock run on until it has ended. */
  async function finish(tenant: TestTenant, id: string): Promise<void> {
    while ((await read(tenant, id)).status === 'running') {
      service.clock.advance(1_000)
      await tick()
      await Bun.sleep(2)
    }
  }

  test('keep to per_second by the clock, however often there is a tick', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 4; i++) await capture(tenant)
    const { body } = await discard(tenant, { filter: {}, per_second: 2 })
    const done = async () => (await read(tenant, body.id)).done
    while ((await done()) < 1) await Bun.sleep(2)
    for (let i = 0; i < 3; i++) await tick()
    expect(await done()).toBe(1)
    service.clock.advance(499)
    await tick()
    expect(await done()).toBe(1)
    service.clock.advance(1)
    await tick()
    expect(await done()).toBe(2)
    service.clock.advance(60_000) // what was missed is not caught up
    await tick()
    expect(await done()).toBe(3)
    await finish(tenant, body.id)
    expect(await done()).toBe(4)
  })

  test('go on at that pace without a tick, with TICK=external too', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 3; i++) await capture(tenant)
    const { body } = await discard(tenant, { filter: {}, per_second: 2 })
    for (let done = 1; done <= 3; done++) {
      await becomes(async () => (await read(tenant, body.id)).done, done)
      service.clock.advance(500)
    }
    expect((await read(tenant, body.id)).status).toBe('succeeded')
  })

  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

  test('take max of them, the oldest, and say that there may be more', async () => {
    const tenant = await service.signUp()
    const ids = [await capture(tenant), await capture(tenant), await capture(tenant)]
    const { body } = await discard(tenant, { filter: {}, max: 2 })
    expect(body).toMatchObject({ matched: 2, more: true, max: 2 })
    await ended(tenant, body.id)
    expect((await itemsOf(tenant, body.id)).map(({ id }) => id)).toEqual(ids.slice(0, 2))
    const rest = await discard(tenant, { filter: {}, max: 2 })
    expect(rest.body).toMatchObject({ matched: 1, more: false })
    await ended(tenant, rest.body.id)
    expect(await used(tenant)).toBe(0)
  })

  test(`of ${items_max} take several parts and steps, and page through their items`, async () => {
    const tenant = await service.signUp('pro')
    await plant(tenant, items_max + 1)
    const { body } = await discard(tenant, { filter: {}, max: items_max })
    expect(body).toMatchObject({ matched: items_max, more: true })
    expect(await ended(tenant, body.id)).toMatchObject({ done: items_max, skipped: 0, failed: 0 })
    const items = await itemsOf(tenant, body.id)
    expect(new Set(items.map(({ id }) => id)).size).toBe(items_max)
    expect(items.every(({ outcome }) => outcome === 'done')).toBe(true)
    expect(await used(tenant)).toBe(1)
    const odd = await ask('GET', `/v1/dlq/operations/${body.id}/items?limit=150`, tenant.api_key)
    expect(odd.body.items).toEqual(items.slice(0, 150))
    const next = `/v1/dlq/operations/${body.id}/items?limit=150&cursor=${odd.body.next_cursor}`
    expect((await ask('GET', next, tenant.api_key)).body.items).toEqual(items.slice(150, 300))
  }, 300_000)

  test(`look at ${looked_max} at most in search of those that match, and say so`, async () => {
    const tenant = await service.signUp('pro')
    await plant(tenant, looked_max - 10)
    const from = iso(service.clock.now())
    await plant(tenant, 10)
    const rare = { workflow_id: 'rare' }
    expect((await discard(tenant, { filter: rare })).body).toMatchObject({ matched: 0, more: true })
    await plant(tenant, 1, 'rare', rare.workflow_id)
    const early = await discard(tenant, { filter: rare })
    expect(early.body).toMatchObject({ matched: 0, more: true, looked_until: from })
    expect(await read(tenant, early.body.id)).toEqual(early.body)
    const counted = await discard(tenant, { filter: rare, dry_run: true })
    expect(counted.body).toEqual({ matched: 0, looked_until: from })
    const further = { filter: { ...rare, from: counted.body.looked_until } }
    expect((await discard(tenant, { ...further, dry_run: true })).body).toEqual({ matched: 1 })
    expect((await discard(tenant, further)).body).toMatchObject({ matched: 1, more: false })
  }, 300_000)

  test(`reach the items of a cause behind ${looked_max} others`, async () => {
    const tenant = await service.signUp('pro')
    await plant(tenant, looked_max + 1)
    await plant(tenant, 2, 'rare')
    await plant(tenant, 1, 'rarer')
    const { items } = (await ask('GET', '/v1/dlq?cause=rare', tenant.api_key)).body
    const ids: string[] = items.map((item: Body) => item.id).toReversed()
    await ask('POST', `/v1/dlq/${ids[0]}/claim`, tenant.api_key, { lock_seconds: 1 })
    const counted = () => discard(tenant, { filter: { cause: 'rare' }, dry_run: true })
    expect((await counted()).body).toEqual({ matched: 1 })
    service.clock.advance(1_000)
    expect((await counted()).body).toEqual({ matched: 2 })
    const { body } = await discard(tenant, { filter: { cause: 'rare' } })
    expect(body).toMatchObject({ matched: 2, more: false, looked_until: null })
    expect(await ended(tenant, body.id)).toMatchObject({ done: 2 })
    expect((await itemsOf(tenant, body.id)).map(({ id }) => id)).toEqual(ids)
  }, 300_000)

  test('cancelled leave the rest as it was', async () => {
    const tenant = await service.signUp()
    const ids = [await capture(tenant), await capture(tenant), await capture(tenant)]
    const { body } = await discard(tenant, { filter: {}, per_second: 1 })
    while ((await read(tenant, body.id)).done < 1) await Bun.sleep(2)
    service.clock.advance(10)
    const cancelled = await ask('POST', `/v1/dlq/operations/${body.id}/cancel`, tenant.admin_key)
    expect(cancelled.status).toBe(200)
    expect(cancelled.body).toEqual({
      ...{ ...body, status: 'cancelled', done: 1 },
      ...{ updated_at: iso(service.clock.now()), finished_at: iso(service.clock.now()) },
    })
    service.clock.advance(60_000)
    await tick()
    expect(await read(tenant, body.id)).toEqual(cancelled.body)
    const again = await ask('POST', `/v1/dlq/operations/${body.id}/cancel`, tenant.api_key)
    expect([again.status, again.body]).toEqual([200, cancelled.body])
    expect(await Promise.all(ids.map((id) => statusOf(tenant, id)))).toEqual(['archived', 'failed', 'failed'])
    expect((await itemsOf(tenant, body.id)).map(({ outcome }) => outcome)).toEqual([
      'done',
      'waiting',
      'waiting',
    ])
    const jobs = await service.app.db.all(
      unnamedAcrossTenants<{ kind: string }>(
        'test.jobs',
        'select kind from jobs where tenant_id = :tenant_id',
      ),
      { tenant_id: tenant.tenant_id },
    )
    expect(jobs).toEqual([])
  })

  test(`run ${slots_max} at once for a tenant, one more is refused, and there is room when one ends`, async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 30; i++) await capture(tenant)
    const paced = { filter: {}, per_second: per_second_min }
    const answers = await Promise.all(Array.from({ length: slots_max + 3 }, () => discard(tenant, paced)))
    const running = answers.filter(({ status }) => status === 202)
    expect(running).toHaveLength(slots_max)
    for (const answer of answers.filter(({ status }) => status !== 202))
      expectRefusal(answer, 'TOO_MANY_OPERATIONS')
    await ask('POST', `/v1/dlq/operations/${running[1]!.body.id}/cancel`, tenant.api_key)
    const next = await discard(tenant, paced)
    expect(next.status).toBe(202)
    expectRefusal(await discard(tenant, paced), 'TOO_MANY_OPERATIONS')
    expect((await discard(tenant, { filter: { cause: 'none' } })).status).toBe(202)
    const stranger = await service.signUp()
    await capture(stranger)
    expect((await discard(stranger, { filter: {} })).status).toBe(202)
  })

  test('begin once for one Idempotency-Key', async () => {
    const tenant = await service.signUp()
    await capture(tenant)
    const send = () =>
      service.ask('POST', '/v1/dlq/discard', {
        key: tenant.admin_key,
        headers: { 'idempotency-key': 'once' },
        body: { filter: {} },
      })
    const first = await send()
    await ended(tenant, first.body.id)
    const second = await send()
    expect([second.status, second.text]).toEqual([202, first.text])
    expect((await ask('GET', '/v1/dlq/operations', tenant.api_key)).body.items).toHaveLength(1)
  })

  test.each([
    [{}, [['/filter', 'is required']]],
    [{ filter: null }, [['/filter', 'is required']]],
    [{ filter: [] }, [['/filter', 'must be object']]],
    [
      { filter: { caus: 'x', id: 1 } },
      [
        ['/filter/caus', 'is not known'],
        ['/filter/id', 'is not known'],
      ],
    ],
    [
      { filter: { status: 'archived' } },
      [['/filter/status', 'must be equal to one of the allowed values (failed)']],
    ],
    [
      { filter: { source: 'webhook' } },
      [['/filter/source', 'must be equal to one of the allowed values (agent, schedule, checkpoint)']],
    ],
    [{ filter: { from: 'yesterday' } }, [['/filter/from', 'must match format "date-time"']]],
    [{ filter: { cause: 'a\u0000b' } }, [['/filter/cause', 'must be well-formed text without NUL']]],
    [{ filter: { ids: ['\ud800'] } }, [['/filter/ids/0', 'must be well-formed text without NUL']]],
    [{ filter: { ids: 'dlq_1' } }, [['/filter/ids', 'must be array']]],
    [{ filter: { ids: [1] } }, [['/filter/ids/0', 'must be string']]],
    [{ filter: { ids: ['x'.repeat(65)] } }, [['/filter/ids/0', 'must not have more than 64 characters']]],
    [{ filter: {}, max: 0 }, [['/max', 'must be >= 1']]],
    [{ filter: {}, max: items_max + 1 }, [['/max', `must be <= ${items_max}`]]],
    [{ filter: {}, per_second: 0 }, [['/per_second', `must be >= ${per_second_min}`]]],
    [{ filter: {}, per_second: per_second_min / 2 }, [['/per_second', `must be >= ${per_second_min}`]]],
    [{ filter: {}, per_second: per_second_max + 1 }, [['/per_second', `must be <= ${per_second_max}`]]],
    [{ filter: {}, dry_run: 'yes' }, [['/dry_run', 'must be boolean']]],
  ] as [Body, [string, string][]][])('refuse %j', async (body, issues) => {
    const tenant = await service.signUp()
    expectIssues(await discard(tenant, body), ...issues)
  })

  test('take as many ids as they may have items, and no more', async () => {
    const tenant = await service.signUp()
    const ids = Array.from({ length: items_max }, (_, i) => `dlq_${i}`)
    const answer = await discard(tenant, { filter: { ids }, max: items_max, per_second: per_second_max })
    expect([answer.status, answer.body.matched, answer.body.filter.ids_count]).toEqual([202, 0, items_max])
    expect((await discard(tenant, { filter: { ids: [...ids, 'one more'] } })).status).toBe(400)
  })

  test("of another tenant answer as none at all, and never reach another's items", async () => {
    const [owner, stranger] = [await service.signUp(), await service.signUp()]
    const id = await capture(owner)
    const { body } = await discard(owner, { filter: {}, per_second: 0.001 })
    await capture(owner)
    for (const key of [stranger.api_key, stranger.admin_key]) {
      for (const [method, suffix] of [
        ['GET', ''],
        ['GET', '/items'],
        ['POST', '/cancel'],
      ] as const)
        expectRefusal(await ask(method, `/v1/dlq/operations/${body.id}${suffix}`, key), 'OPERATION_NOT_FOUND')
      expect((await ask('GET', '/v1/dlq/operations', key)).body.items).toEqual([])
      const others = await ask('POST', '/v1/dlq/discard', key, { filter: { ids: [id] }, dry_run: true })
      expect(others.body).toEqual({ matched: 0 })
    }
  })

  test('stop while the tenant waits for deletion, and go on after a restore', async () => {
    const tenant = await service.signUp()
    for (let i = 0; i < 3; i++) await capture(tenant)
    const { body } = await discard(tenant, { filter: {}, per_second: 1 })
    while ((await read(tenant, body.id)).done < 1) await Bun.sleep(2)
    const path = `/v1/tenants/${tenant.tenant_id}`
    await ask('DELETE', path, tenant.admin_key)
    service.clock.advance(60_000)
    for (let i = 0; i < 3; i++) await tick()
    await ask('POST', `${path}/restore`, tenant.admin_key)
    expect((await read(tenant, body.id)).done).toBeLessThan(3)
    await finish(tenant, body.id)
    expect(await read(tenant, body.id)).toMatchObject({ status: 'succeeded', done: 3 })
  })

  test('that ended are kept for 7 days with their items, then removed with the bytes that they counted', async () => {
    const tenant = await service.signUp()
    await capture(tenant)
    const stored = async () => {
      await service.app.db.maintain()
      const { body } = await ask('GET', `/v1/tenants/${tenant.tenant_id}`, tenant.admin_key)
      return body.quota.storage_bytes.used
    }
    const before = await stored()
    const { body } = await discard(tenant, { filter: {} })
    await ended(tenant, body.id)
    expect(await stored()).toBeGreaterThan(before)
    service.clock.advance(kept_ms - 1)
    await tick()
    expect((await itemsOf(tenant, body.id)).length).toBe(1)
    service.clock.advance(1)
    await tick()
    expectRefusal(await ask('GET', `/v1/dlq/operations/${body.id}`, tenant.api_key), 'OPERATION_NOT_FOUND')
    expect(await stored()).toBe(before)
  })

  describe('that send again', () => {
    let receiver: Receiver
    beforeAll(async () => {
      receiver = await startReceiver()
    })
    afterAll(() => receiver.stop())

    const redrive = ({ admin_key }: TestTenant, body: Body) => ask('POST', '/v1/dlq/redrive', admin_key, body)
    const item = async ({ api_key }: TestTenant, id: string) =>
      (await ask('GET', `/v1/dlq/${id}`, api_key)).body

    /** Schedules that fail, and their dead letters, oldest first. 410 ends the attempts at once. */
    async function failedSchedules(tenant: TestTenant, count: number): Promise<string[]> {
      receiver.answer = () => ({ status: 410 })
      const letters: string[] = []
      for (let i = 0; i < count; i++) {
        service.clock.advance(1)
        const { body } = await ask('POST', '/v1/schedules', tenant.api_key, {
          ...{
            callback_url: `${receiver.url}/${i}`,
            callback_payload: { i },
            fire_at: '2020-01-01T00:00:00Z',
          },
          dlq_on_failure: true,
        })
        await tick()
        const failed = await ask('GET', `/v1/schedules/${body.id}`, tenant.api_key)
        letters.push(failed.body.dead_letter_id)
      }
      return letters
    }

    test('make one successor of each, and name it', async () => {
      const tenant = await service.signUp('pro')
      const letters = await failedSchedules(tenant, 12)
      receiver.answer = () => ({ status: 204 })
      const { body } = await redrive(tenant, {
        filter: { cause: 'the callback of schedule sch_… failed: status 410' },
      })
      expect(body).toMatchObject({ verb: 'redrive', matched: 12 })
      expect(await ended(tenant, body.id)).toMatchObject({
        done: 12,
        failed: 0,
        skipped: 0,
        waiting_for: null,
      })
      const items = await itemsOf(tenant, body.id)
      expect(items.map(({ id }) => id)).toEqual(letters)
      for (const { id, redriven_as } of items) {
        const letter = await item(tenant, String(id))
        expect(letter).toMatchObject({ status: 'resolved', redriven_as })
        const { body: successor } = await ask('GET', `/v1/schedules/${redriven_as}`, tenant.api_key)
        expect(successor).toMatchObject({ retry_of: letter.source_id, redrive_of: id })
      }
      expect(new Set(items.map(({ redriven_as }) => redriven_as)).size).toBe(12)
      expect(await used(tenant)).toBe(0)
      expect((await redrive(tenant, { filter: {}, dry_run: true })).body).toEqual({ matched: 0 })
    })

    test('skip what was redriven, resolved or claimed; what cannot be sent again has failed', async () => {
      const tenant = await service.signUp('pro')
      const [one, two, three] = await failedSchedules(tenant, 3)
      receiver.answer = () => ({ status: 204 })
      const checkpoint = await ask('POST', '/v1/checkpoints', tenant.api_key, {
        ...{ title: 'May I?', callback_url: `${receiver.url}/decided`, timeout_action: 'dlq' },
      })
      service.clock.advance(1)
      await ask('POST', `/v1/checkpoints/${checkpoint.body.id}/reject`, tenant.admin_key)
      const rejected = (await ask('GET', '/v1/dlq?source=checkpoint', tenant.api_key)).body.items[0].id
      const agent = await capture(tenant)
      await ask('POST', `/v1/dlq/${two}/redrive`, tenant.admin_key)
      await ask('POST', `/v1/dlq/${three}/claim`, tenant.api_key)
      const ids = [one, two, three, rejected, agent]
      const { body } = await redrive(tenant, { filter: { ids } })
      expect(await ended(tenant, body.id)).toMatchObject({ matched: 5, done: 2, skipped: 2, failed: 1 })
      const outcomes = (await itemsOf(tenant, body.id)).map(({ id, outcome, code }) => [id, outcome, code])
      expect(outcomes).toEqual([
        [one, 'done', null],
        [two, 'skipped', 'INVALID_STATE'],
        [three, 'skipped', 'ALREADY_CLAIMED'],
        [rejected, 'failed', 'INVALID_STATE'],
        [agent, 'done', null],
      ])
    })

    test('take archived items when asked to, which can then be claimed again', async () => {
      const tenant = await service.signUp()
      const id = await capture(tenant)
      const gone = await discard(tenant, { filter: {} })
      await ended(tenant, gone.body.id)
      const { body } = await redrive(tenant, { filter: { status: 'archived' } })
      expect(body).toMatchObject({ matched: 1, filter: { status: 'archived' } })
      await ended(tenant, body.id)
      expect([await statusOf(tenant, id), await used(tenant)]).toEqual(['failed', 1])
      expect((await redrive(tenant, { filter: { status: 'claimed' } })).status).toBe(400)
    })

    test('wait while active_schedules is full, say so, and go on once there is room', async () => {
      const tenant = await service.signUp() // 100 of them
      const letters = await failedSchedules(tenant, 3)
      const schedules: string[] = []
      const fire_at = iso(service.clock.now() + 10 * day_ms)
      for (let i = 0; i < 99; i++) {
        const { body } = await ask('POST', '/v1/schedules', tenant.api_key, {
          ...{ callback_url: `${receiver.url}/later`, callback_payload: 1, fire_at },
        })
        schedules.push(body.id)
      }
      receiver.answer = () => new Promise(() => {}) // the first successor stays active
      const { body } = await redrive(tenant, { filter: { source: 'schedule' } })
      while ((await read(tenant, body.id)).waiting_for === null) await Bun.sleep(2)
      expect(await read(tenant, body.id)).toMatchObject({
        ...{ status: 'running', done: 1, failed: 0, waiting_for: 'active_schedules' },
      })
      for (const id of schedules.slice(0, 2)) await ask('DELETE', `/v1/schedules/${id}`, tenant.api_key)
      receiver.answer = () => ({ status: 204 })
      await finish(tenant, body.id)
      expect(await read(tenant, body.id)).toMatchObject({
        ...{ status: 'succeeded', done: 3, failed: 0, skipped: 0, waiting_for: null },
      })
      expect((await itemsOf(tenant, body.id)).map(({ id }) => id)).toEqual(letters)
    })
  })
})
