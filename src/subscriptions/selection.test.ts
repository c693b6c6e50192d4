import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { happen, shown, subscribed, tick, tickUntil, updates } from '../../test/support/subscriptions.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import * as journal from '../journal/service.ts'

const resumes = ['subscription.resumed']

const PLANT = unnamedAcrossTenants(
  'test.plant',
  `insert into events (tenant_id, seq, id, type, subject_kind, subject_id, actor, at, waiting, failing, data)
   with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
   select :tenant_id, :head + n, 'evt_0000000000000000000' || (1000000 + n), 'subscription.resumed', 'subscription', :subject_id, 'admin', :now, 0, 0,
          '{}'
     from numbers`,
)
const SET_HEAD = unnamedAcrossTenants(
  'test.set_head',
  'update event_heads set seq = :seq where tenant_id = :tenant_id',
)

forEachRacedService('A subscription that takes others from now on', (service) => {
  let receiver: Receiver
  let tenant: TestTenant
  beforeEach(async () => {
    receiver = await startReceiver()
    tenant = await service.signUp()
  })
  afterEach(() => receiver.stop())

  const change = (id: string, body: object) =>
    service.ask('PATCH', `/v1/subscriptions/${id}`, { key: tenant.admin_key, body })
  const delivered = () => receiver.requests.map(({ body }) => JSON.parse(body).seq)
  const head = async () => {
    await service.app.db.write((tx) => journal.lockHead(tx, tenant.tenant_id))
    return journal.lastSeq(service.app.db, tenant.tenant_id)
  }
  /** Of what the test leaves, which has its number then. */
  const seqsOf = async (about: {
    type?: 'subscription.updated' | 'subscription.resumed'
    workflow_id?: string
  }) => {
    await happen(service, tenant, 1, about)
    await tick(service)
    const page = await journal.page(service.app.db, tenant.tenant_id, {}, { after: 0, rows_max: 1_000 })
    return page.findLast(({ subject_id }) => subject_id === 'sub_0')!.seq
  }

  test.each([
    ['types', { types: resumes }, { types: updates }, { type: 'subscription.updated' as const }],
    ['workflow', { types: updates, workflow_id: 'a' }, { workflow_id: null }, {}],
    [
      'types and workflow',
      { types: resumes, workflow_id: 'a' },
      { types: updates, workflow_id: 'w' },
      { workflow_id: 'w' },
    ],
  ])(
    'of other %s gets nothing that had happened before, whatever it had delivered',
    async (_, old, other, about) => {
      for (const count of [0, 1]) {
        const id = await subscribed(service, tenant, { url: receiver.url, ...old })
        await seqsOf(about)
        if (count > 0) {
          const of_old = 'workflow_id' in old ? { workflow_id: 'a' } : {}
          const type = old.types === resumes ? 'subscription.resumed' : 'subscription.updated'
          const seq = await seqsOf({ type, ...of_old })
          await tickUntil(service, () => delivered().at(-1) === seq)
          await seqsOf(about)
        }
        const before = receiver.requests.length
        await happen(service, tenant, 1, about) // without a number yet
        expect((await change(id, other)).body.behind).toBe(0)
        for (let n = 0; n < 3; n++) await tick(service)
        expect(delivered().slice(before)).toEqual([])
        const next = await seqsOf(about)
        await tickUntil(service, () => receiver.requests.length > before)
        expect(delivered().slice(before)).toEqual([next])
        await service.ask('DELETE', `/v1/subscriptions/${id}`, { key: tenant.admin_key })
      }
    },
  )

  test.each([true, false])(
    'while events wait gets what has happened since the first of them; paused: %p',
    async (paused) => {
      receiver.answer = () => ({ status: 500 })
      const id = await subscribed(service, tenant, { url: receiver.url, types: resumes, paused })
      await seqsOf({})
      const first = await seqsOf({ type: 'subscription.resumed' })
      const second = await seqsOf({})
      if (!paused) await tickUntil(service, async () => (await shown(service, tenant, id)).attempts === 1)
      receiver.requests.length = 0
      receiver.answer = () => ({ status: 200 })
      const changed = await change(id, { types: [...updates, ...resumes] })
      expect(changed.body).toMatchObject({ after: first - 1, behind: second - first + 1 })
      const third = await seqsOf({})
      if (paused) await change(id, { paused: false })
      await tickUntil(service, () => receiver.requests.length >= 3)
      for (let n = 0; n < 3; n++) await tick(service)
      const about_others = receiver.requests
        .map(({ body }) => JSON.parse(body))
        .filter(({ subject }) => subject.id === 'sub_0')
      expect(about_others.map(({ seq }) => seq)).toEqual([first, second, third])
    },
  )

  test('while it is paused and nothing waits gets what happens from then on, once it is resumed', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url, types: resumes, paused: true })
    const last = await seqsOf({})
    expect(await shown(service, tenant, id)).toMatchObject({ behind: expect.any(Number) })
    expect((await change(id, { types: updates })).body).toMatchObject({ after: last, behind: 0 })
    const next = await seqsOf({})
    await change(id, { paused: false })
    await tickUntil(service, () => receiver.requests.length > 0)
    for (let n = 0; n < 3; n++) await tick(service)
    expect(delivered()).toEqual([next])
  })

  test('that was set back meanwhile still gets what it was set back to', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url, types: resumes, paused: true })
    const waits = await seqsOf({ type: 'subscription.resumed' })
    await service.ask('POST', `/v1/subscriptions/${id}/replay`, {
      key: tenant.admin_key,
      body: { after: waits },
    })
    await seqsOf({})
    const { db } = service.app
    const { write } = db
    // Between the look at what is passed and the change.
    db.write = (async (...given: Parameters<typeof write>) => {
      if (given[0] !== tenant.tenant_id) return write.apply(db, given)
      db.write = write
      await service.ask('POST', `/v1/subscriptions/${id}/replay`, {
        key: tenant.admin_key,
        body: { after: waits - 1 },
      })
      return write.apply(db, given)
    }) as never
    expect((await change(id, { types: [...updates, ...resumes] })).body.after).toBe(waits - 1)
  })

  test('passes over long stretches of the journal in parts: others are served meanwhile, and 503 says that more is left', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url, types: resumes, paused: true })
    const last = await seqsOf({})
    const { db } = service.app
    const { tenant_id } = tenant
    // About itself, which it does not get.
    const count = 7_000
    await db.write((tx) =>
      tx.run(PLANT, { tenant_id, head: last, subject_id: id, count, now: service.clock.now() }),
    )
    await db.write((tx) => tx.run(SET_HEAD, { tenant_id, seq: last + count }))
    let turns = 0
    let is_over = false
    const countTurns = () => {
      turns += 1
      if (!is_over) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    const first = await change(id, { types: updates })
    is_over = true
    expect([first.status, first.body.error?.code, first.headers.get('retry-after')]).toEqual([
      ...[503, 'UNAVAILABLE', '1'],
    ])
    expect(turns).toBeGreaterThan(100)
    const between = await shown(service, tenant, id)
    expect(between.types).toEqual(resumes)
    expect([between.after > last, between.after < last + count]).toEqual([true, true])
    expect((await change(id, { types: updates })).body).toMatchObject({ types: updates, after: last + count })
  })

  test('shows how far it is: nothing is behind it, however much has happened that it does not take', async () => {
    const id = await subscribed(service, tenant, { url: receiver.url, types: resumes })
    await seqsOf({})
    await seqsOf({})
    expect(await shown(service, tenant, id)).toMatchObject({ after: await head(), behind: 0 })
  })
})
