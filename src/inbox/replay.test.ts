import { expect, test } from 'bun:test'
import { expectRefusal as expectEnvelope, missingBytes, receivers } from '../../test/support/again.ts'
import { type Between, withChangesBetween } from '../../test/support/between.ts'
import { messagesIn, newInbox, type TestInbox, tick } from '../../test/support/inbox.ts'
import type { Receiver } from '../../test/support/receiver.ts'
import { type Answer, forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { hour_ms, iso } from '../base/clock.ts'
import type { ErrorCode } from '../base/errors.ts'
import { unnamed } from '../db/db.ts'
import * as forwards from './forward-store.ts'

const LAST = unnamed<{ seq: number }>(
  'test.last',
  'select max(seq) as seq from inbox_messages where tenant_id = :tenant_id and inbox_id = :inbox_id',
)
const BEGIN = unnamed(
  'test.begin',
  `update inbox_messages set forward_status = 'pending' where tenant_id = :tenant_id and inbox_id = :inbox_id`,
)

const receiverOf = receivers()

/** As /api refuses. */
const expectRefusal = (answer: Answer, code: ErrorCode, details?: object) =>
  expectEnvelope(answer, code, details, { success: false })

const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)

forEachRacedService('A replay', (service) => {
  const replay = (tenant: { api_key: string }, inbox: TestInbox, message_id: string, headers = {}) =>
    service.ask('POST', `/api/webhook/${inbox.id}/messages/${message_id}/replay`, {
      ...{ key: tenant.api_key, headers },
    })
  const messages = (tenant: TestTenant, inbox: TestInbox) => messagesIn(service, tenant, inbox)

  /** An inbox with one message, whose forward has ended. */
  async function forwarded(receiver: Receiver, headers: Record<string, string> = {}) {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant, { forwardUrl: `${receiver.url}/here?mine=1` })
    const sent = await service.ask('PUT', `${inbox.path}/sub?theirs=1`, { headers, body: bytes })
    expect(sent.status).toBe(200)
    await tick(service)
    const [message] = await messages(tenant, inbox)
    return { tenant, inbox, message }
  }

  test.each([
    ['failed', 500],
    ['delivered', 204],
  ])('of a message whose forward was %s forwards it once more, as it came', async (status, answered) => {
    const receiver = await receiverOf(answered)
    const { tenant, inbox, message } = await forwarded(receiver, { 'x-odd': 'a, b' })
    expect(message.forward.status).toBe(status)
    const held = Promise.withResolvers<{ status: number }>()
    receiver.answer = () => held.promise
    service.clock.advance(5)
    const answer = await replay(tenant, inbox, message.id)
    const none = { statusCode: null, error: null, durationMs: null, attemptedAt: null }
    expect([answer.status, answer.body]).toEqual([
      200,
      { success: true, data: { ...message, forward: { status: 'pending', ...none } } },
    ])
    await receiver.received(2) // at once, with TICK=external too
    expect(await messages(tenant, inbox)).toEqual([answer.body.data])
    held.resolve({ status: 202 })
    await tick(service)
    const [after] = await messages(tenant, inbox)
    expect(after.forward).toEqual({
      ...{ status: 'delivered', statusCode: 202, error: null, durationMs: expect.any(Number) },
      attemptedAt: iso(service.clock.now()),
    })
    const [first, second] = receiver.requests
    expect(second).toEqual(first!)
    expect(receiver.bodies.map((body) => body.equals(bytes))).toEqual([true, true])
    expect(await missingBytes(service, tenant)).toBe(0)
  })

  test('may be repeated once its forward has ended, also by the admin', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver)
    for (const key of [tenant.api_key, tenant.admin_key, tenant.api_key]) {
      expect((await replay({ api_key: key }, inbox, message.id)).status).toBe(200)
      await tick(service)
    }
    expect(receiver.requests).toHaveLength(4)
  })

  test('of a message whose forward ends between its statements forwards it once more', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver)
    const { tenant_id } = tenant
    const key = { tenant_id, inbox_id: inbox.id }
    const { seq } = (await service.app.db.one(LAST, key))!
    const ended = { status_code: 204, error: null, duration_ms: 1, attempted_at: 0, fence: 1 }
    await service.app.db.write((tx) => tx.run(BEGIN, key))
    const ends: Between = {
      name: 'inbox.find_message',
      change: async (tx) => forwards.forwarded(tx, key, seq, { status: 'delivered', ...ended }),
    }
    const answer = await withChangesBetween(service.app.db, [ends], () => replay(tenant, inbox, message.id))
    expect([answer.status, answer.body.data?.forward.status]).toEqual([200, 'pending'])
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
  })

  test('while a forward is pending is INVALID_STATE', async () => {
    const receiver = await receiverOf(204)
    const held = Promise.withResolvers<{ status: number }>()
    receiver.answer = () => held.promise
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant, { forwardUrl: receiver.url })
    await service.ask('POST', inbox.path, { body: 'x' })
    await receiver.received(1)
    const [{ id }] = await messages(tenant, inbox)
    expectRefusal(await replay(tenant, inbox, id), 'INVALID_STATE', { status: 'pending', error: null })
    held.resolve({ status: 204 })
    await tick(service)
    expect(receiver.requests).toHaveLength(1)
    expect((await replay(tenant, inbox, id)).status).toBe(200)
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
  })

  test('happens once, whatever number of callers ask at once', async () => {
    const receiver = await receiverOf(500)
    const { tenant, inbox, message } = await forwarded(receiver)
    const held = Promise.withResolvers<{ status: number }>()
    receiver.answer = () => held.promise
    const answers = await Promise.all(Array.from({ length: 20 }, () => replay(tenant, inbox, message.id)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(19).fill(409)])
    held.resolve({ status: 204 })
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
  })

  test('is one effect for one Idempotency-Key', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver)
    const first = await replay(tenant, inbox, message.id, { 'idempotency-key': 'k' })
    await tick(service)
    const again = await replay(tenant, inbox, message.id, { 'idempotency-key': 'k' })
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
  })

  test('in an inbox that forwards nothing is INVALID_STATE', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    await service.ask('POST', inbox.path, { body: 'x' })
    const [{ id }] = await messages(tenant, inbox)
    expectRefusal(await replay(tenant, inbox, id), 'INVALID_STATE', { status: null, error: null })
  })

  test('of what came with too many hops is INVALID_STATE: it would go in circles', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver, { 'x-waystation-hops': '3' })
    expectRefusal(await replay(tenant, inbox, message.id), 'INVALID_STATE', {
      status: 'failed',
      error: 'loop',
    })
    await tick(service)
    expect(receiver.requests).toEqual([])
  })

  test('of a message that was dropped, or never was, is MESSAGE_NOT_FOUND', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver)
    const other = await newInbox(service, tenant, { forwardUrl: receiver.url })
    const last = message.id.at(-1) === '0' ? '1' : '0'
    for (const id of ['msg_none', 'x', `${message.id.slice(0, -1)}${last}`])
      expectRefusal(await replay(tenant, inbox, id), 'MESSAGE_NOT_FOUND')
    expectRefusal(await replay(tenant, other, message.id), 'MESSAGE_NOT_FOUND')
    for (let n = 0; n < 100; n++) await service.ask('POST', inbox.path, { body: 'x' })
    expectRefusal(await replay(tenant, inbox, message.id), 'MESSAGE_NOT_FOUND')
    await tick(service)
    expect(receiver.requests).toHaveLength(101)
  })

  test('races with messages that drop it: it is forwarded once more, or is gone, and nothing is left over', async () => {
    for (let round = 0; round < 6; round++) {
      const receiver = await receiverOf(204)
      const { tenant, inbox, message } = await forwarded(receiver)
      for (let n = 0; n < 99; n++) await service.ask('POST', inbox.path, { body: 'x' })
      await tick(service)
      expect(receiver.requests).toHaveLength(100)
      const calls = [
        () => replay(tenant, inbox, message.id),
        () => service.ask('POST', inbox.path, { body: 'x' }),
        () => replay(tenant, inbox, message.id),
      ]
      // A forward that has ended may be replayed again.
      const answered = Promise.withResolvers<void>()
      receiver.answer = async () => {
        await answered.promise
        return { status: 204 }
      }
      const answers = await Promise.all((round % 2 ? calls.toReversed() : calls).map((send) => send()))
      answered.resolve()
      expect(answers.filter(({ status }) => ![200, 404, 409].includes(status))).toEqual([])
      await tick(service)
      await tick(service)
      const replays = answers.filter(({ body }) => body.success === true).length
      expect(replays).toBeLessThanOrEqual(1)
      // Of a replayed message that is dropped before its turn nothing is sent.
      expect(receiver.requests.length).toBeGreaterThanOrEqual(101)
      expect(receiver.requests.length).toBeLessThanOrEqual(101 + replays)
      const all = (await service.ask('GET', `/api/webhook/${inbox.id}`, { key: tenant.api_key })).body.data
      expect(all.inbox.messageCount).toBe(100)
      expect(await missingBytes(service, tenant)).toBe(0)
    }
  })

  test('works as long as the messages of an expired inbox can be read', async () => {
    const receiver = await receiverOf(204)
    const { tenant, inbox, message } = await forwarded(receiver)
    service.clock.advance(24 * hour_ms)
    expect((await replay(tenant, inbox, message.id)).status).toBe(200)
    await tick(service)
    expect(receiver.requests).toHaveLength(2)
    service.clock.advance(24 * hour_ms)
    expectRefusal(await replay(tenant, inbox, message.id), 'INBOX_NOT_FOUND')
  })

  test('of another tenant is INBOX_NOT_FOUND, as of an inbox that does not exist, and sends nothing', async () => {
    const receiver = await receiverOf(204)
    const { inbox, message } = await forwarded(receiver)
    const other = await service.signUp()
    for (const key of [other.api_key, other.admin_key])
      for (const id of [inbox.id, 'inb_none'])
        expectRefusal(await replay({ api_key: key }, { ...inbox, id }, message.id), 'INBOX_NOT_FOUND')
    await tick(service)
    expect(receiver.requests).toHaveLength(1)
  })
})
