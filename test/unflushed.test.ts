// Between a commit and its flush, over HTTP: no answer, no refusal, no read, no callback and no wake-up rests on what a
// power cut could take back, and what comes meanwhile settles as if the flush took no time.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { HeldFlush } from './support/held-flush.ts'
import { startReceiver } from './support/receiver.ts'
import { type Answer, cron_secret, type TestService, type TestTenant } from './support/service.ts'
import { startUnflushed, type Unflushed } from './support/unflushed.ts'

let started: Unflushed
let flush: HeldFlush
let service: TestService
let tenant: TestTenant

beforeEach(async () => {
  started = await startUnflushed()
  ;({ flush, service } = started)
  tenant = await service.signUp('free')
})
afterEach(() => started.stop())

const path = '/v1/kv/state/key'
const put = (body: object, headers: Record<string, string> = {}) =>
  service.ask('PUT', path, { key: tenant.api_key, body, headers })
const get = () => service.ask('GET', path, { key: tenant.api_key })

/** Asks one after the other, each once the one before has reached the queue; then says that none was answered. */
async function unanswered(...asks: (() => Promise<Answer>)[]): Promise<Promise<Answer>[]> {
  const asked: Promise<Answer>[] = []
  for (const ask of asks) {
    asked.push(ask())
    for (let i = 0; i < 3; i++) await service.ask('GET', '/livez')
  }
  await flush.begun(1)
  expect(await started.answered(asked)).toBe(0)
  return asked
}

async function answersOf(asked: Promise<Answer>[]): Promise<Answer[]> {
  flush.release()
  return Promise.all(asked)
}

describe('a put', () => {
  test('is answered, and read, when its flush has returned', async () => {
    await put({ value: 1 })
    flush.hold()
    const asked = await unanswered(() => put({ value: 2 }))
    expect((await get()).body).toMatchObject({ value: 1, version: 1 })
    const [answer] = await answersOf(asked)
    expect(answer).toMatchObject({ status: 200, body: { version: 2 } })
    expect((await get()).body).toMatchObject({ value: 2, version: 2 })
  })

  test('with a version: of two that expect the same one wins, and the other is refused once that is durable', async () => {
    await put({ value: 1 })
    flush.hold()
    const change = (value: number) => () => put({ value, cas_version: 1 })
    const asked = await unanswered(change(2), change(3))
    flush.next()
    expect((await asked[0]!).status).toBe(200)
    const [, loser] = await answersOf(asked)
    expect([loser!.status, (await get()).body.value]).toEqual([409, 2])
  })

  test('a chain of versions, each of which rests on one that is not durable, holds as a whole', async () => {
    flush.hold()
    const asked = await unanswered(
      ...[0, 1, 2, 3, 4].map((version) => () => put({ value: version, cas_version: version })),
    )
    expect((await get()).status).toBe(404)
    const answers = await answersOf(asked)
    expect(answers.map(({ body }) => body.version)).toEqual([1, 2, 3, 4, 5])
    expect((await get()).body).toMatchObject({ value: 4, version: 5 })
  })

  test('deleted before it was durable: neither is shown, and the version is not used again', async () => {
    flush.hold()
    const asked = await unanswered(
      () => put({ value: 1 }),
      () => service.ask('DELETE', path, { key: tenant.api_key }),
      () => put({ value: 2 }),
    )
    const [first, , third] = await answersOf(asked)
    expect(third!.body.version).toBeGreaterThan(first!.body.version)
    expect((await get()).body.value).toBe(2)
  })
})

describe('equal Idempotency-Keys', () => {
  test('give one effect and one answer, which leave when the first is durable', async () => {
    flush.hold()
    const append = () =>
      service.ask('POST', '/v1/audit', {
        ...{ key: tenant.api_key, headers: { 'idempotency-key': 'once' }, body: { action: 'paid' } },
      })
    const answers = await answersOf(await unanswered(append, append, append))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const replayed = answers.map(({ headers }) => headers.get('idempotent-replayed'))
    expect(replayed).toEqual([null, 'true', 'true'])
    const list = await service.ask('GET', '/v1/audit?action=paid', { key: tenant.admin_key })
    expect(list.body.items).toHaveLength(1)
  })

  test('with another body: the refusal, too, waits for the first', async () => {
    flush.hold()
    const append = (action: string) => () =>
      service.ask('POST', '/v1/audit', {
        ...{ key: tenant.api_key, headers: { 'idempotency-key': 'once' }, body: { action } },
      })
    const [first, second] = await answersOf(await unanswered(append('paid'), append('sent')))
    expect([first!.status, second!.status]).toEqual([201, 422])
  })
})

describe('limits', () => {
  test('the last place of a quota is given once, and the refusal waits for what took it', async () => {
    for (let i = 1; i < 24; i++) await service.addAgent(tenant.admin_key, `agent-no-${i}`)
    flush.hold()
    const create = (name: string) => () =>
      service.ask('POST', '/v1/agents', { key: tenant.admin_key, body: { name } })
    const answers = await answersOf(await unanswered(create('last'), create('too-many')))
    expect(answers.map(({ status }) => status)).toEqual([201, 402])
    const { body } = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
    expect(body.quota.agents).toEqual({ used: 25, limit: 25 })
  })

  test('a place that is made is given at once, and one that is taken is not given before', async () => {
    const create = () => service.ask('POST', '/api/webhook', { key: tenant.api_key, body: {} })
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push((await create()).body.data.id)
    const remove = (id: string) => () => service.ask('DELETE', `/api/webhook/${id}`, { key: tenant.api_key })
    flush.hold()
    const in_turn = await answersOf(await unanswered(remove(ids[0]!), create))
    expect(in_turn.map(({ status }) => status)).toEqual([200, 201])
    flush.hold()
    const too_soon = await answersOf(await unanswered(remove(ids[1]!), create, create, remove(ids[2]!)))
    expect(too_soon.map(({ status }) => status)).toEqual([200, 201, 402, 200])
    const { body } = await service.ask('GET', `/v1/tenants/${tenant.tenant_id}`, { key: tenant.admin_key })
    expect(body.quota.inboxes).toMatchObject({ used: 2, limit: 3 })
  })

  test('a rate limit allows as many as it says, and each answer waits', async () => {
    flush.hold()
    const check = () =>
      service.ask('POST', '/api/rate-limit/check', {
        ...{ key: tenant.api_key, body: { key: 'k', limit: 3, windowSeconds: 60 } },
      })
    const answers = await answersOf(await unanswered(check, check, check, check, check))
    expect(answers.map(({ body }) => body.data.allowed)).toEqual([true, true, true, false, false])
  })

  test('a name is given once', async () => {
    flush.hold()
    const sign_up = () =>
      service.ask('POST', '/v1/tenants', { body: { name: 'the-one', owner_email: 'a@example.com' } })
    const answers = await answersOf(await unanswered(sign_up, sign_up))
    expect(answers.map(({ status }) => status)).toEqual([201, 409])
  })
})

describe('races', () => {
  test('of two agents that claim a dead letter one gets it, and the other is refused once that is durable', async () => {
    const { id } = (
      await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body: { payload: {}, error: 'declined' } })
    ).body
    const other = await service.addAgent(tenant.admin_key, 'agent-two')
    flush.hold()
    const claim = (key: string) => () => service.ask('POST', `/v1/dlq/${id}/claim`, { key })
    const asked = await unanswered(claim(tenant.api_key), claim(other.api_key))
    expect((await service.ask('GET', `/v1/dlq/${id}`, { key: tenant.api_key })).body.status).toBe('failed')
    const [winner, loser] = await answersOf(asked)
    expect([winner!.status, loser!.status, loser!.body.error.code]).toEqual([200, 409, 'ALREADY_CLAIMED'])
    const oldest = await service.ask('POST', '/v1/dlq/claim', { key: other.api_key })
    expect(oldest.status).toBe(204)
  })

  test('of an approval and a rejection the first holds, and the other is refused once that is durable', async () => {
    const { id } = (
      await service.ask('POST', '/v1/checkpoints', {
        ...{ key: tenant.api_key, body: { title: 'ship it', callback_url: null } },
      })
    ).body
    flush.hold()
    const decide = (verb: string) => () =>
      service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key: tenant.admin_key })
    const answers = await answersOf(await unanswered(decide('reject'), decide('approve'), decide('reject')))
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 409])
    const { body } = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })
    expect(body.status).toBe('rejected')
  })

  test('a schedule that is cancelled behind its lease is sent as long as the cancellation is not durable, and stays cancelled', async () => {
    const receiver = await startReceiver()
    try {
      const { id } = (
        await service.ask('POST', '/v1/schedules', {
          key: tenant.api_key,
          body: { callback_url: receiver.url, callback_payload: 1, fire_at: '2020-01-01T00:00:00Z' },
        })
      ).body
      const cancel = () => service.ask('DELETE', `/v1/schedules/${id}`, { key: tenant.api_key })
      const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
      flush.hold()
      const asked = await unanswered(tick, cancel)
      expect(receiver.requests).toHaveLength(0)
      flush.next()
      await receiver.received(1)
      const [, cancelled] = await answersOf(asked)
      const { body } = await service.ask('GET', `/v1/schedules/${id}`, { key: tenant.api_key })
      expect([cancelled!.status, body.status, receiver.requests.length]).toEqual([204, 'cancelled', 1])
    } finally {
      await receiver.stop()
    }
  })
})

describe('keys', () => {
  test('one that was revoked ends for every request when that is answered', async () => {
    const agent = await service.addAgent(tenant.admin_key, 'leaver')
    const look = async () => (await service.ask('GET', path, { key: agent.api_key })).status
    expect(await look()).toBe(404)
    flush.hold()
    const asked = await unanswered(() =>
      service.ask('DELETE', '/v1/agents/leaver', { key: tenant.admin_key }),
    )
    service.clock.advance(1_001) // no longer remembered
    expect(await look()).toBe(404)
    await answersOf(asked)
    expect(await look()).toBe(401)
  })
})

describe('effects', () => {
  test('a request that waits for a decision learns of it when it is durable', async () => {
    const created = await service.ask('POST', '/v1/checkpoints', {
      ...{ key: tenant.api_key, body: { title: 'ship it', callback_url: null } },
    })
    const { id } = created.body
    const waiting = service.ask('GET', `/v1/checkpoints/${id}?wait=55`, { key: tenant.api_key })
    for (let i = 0; i < 3; i++) await service.ask('GET', '/livez')
    flush.hold()
    const asked = await unanswered(() =>
      service.ask('DELETE', `/v1/checkpoints/${id}`, { key: tenant.api_key }),
    )
    expect(await started.answered([waiting])).toBe(0)
    const look = await service.ask('GET', `/v1/checkpoints/${id}`, { key: tenant.api_key })
    expect(look.body.status).toBe('pending')
    await answersOf(asked)
    expect((await waiting).body.status).toBe('cancelled')
  })

  test('a callback is sent when its lease is durable', async () => {
    const receiver = await startReceiver()
    try {
      await service.ask('POST', '/v1/schedules', {
        key: tenant.api_key,
        body: { callback_url: receiver.url, callback_payload: 1, fire_at: '2020-01-01T00:00:00Z' },
      })
      flush.hold()
      const asked = await unanswered(() => service.ask('POST', '/v1/tick', { key: cron_secret }))
      expect(receiver.requests).toHaveLength(0)
      await answersOf(asked)
      await receiver.received(1)
    } finally {
      await receiver.stop()
    }
  })
})

describe('a disk that fails or does not answer', () => {
  test('a flush that fails: what waits is 503 OUTCOME_UNKNOWN, all later writes 503, and nothing unflushed is read', async () => {
    await put({ value: 1 })
    flush.hold()
    const asked = await unanswered(
      () => put({ value: 2 }),
      () => put({ value: 3, cas_version: 9 }),
    )
    const late = [4, 5, 6].map((value) => put({ value }))
    flush.fail(new Error('EIO'))
    const answers = await Promise.all([...asked, ...late])
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
    expect(answers[0]!.body.error.code).toBe('OUTCOME_UNKNOWN')
    expect(started.fatal).toEqual([new Error('EIO')])
    expect((await put({ value: 7 })).status).toBe(503)
    expect((await get()).body.value).toBe(1)
  })

  test('a flush that hangs: /readyz says so, writes are refused, reads go on, and all of it ends with the flush', async () => {
    await put({ value: 1 })
    flush.hold()
    const asked = await unanswered(() => put({ value: 2 }))
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    service.clock.advance(5_000)
    expect((await service.ask('GET', '/readyz')).status).toBe(503)
    const refused = await put({ value: 3 })
    expect([refused.status, refused.body.error.code]).toEqual([503, 'UNAVAILABLE'])
    expect((await get()).body.value).toBe(1)
    expect((await answersOf(asked))[0]!.status).toBe(200)
    expect((await service.ask('GET', '/readyz')).status).toBe(200)
    expect((await get()).body.value).toBe(2)
  })
})

describe('a flush in the event loop', () => {
  let fails: boolean
  beforeEach(async () => {
    await started.stop()
    fails = false
    started = await startUnflushed({
      inLoop() {
        if (fails) throw new Error('EIO')
      },
    })
    service = started.service
    tenant = await service.signUp('free')
  })

  test('has returned when a put is answered, and what was put is read', async () => {
    expect(await put({ value: 1 })).toMatchObject({ status: 200, body: { version: 1 } })
    expect((await get()).body).toMatchObject({ value: 1, version: 1 })
  })

  test('that fails: what waits is 503 OUTCOME_UNKNOWN, later writes are 503, and nothing unflushed is read', async () => {
    await put({ value: 1 })
    fails = true
    const answer = await put({ value: 2 })
    expect([answer.status, answer.body.error.code, started.fatal]).toEqual([
      503,
      'OUTCOME_UNKNOWN',
      [new Error('EIO')],
    ])
    fails = false
    expect((await put({ value: 3 })).status).toBe(503)
    expect((await get()).status).toBe(503)
  })
})
