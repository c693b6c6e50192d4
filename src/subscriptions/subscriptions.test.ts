import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { count_lock_waits } from '../../test/support/postgres.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import {
  happen,
  shown,
  subscribe,
  subscribed,
  tick,
  tickUntil,
  updates,
} from '../../test/support/subscriptions.ts'
import { minute_ms, second_ms } from '../base/clock.ts'
import type { Dependencies } from '../contract/dependencies.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { DbError } from '../db/errors.ts'
import { follows } from '../features.ts'
import { lease_ms } from '../jobs/job.ts'
import { page as pageOfEvents } from '../journal/page-store.ts'
import * as journal from '../journal/service.ts'
import { number as numberEvents } from '../journal/store.ts'
import { attempts_kept_max } from './attempt-store.ts'
import { attempt_offsets_ms, attempts_max, types_max } from './subscription.ts'

forEachRacedService('Subscriptions', (service) => {
  let receiver: Receiver
  let tenant: TestTenant
  beforeEach(async () => {
    receiver = await startReceiver()
    tenant = await service.signUp()
  })
  afterEach(() => receiver.stop())

  const seqs = () => receiver.requests.map(({ body }) => JSON.parse(body).seq)
  const ask = (method: string, path: string, body?: unknown) =>
    service.ask(method, `/v1/subscriptions${path}`, { key: tenant.admin_key, ...(body ? { body } : {}) })
  const attemptsOf = async (id: string) => (await ask('GET', `/${id}/attempts`)).body.items

  describe('A subscription', () => {
    test('answers all of itself, its URL masked, and begins with what happens from now on', async () => {
      await happen(service, tenant, 2)
      const url = `${receiver.url}/events/s3cret-token?x=1`
      const answer = await subscribe(service, tenant, { url, name: 'all', workflow_id: 'w' })
      expect(answer.status).toBe(201)
      const now = new Date(service.clock.now()).toISOString()
      const { items } = (await service.ask('GET', '/v1/events', { key: tenant.admin_key })).body
      const created = items.find(({ type }: { type: string }) => type === 'subscription.created')
      expect(answer.body).toEqual({
        ...{ id: expect.stringMatching(/^sub_/), status: 'active', paused_reason: null, name: 'all' },
        ...{ format: 'standard', url: `${receiver.url}/…?x=1`, to: null, types: updates, workflow_id: 'w' },
        ...{ after: created.seq - 1, behind: 0, attempts: 0, next_attempt_at: null, last_error: null },
        ...{
          last_status_code: null,
          last_attempt_at: null,
          delivered_at: null,
          created_at: now,
          updated_at: now,
        },
      })
      expect(answer.text).not.toContain('s3cret')
    })

    test('gets the event as GET /v1/events shows it, signed, with an id of its own', async () => {
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 1)
      await tickUntil(service, () => receiver.requests.length > 0)
      const { headers, body } = receiver.requests[0]!
      const event = JSON.parse(body)
      expect(Object.keys(event)).toEqual([
        ...['id', 'seq', 'type', 'subject', 'workflow_id', 'workflow_seq', 'agent_id', 'actor'],
        ...['request_id', 'at', 'data'],
      ])
      expect(event).toMatchObject({
        type: 'subscription.updated',
        subject: { kind: 'subscription', id: 'sub_0' },
      })
      expect(headers['webhook-id']).toBe(`${event.id}-${id}`)
      expect(headers['webhook-signature']).toStartWith('v1,')
      expect(headers['x-waystation-event']).toBe('subscription.updated')
      expect(headers['x-waystation-attempt']).toBe('1')
      expect(headers['x-waystation-subscription']).toBe(id)
    })

    test('delivers in order, each once, and passes over what it does not name', async () => {
      const id = await subscribed(service, tenant, { url: receiver.url })
      for (let round = 0; round < 5; round++) {
        await happen(service, tenant, 20)
        await happen(service, tenant, 5, { type: 'subscription.resumed' })
        await tick(service)
      }
      await tickUntil(service, () => receiver.requests.length >= 100)
      await tick(service)
      expect(seqs()).toHaveLength(100)
      expect(seqs()).toEqual(seqs().toSorted((a, b) => a - b))
      const { after, behind, delivered_at, last_error } = await shown(service, tenant, id)
      expect([after, behind, last_error]).toEqual([
        await journal.lastSeq(service.app.db, tenant.tenant_id),
        0,
        null,
      ])
      expect(delivered_at).toBe(new Date(service.clock.now()).toISOString())
    })

    test('takes all types of a noun by noun.*, and only a workflow when it names one', async () => {
      await subscribed(service, tenant, { url: receiver.url, types: ['subscription.*'], workflow_id: 'w' })
      await happen(service, tenant, 1, { workflow_id: 'w' })
      await happen(service, tenant, 1, { workflow_id: 'v', type: 'subscription.resumed' })
      await happen(service, tenant, 1)
      await happen(service, tenant, 1, { workflow_id: 'w', type: 'subscription.resumed' })
      await tickUntil(service, () => receiver.requests.length >= 2)
      await tick(service)
      expect(receiver.requests.map(({ headers }) => headers['x-waystation-event'])).toEqual([
        'subscription.updated',
        'subscription.resumed',
      ])
    })

    test('gets no event about itself', async () => {
      const id = await subscribed(service, tenant, { url: receiver.url, types: ['subscription.*'] })
      await ask('PATCH', `/${id}`, { name: 'other' })
      await happen(service, tenant, 1)
      await tickUntil(service, () => receiver.requests.length > 0)
      await tick(service)
      expect(receiver.requests.map(({ body }) => JSON.parse(body).subject.id)).toEqual(['sub_0'])
    })
  })

  describe('Retries', () => {
    test('come at the offsets of Standard Webhooks over three days with the same webhook-id; then it is paused, with an event', async () => {
      receiver.answer = () => ({ status: 503 })
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 2)
      await tickUntil(service, () => receiver.requests.length === 1)
      for (let n = 1; n < attempts_max; n++) {
        const gap = attempt_offsets_ms[n]! - attempt_offsets_ms[n - 1]!
        service.clock.advance(gap - 1)
        await tick(service)
        expect(receiver.requests).toHaveLength(n)
        service.clock.advance(1)
        await tickUntil(service, () => receiver.requests.length === n + 1)
      }
      await tickUntil(service, async () => (await shown(service, tenant, id)).status === 'paused')
      expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      expect(receiver.requests.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(
        Array.from({ length: attempts_max }, (_, n) => String(n + 1)),
      )
      expect(await shown(service, tenant, id)).toMatchObject({
        ...{
          paused_reason: 'failing',
          last_error: 'status 503',
          last_status_code: 503,
          behind: expect.any(Number),
        },
      })
      await tick(service)
      const paused = await journal.page(
        service.app.db,
        tenant.tenant_id,
        { type: 'subscription.paused' },
        { after: 0, rows_max: 9 },
      )
      expect(paused.map(({ subject_id, actor, data }) => [subject_id, actor, data])).toEqual([
        [id, 'service', '{"last_error":"status 503","reason":"failing"}'],
      ])
    })

    test('end at once at 410, and resuming goes on with the event that was not taken', async () => {
      receiver.answer = () => ({ status: 410 })
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 2)
      await tickUntil(service, async () => (await shown(service, tenant, id)).status === 'paused')
      expect(receiver.requests).toHaveLength(1)
      expect((await shown(service, tenant, id)).paused_reason).toBe('gone')
      await happen(service, tenant, 1)
      await tick(service)
      expect(receiver.requests).toHaveLength(1)
      receiver.answer = () => ({})
      const resumed = await ask('PATCH', `/${id}`, { paused: false })
      expect(resumed.body).toMatchObject({ status: 'active', paused_reason: null })
      await tickUntil(service, () => receiver.requests.length >= 4)
      const [first, second] = receiver.requests
      expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']!)
    })

    test('of one event hold the later ones back, whose first attempts follow once it is taken', async () => {
      let refused = 0
      receiver.answer = ({ body }) =>
        JSON.parse(body).subject.id === 'sub_1' && refused++ < 2 ? { status: 500 } : {}
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 3)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      expect(receiver.requests).toHaveLength(2)
      service.clock.advance(5 * second_ms)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 2)
      service.clock.advance(5 * minute_ms)
      await tickUntil(service, () => receiver.requests.length === 5)
      expect(
        receiver.requests.map(({ body, headers }) => [
          JSON.parse(body).subject.id,
          headers['x-waystation-attempt'],
        ]),
      ).toEqual([
        ['sub_0', '1'],
        ['sub_1', '1'],
        ['sub_1', '2'],
        ['sub_1', '3'],
        ['sub_2', '1'],
      ])
      await tick(service)
      expect(
        (await attemptsOf(id)).map((row: Record<string, unknown>) => [
          row.number,
          row.attempt,
          row.status_code,
          row.error,
        ]),
      ).toEqual([
        [4, 1, 204, null],
        [3, 3, 204, null],
        [2, 2, 500, 'status'],
        [1, 1, 500, 'status'],
        [0, 1, 204, null],
      ])
    })
  })

  describe('A node', () => {
    test('that dies between delivery and settlement: the event comes again under the same webhook-id, and is counted as tried', async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      receiver.answer = async () => {
        if (receiver.requests.length === 1) await promise
        return {}
      }
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 1)
      const first = tick(service)
      await receiver.received(1)
      service.clock.advance(lease_ms)
      await tickUntil(service, () => receiver.requests.length === 2)
      await tickUntil(service, async () => (await shown(service, tenant, id)).delivered_at !== null)
      resolve()
      await first
      const sent = receiver.requests.map(({ headers }) => [
        headers['webhook-id'],
        headers['x-waystation-attempt'],
      ])
      expect(sent).toEqual([
        [sent[0]![0], '1'],
        [sent[0]![0], '2'],
      ])
      await happen(service, tenant, 1)
      await tickUntil(service, () => receiver.requests.length === 3)
      expect(receiver.requests[2]!.headers['webhook-id']).not.toBe(sent[0]![0])
    })
  })

  describe('Replay', () => {
    test('delivers again from a number with the same webhook-ids, or skips what lies before it', async () => {
      const id = await subscribed(service, tenant, { url: receiver.url })
      await happen(service, tenant, 3)
      await tickUntil(service, () => receiver.requests.length === 3)
      const first = receiver.requests.map(({ headers }) => headers['webhook-id'])
      const replayed = await ask('POST', `/${id}/replay`, { after: seqs()[0] })
      expect(replayed.status).toBe(200)
      await tickUntil(service, () => receiver.requests.length === 5)
      expect(receiver.requests.slice(3).map(({ headers }) => headers['webhook-id'])).toEqual(first.slice(1))
      await ask('PATCH', `/${id}`, { paused: true })
      await happen(service, tenant, 2)
      await tick(service)
      const head = await journal.lastSeq(service.app.db, tenant.tenant_id)
      await ask('POST', `/${id}/replay`, { after: head - 1 })
      await ask('PATCH', `/${id}`, { paused: false })
      await tickUntil(service, () => receiver.requests.length === 6)
      expect(seqs().at(-1)).toBe(head)
      expect((await ask('POST', `/${id}/replay`, { after: 1_000_000 })).body.behind).toBe(0)
    })
  })

  describe('Events that get their numbers meanwhile', () => {
    const changes: [string, (id: string) => Promise<unknown>][] = [
      ['is resumed', (id) => ask('PATCH', `/${id}`, { paused: false })],
      ['gets other types', (id) => ask('PATCH', `/${id}`, { types: updates, paused: false })],
      ['is set back', (id) => ask('POST', `/${id}/replay`, { after: 1 })],
    ]
    test.each(changes)('reach a subscription that %s', async (what, change) => {
      const { db } = service.app
      const dependencies = { jobs: { wake: () => {} } } as unknown as Dependencies
      const is_set_back = what === 'is set back'
      const id = await subscribed(service, tenant, { url: receiver.url, paused: !is_set_back })
      await happen(service, tenant, 1)
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const given = Promise.withResolvers<void>()
      // On SQLite there is one writer, so that nothing comes between.
      const numbered = db.write(async (tx) => {
        const { after, count } = await numberEvents(tx, tenant.tenant_id, 500)
        const events = () => pageOfEvents(tx, tenant.tenant_id, {}, { after, rows_max: count })
        for (const { numbered } of follows) await numbered?.(tx, dependencies, tenant.tenant_id, events)
        given.resolve()
        if (db.engine === 'postgres') await held
      })
      await given.promise
      let over = false
      const changed = change(id).finally(() => {
        over = true
      })
      const waiting = unnamedAcrossTenants<{ n: number }>('test.waiting', count_lock_waits)
      // The role of the service is not shown what the connections of its login wait for.
      const login = unnamedAcrossTenants('test.login', 'set local role none')
      const waits = () =>
        db.read(async (q) => (await q.all(login, {})) && Number((await q.one(waiting, {}))!.n))
      while (!over && db.engine === 'postgres' && (await waits()) === 0);
      if (over) for (let n = 0; n < 3; n++) await tick(service)
      release()
      await Promise.all([numbered, changed])
      for (let n = 0; n < 5 && receiver.requests.length === 0; n++) await tick(service)
      expect(receiver.requests.length).toBeGreaterThan(0)
    })
  })

  test('what was passed over is not read again', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url, workflow_id: 'w' })
    let reads = 0
    const readsOf = async (change: () => Promise<unknown>, requests: number) => {
      reads = 0
      service.app.db.onStatement((name) => {
        if (name === 'journal.page_workflow') reads++
      })
      await change()
      await tickUntil(service, () => reads > 0 && receiver.requests.length === requests)
      await tickUntil(service, async () => (await shown(service, tenant, id)).behind === 0)
      service.app.db.onStatement(null)
      return reads
    }
    await happen(service, tenant, 3, { workflow_id: 'w', type: 'subscription.resumed' })
    await tick(service)
    expect(await readsOf(() => ask('PATCH', `/${id}`, { name: 'other' }), 0)).toBe(1)
    expect(await readsOf(() => happen(service, tenant, 1, { workflow_id: 'w' }), 1)).toBe(1)
  })

  test(`the last ${attempts_kept_max} attempts are kept, and listed in pages`, async () => {
    const id = await subscribed(service, tenant, { url: receiver.url })
    await happen(service, tenant, attempts_kept_max + 1)
    await tickUntil(service, () => receiver.requests.length === attempts_kept_max + 1)
    await tickUntil(service, async () => (await shown(service, tenant, id)).behind === 0)
    const first = (await ask('GET', `/${id}/attempts?limit=60`)).body
    const second = (await ask('GET', `/${id}/attempts?limit=60&cursor=${first.next_cursor}`)).body
    expect(second.next_cursor).toBeNull()
    const numbers = [...first.items, ...second.items].map(({ number }: { number: number }) => number)
    expect(numbers).toEqual(Array.from({ length: attempts_kept_max }, (_, n) => attempts_kept_max - n))
  })

  describe('The URL', () => {
    test('is in no answer, no log, no event and no row in clear', async () => {
      receiver.answer = () => ({ status: 500 })
      const secret = 'T0SECRETB0SECRET'
      const url = `${receiver.url}/services/${secret}`
      const id = await subscribed(service, tenant, { url })
      await happen(service, tenant, 1)
      await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      await ask('PATCH', `/${id}`, { url: `${url}2` })
      const texts = [
        (await ask('GET', `/${id}`)).text,
        (await ask('GET', '')).text,
        (await ask('GET', `/${id}/attempts`)).text,
        JSON.stringify(service.logged),
        JSON.stringify(await journal.page(service.app.db, tenant.tenant_id, {}, { after: 0, rows_max: 99 })),
      ]
      for (const text of texts) expect(text).not.toContain(secret)
      expect(receiver.requests[0]!.target).toBe(`/services/${secret}`)
      if (service.engine !== 'sqlite') return
      const file = service.database_url.replace('sqlite:', '')
      for (const path of [file, `${file}-wal`]) expect(readFileSync(path).includes(secret)).toBe(false)
    })

    test.each([
      ['ftp://example.com/', '/url'],
      ['http://10.0.0.1/', '/url'],
    ])('%s is refused by the egress guard, at creation and at a change', async (url, path) => {
      const refused = await subscribe(service, tenant, { url })
      expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([400, path])
      const id = await subscribed(service, tenant, { url: receiver.url })
      expect((await ask('PATCH', `/${id}`, { url })).status).toBe(400)
    })
  })

  test.each([
    [{}, '/url', 'or /to is required'],
    [{ url: 'https://example.com/', to: 'a@example.com' }, '/url', 'cannot be given with /to'],
    [{ to: 'a@example.com' }, '/to', 'needs SMTP_URL, which this service does not have'],
    [
      { url: 'https://example.com/', types: ['nothing.*', 'subscription.gone'] },
      '/types/0',
      'is not a type of event',
    ],
  ])('%j is refused', async (body, path, message) => {
    const { status, body: answer } = await subscribe(service, tenant, body)
    expect([status, answer.error.details.issues[0]]).toEqual([400, { path, message }])
  })

  test.each([
    [types_max, 201],
    [types_max + 1, 400],
  ])('%d types answer %d', async (count, status) => {
    const types = Array.from({ length: count }, () => 'subscription.*')
    expect((await subscribe(service, tenant, { url: receiver.url, types })).status).toBe(status)
  })

  test('the quota bounds them, and a deleted one makes room and is delivered nothing', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => subscribed(service, tenant, { url: receiver.url })))
    const refused = await subscribe(service, tenant, { url: receiver.url })
    expect([refused.status, refused.body.error.code]).toEqual([402, 'QUOTA_EXCEEDED'])
    for (const id of ids) expect((await ask('DELETE', `/${id}`)).status).toBe(204)
    const gone = await ask('DELETE', `/${ids[0]}`)
    expect([gone.status, gone.body.error.code]).toEqual([404, 'SUBSCRIPTION_NOT_FOUND'])
    await happen(service, tenant, 1)
    await tick(service)
    expect(receiver.requests).toEqual([])
  })

  test('of a tenant that waits for deletion delivers nothing, and goes on once it is restored', async () => {
    await subscribed(service, tenant, { url: receiver.url })
    const deleted = await service.ask('DELETE', `/v1/tenants/${tenant.tenant_id}`, {
      ...{ key: tenant.admin_key, body: { confirm: 'DELETE ALL DATA' } },
    })
    expect(deleted.status).toBe(202)
    await happen(service, tenant, 1)
    await tick(service)
    expect(receiver.requests).toEqual([])
    await service.ask('POST', `/v1/tenants/${tenant.tenant_id}/restore`, { key: tenant.admin_key })
    await tickUntil(service, () => receiver.requests.length === 1)
  })

  test('a checkpoint that waits arrives in the form of Slack, with the address of its approval page and no key', async () => {
    await subscribed(service, tenant, { url: receiver.url, format: 'slack', types: ['checkpoint.*'] })
    const asked = await service.ask('POST', '/v1/checkpoints', {
      ...{ key: tenant.api_key, body: { title: 'Refund <7>?', callback_url: null, timeout_seconds: 3_600 } },
    })
    expect(asked.status).toBe(201)
    const { id } = asked.body
    await tickUntil(service, () => receiver.requests.length === 1)
    const details = 'Waits for a decision · 60 minutes left · agent agent-one'
    const url = `${service.url}/approve/${id}`
    const plain = (text: string) => ({ type: 'plain_text', text, emoji: false })
    expect(JSON.parse(receiver.requests[0]!.body)).toEqual({
      text: `*Refund &lt;7&gt;?*\n${details}\n<${url}|Review and decide>`,
      blocks: [
        { type: 'header', text: plain('Refund <7>?') },
        { type: 'context', elements: [plain(details)] },
        {
          type: 'actions',
          elements: [{ type: 'button', style: 'primary', text: plain('Review and decide'), url }],
        },
      ],
    })
    await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
    await tickUntil(service, () => receiver.requests.length === 2)
    expect(JSON.parse(receiver.requests[1]!.body).text).toStartWith(
      `*Checkpoint approved*\ncheckpoint ${id} · It was approved`,
    )
  })

  test('an event that cannot be read ends a lease, and sends none again that was taken', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url })
    await happen(service, tenant, 5)
    const one = service.app.db.one.bind(service.app.db)
    let reads = 0
    const reading = spyOn(service.app.db, 'one').mockImplementation(((...asked: Parameters<typeof one>) => {
      const is_before_third = asked[0].name === 'subscriptions.is_held' && ++reads === 2
      if (is_before_third) throw new DbError('busy', 'too many ask')
      return one(...asked)
    }) as typeof one)
    try {
      await tickUntil(service, async () => (await shown(service, tenant, id)).behind === 0)
      expect(reads).toBeGreaterThan(2)
      expect(new Set(seqs()).size).toBe(5)
      expect(seqs()).toHaveLength(5)
    } finally {
      reading.mockRestore()
    }
  })

  test('a receiver that does not answer holds no other subscription back', async () => {
    const slow = await startReceiver()
    const { promise, resolve } = Promise.withResolvers<void>()
    slow.answer = async () => {
      await promise
      return {}
    }
    await subscribed(service, tenant, { url: slow.url })
    await subscribed(service, tenant, { url: receiver.url })
    await happen(service, tenant, 10)
    const ticked = tick(service)
    await slow.received(1)
    await receiver.received(10)
    resolve()
    await ticked
    await slow.stop()
  })
})
