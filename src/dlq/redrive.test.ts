import { describe, expect, test } from 'bun:test'
import { exact_payload, expectRefusal, missingBytes, receivers, usedOf } from '../../test/support/again.ts'
import type { Received, Receiver } from '../../test/support/receiver.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { day_ms, iso } from '../base/clock.ts'

const payload = exact_payload
const long_ago = '2020-01-01T00:00:00Z'

const receiverOf = receivers()
/** 410 ends the attempts at once. */
const goneReceiver = () => receiverOf(410)

forEachRacedService('A redrive', (service) => {
  const redrive = (tenant: { api_key: string }, id: string, headers: Record<string, string> = {}) =>
    service.ask('POST', `/v1/dlq/${id}/redrive`, { key: tenant.api_key, headers })
  const claim = (tenant: { api_key: string }, id: string) =>
    service.ask('POST', `/v1/dlq/${id}/claim`, { key: tenant.api_key })
  const get = async (tenant: { api_key: string }, path: string) => {
    const answer = await service.ask('GET', path, { key: tenant.api_key })
    expect(answer.status).toBe(200)
    return answer
  }
  const item = async (tenant: TestTenant, id: string) => (await get(tenant, `/v1/dlq/${id}`)).body
  const schedule = async (tenant: TestTenant, id: string) => (await get(tenant, `/v1/schedules/${id}`)).body
  const schedules = async (tenant: TestTenant) => (await get(tenant, '/v1/schedules')).body.items
  const letters = async (tenant: TestTenant, query = '') => (await get(tenant, `/v1/dlq${query}`)).body.items
  const used = (tenant: TestTenant) => usedOf(service, tenant)
  const missing = (tenant: TestTenant) => missingBytes(service, tenant)
  const tick = () => service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })

  /** A schedule that has failed, and the dead letter that it left. */
  async function failedSchedule(tenant: TestTenant, receiver: Receiver) {
    service.clock.advance(1)
    const made = await service.ask('POST', '/v1/schedules', {
      key: tenant.api_key,
      headers: { 'content-type': 'application/json' },
      body: `{"callback_url": "${receiver.url}/x", "callback_payload": ${payload}, "fire_at": "${long_ago}", "dlq_on_failure": true}`,
    })
    expect(made.status).toBe(201)
    await tick()
    const failed = await schedule(tenant, made.body.id)
    expect(failed.status).toBe('failed')
    return { failed, letter: await item(tenant, failed.dead_letter_id) }
  }

  /** A checkpoint whose callback has failed, and the dead letter that it left. */
  async function failedCallback(tenant: TestTenant, receiver: Receiver, verb = 'approve', over: object = {}) {
    service.clock.advance(1)
    const made = await service.ask('POST', '/v1/checkpoints', {
      key: tenant.api_key,
      body: { title: 'May I?', callback_url: `${receiver.url}/decided`, callback_payload: { n: 1 }, ...over },
    })
    expect(made.status).toBe(201)
    const before = receiver.requests.length
    await service.ask('POST', `/v1/checkpoints/${made.body.id}/${verb}`, { key: tenant.admin_key })
    await receiver.received(before + 1)
    await tick()
    const failed = await checkpoint(tenant, made.body.id)
    expect(failed.callback).toMatchObject({ status: 'failed', attempts: 1, last_error: 'status 410' })
    return { failed, letter: await item(tenant, failed.callback.dead_letter_id) }
  }
  const checkpoint = async (tenant: TestTenant, id: string) =>
    (await get(tenant, `/v1/checkpoints/${id}`)).body

  async function agentLetter(tenant: TestTenant, verbs: string[] = []) {
    service.clock.advance(1)
    const body = { payload: { n: 1 }, error: 'boom' }
    const { id } = (await service.ask('POST', '/v1/dlq', { key: tenant.api_key, body })).body
    for (const verb of verbs)
      expect((await service.ask('POST', `/v1/dlq/${id}/${verb}`, { key: tenant.api_key })).status).toBe(200)
    return item(tenant, id)
  }

  describe('of what a schedule left', () => {
    test('sends it again as a new schedule and resolves the item, each naming the other', async () => {
      const tenant = await service.signUp()
      const receiver = await goneReceiver()
      const { failed, letter } = await failedSchedule(tenant, receiver)
      expect(letter).toMatchObject({ status: 'failed', source: 'schedule', redriven_as: null })
      service.clock.advance(5)
      const now = iso(service.clock.now())
      const answer = await redrive(tenant, letter.id)
      expect(answer.status).toBe(200)
      const { redriven_as } = answer.body
      expect(redriven_as).toMatch(/^sch_[0-9a-z]{26}$/)
      expect(answer.body).toEqual({
        ...letter,
        ...{ status: 'resolved', redriven_as, resolved_at: now, updated_at: now },
      })
      expect((await get(tenant, `/v1/dlq/${letter.id}`)).text).toBe(answer.text)
      const again = await get(tenant, `/v1/schedules/${redriven_as}`)
      expect(again.body).toEqual({
        ...failed,
        ...{ id: redriven_as, status: 'pending', fire_at: now, next_attempt_at: now, attempts: 0 },
        ...{ last_error: null, last_status_code: null, dead_letter_id: null },
        ...{ retry_of: failed.id, redrive_of: letter.id, retried_as: null, created_at: now, updated_at: now },
      })
      expect(again.text).toContain(`"callback_payload":${payload}`)
      expect(await schedule(tenant, failed.id)).toEqual({
        ...failed,
        retried_as: redriven_as,
        updated_at: now,
      })

      receiver.answer = () => ({ status: 204 })
      await tick()
      expect(receiver.requests.map(({ body }) => body)).toEqual([payload, payload])
      const [first, second] = receiver.requests as [Received, Received]
      expect(second.target).toBe('/x')
      expect(second.headers['webhook-id']).not.toBe(first.headers['webhook-id'])
      expect((await schedule(tenant, redriven_as)).status).toBe('fired')
      expect(await letters(tenant, '?status=failed')).toEqual([])
    })

    test('that was given up works the same', async () => {
      const tenant = await service.signUp()
      const { letter } = await failedSchedule(tenant, await goneReceiver())
      for (const verb of ['claim', 'fail'])
        await service.ask('POST', `/v1/dlq/${letter.id}/${verb}`, { key: tenant.api_key })
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 0 })
      const { status, body } = await redrive(tenant, letter.id)
      expect([status, body.status, body.claims]).toEqual([200, 'resolved', 1])
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
    })

    test('leaves a new item when it fails once more, which can be redriven in its turn', async () => {
      const tenant = await service.signUp()
      const { failed, letter } = await failedSchedule(tenant, await goneReceiver())
      let from = letter
      let schedule_id = failed.id
      for (let round = 0; round < 3; round++) {
        service.clock.advance(1)
        const { redriven_as } = (await redrive(tenant, from.id)).body
        await tick()
        const again = await schedule(tenant, redriven_as)
        expect(again).toMatchObject({ status: 'failed', retry_of: schedule_id, redrive_of: from.id })
        const left = await item(tenant, again.dead_letter_id)
        expect(left).toMatchObject({ status: 'failed', source_id: redriven_as, redriven_as: null })
        expect(left.id).not.toBe(from.id)
        ;[from, schedule_id] = [left, redriven_as]
      }
      expect(await schedules(tenant)).toHaveLength(4)
      expect(await letters(tenant, '?status=failed')).toHaveLength(1)
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 1 })
      expect(await missing(tenant)).toBe(0)
    })

    test('counts the new schedule and no longer the item, and every byte', async () => {
      const tenant = await service.signUp()
      const { letter } = await failedSchedule(tenant, await goneReceiver())
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 1 })
      expect((await redrive(tenant, letter.id)).status).toBe(200)
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
      expect(await missing(tenant)).toBe(0)
    })

    test('is 402 past active_schedules, and changes nothing', async () => {
      const tenant = await service.signUp()
      const { failed, letter } = await failedSchedule(tenant, await goneReceiver())
      const body = {
        callback_url: 'http://127.0.0.1:9/',
        callback_payload: 1,
        fire_at: '2030-01-01T00:00:00Z',
      }
      service.clock.advance(1) // so that these come first in the list, before the one that has failed
      for (let n = 0; n < 100; n++) await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })
      const refused = await redrive(tenant, letter.id, { 'idempotency-key': 'k' })
      expectRefusal(refused, 'QUOTA_EXCEEDED', { quota: 'active_schedules', used: 100, limit: 100 })
      expect(await item(tenant, letter.id)).toEqual(letter)
      expect(await schedule(tenant, failed.id)).toEqual(failed)
      expect(await used(tenant)).toEqual({ active_schedules: 100, dlq_items: 1 })
      const [{ id }] = await schedules(tenant)
      await service.ask('DELETE', `/v1/schedules/${id}`, { key: tenant.api_key })
      const answer = await redrive(tenant, letter.id, { 'idempotency-key': 'k' })
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([200, null])
      expect(await missing(tenant)).toBe(0)
    })

    test('happens once, whatever number of callers ask at once', async () => {
      const tenant = await service.signUp()
      const receiver = await goneReceiver()
      const { failed, letter } = await failedSchedule(tenant, receiver)
      const keys = [tenant.api_key, tenant.admin_key]
      service.clock.advance(1)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => redrive({ api_key: keys[n % 2]! }, letter.id)),
      )
      const done = answers.filter(({ status }) => status === 200)
      expect(done).toHaveLength(1)
      const { redriven_as } = done[0]!.body
      for (const refused of answers.filter(({ status }) => status !== 200))
        expectRefusal(refused, 'INVALID_STATE', { status: 'resolved', redriven_as })
      expect((await schedules(tenant)).map(({ id }: { id: string }) => id)).toEqual([redriven_as, failed.id])
      await tick()
      expect(receiver.requests).toHaveLength(2)
    })

    test('is one effect for one Idempotency-Key, however often it is repeated at once', async () => {
      const tenant = await service.signUp()
      const { letter } = await failedSchedule(tenant, await goneReceiver())
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => redrive(tenant, letter.id, { 'idempotency-key': 'k' })),
      )
      const answered = answers.filter(({ status }) => status === 200)
      expect(new Set(answered.map(({ text }) => text)).size).toBe(1)
      for (const other of answers.filter(({ status }) => status !== 200))
        expectRefusal(other, 'IDEMPOTENCY_IN_PROGRESS')
      expect(await schedules(tenant)).toHaveLength(2)
      service.clock.advance(day_ms)
      expectRefusal(await redrive(tenant, letter.id, { 'idempotency-key': 'k' }), 'INVALID_STATE', {
        status: 'resolved',
        redriven_as: answered[0]!.body.redriven_as,
      })
    })

    test.each(['claim', 'resolve', 'delete'] as const)('races with %s: one of the two', async (verb) => {
      const tenant = await service.signUp()
      for (let round = 0; round < 5; round++) {
        const { failed, letter } = await failedSchedule(tenant, await goneReceiver())
        const path = `/v1/dlq/${letter.id}`
        const other =
          verb === 'delete'
            ? () => service.ask('DELETE', path, { key: tenant.api_key })
            : () => service.ask('POST', `${path}/${verb}`, { key: tenant.api_key })
        const calls = [() => redrive(tenant, letter.id), other]
        if (round % 2) calls.reverse()
        const answers = await Promise.all(calls.map((send) => send()))
        const [ours, theirs] = round % 2 ? [answers[1]!, answers[0]!] : [answers[0]!, answers[1]!]
        const { retried_as } = await schedule(tenant, failed.id)
        expect(retried_as !== null).toBe(ours.status === 200)
        if (verb === 'claim') expect([ours.status, theirs.status].toSorted()).toEqual([200, 409])
        else expect(theirs.status).toBe(verb === 'delete' ? 204 : 200) // a resolved item may be resolved and removed
        if (ours.status === 200) expect(ours.body.redriven_as).toBe(retried_as)
        else expect(ours.status).toBe(verb === 'delete' ? 404 : 409)
      }
      const open = (await letters(tenant)).filter(({ status }: { status: string }) => status !== 'resolved')
      expect((await used(tenant)).dlq_items).toBe(open.length)
      expect(await missing(tenant)).toBe(0)
    })
  })

  describe('of what the callback of a decision left', () => {
    test('sends that callback again, with the same bytes and webhook-id', async () => {
      const tenant = await service.signUp()
      const receiver = await goneReceiver()
      const { failed, letter } = await failedCallback(tenant, receiver)
      expect(letter).toMatchObject({ source: 'checkpoint', source_id: failed.id, redriven_as: null })
      receiver.answer = () => ({ status: 503 })
      service.clock.advance(5)
      const now = iso(service.clock.now())
      const answer = await redrive(tenant, letter.id)
      expect(answer.status).toBe(200)
      expect(answer.body).toEqual({
        ...letter,
        ...{ status: 'resolved', redriven_as: failed.id, resolved_at: now, updated_at: now },
      })
      await receiver.received(2) // at once, with TICK=external too
      await tick()
      expect(await checkpoint(tenant, failed.id)).toEqual({
        ...failed,
        callback: {
          ...{ status: 'pending', attempts: 1, last_error: 'status 503' },
          ...{ redrive_of: letter.id, dead_letter_id: letter.id },
        },
        updated_at: now,
      })
      receiver.answer = () => ({ status: 204 })
      service.clock.advance(30_000)
      await tick()
      expect((await checkpoint(tenant, failed.id)).callback).toMatchObject({
        status: 'delivered',
        attempts: 2,
      })
      const [first, ...rest] = receiver.requests as [Received, ...Received[]]
      expect(rest.map(({ body }) => body)).toEqual([first.body, first.body])
      expect(rest.map(({ headers }) => headers['webhook-id'])).toEqual(
        Array(2).fill(first.headers['webhook-id']),
      )
      expect(rest.map(({ headers }) => headers['x-waystation-attempt'])).toEqual(['1', '2'])
      const attempts = (await get(tenant, `/v1/checkpoints/${failed.id}/attempts`)).body.items
      expect(attempts.map((each: { attempt: number }) => each.attempt)).toEqual([2, 1, 1])
      expect(attempts.map((each: { status_code: number }) => each.status_code)).toEqual([204, 503, 410])
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 0 })
      expect(await missing(tenant)).toBe(0)
    })

    test('leaves a new item when it fails once more, and only that one can be redriven', async () => {
      const tenant = await service.signUp()
      const receiver = await goneReceiver()
      const { failed, letter } = await failedCallback(tenant, receiver)
      await redrive(tenant, letter.id)
      await receiver.received(2)
      await tick()
      const { callback } = await checkpoint(tenant, failed.id)
      expect(callback).toMatchObject({ status: 'failed', redrive_of: letter.id })
      expect(callback.dead_letter_id).not.toBe(letter.id)
      expectRefusal(await redrive(tenant, letter.id), 'INVALID_STATE', {
        status: 'resolved',
        redriven_as: failed.id,
      })
      receiver.answer = () => ({ status: 204 })
      expect((await redrive(tenant, callback.dead_letter_id)).status).toBe(200)
      await receiver.received(3)
      await tick()
      expect((await checkpoint(tenant, failed.id)).callback.status).toBe('delivered')
    })

    test('happens once, whatever number of callers ask at once', async () => {
      const tenant = await service.signUp()
      const receiver = await goneReceiver()
      const { failed, letter } = await failedCallback(tenant, receiver)
      receiver.answer = () => ({ status: 204 })
      const answers = await Promise.all(Array.from({ length: 12 }, () => redrive(tenant, letter.id)))
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(11).fill(409)])
      await receiver.received(2)
      await tick()
      expect(receiver.requests).toHaveLength(2)
      expect((await checkpoint(tenant, failed.id)).callback.status).toBe('delivered')
    })
  })

  test('of a checkpoint that was rejected or that expired is 409: there is nothing to send', async () => {
    const tenant = await service.signUp()
    const receiver = await goneReceiver()
    const { letter } = await failedCallback(tenant, receiver, 'reject', { timeout_action: 'dlq' })
    const rejected = (await letters(tenant)).find(({ id }: { id: string }) => id !== letter.id)
    expect(rejected.error).toEndWith('was rejected')
    const body = {
      ...{ title: 'Late?', callback_url: receiver.url, timeout_action: 'dlq' },
      expires_at: iso(service.clock.now()),
    }
    await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body })
    await tick()
    const expired = (await letters(tenant)).find(({ error }: { error: string }) =>
      error.endsWith('was expired'),
    )
    for (const { id } of [rejected, expired])
      expectRefusal(await redrive(tenant, id), 'INVALID_STATE', { status: 'failed', redriven_as: null })
    expect(receiver.requests).toHaveLength(1)
    expect((await redrive(tenant, letter.id)).status).toBe(200)
  })

  describe('of what an agent recorded', () => {
    test('that is failed changes nothing: it can be claimed', async () => {
      const tenant = await service.signUp()
      const letter = await agentLetter(tenant)
      service.clock.advance(5)
      const answer = await service.ask('POST', `/v1/dlq/${letter.id}/redrive`, { key: tenant.admin_key })
      expect([answer.status, answer.body]).toEqual([200, letter])
      expect((await claim(tenant, letter.id)).status).toBe(200)
    })

    test('that is archived makes it failed, with its count of claims', async () => {
      const tenant = await service.signUp()
      const letter = await agentLetter(tenant, ['claim', 'fail'])
      expect((await used(tenant)).dlq_items).toBe(0)
      service.clock.advance(5)
      const answer = await redrive(tenant, letter.id)
      expect(answer.body).toEqual({ ...letter, status: 'failed', updated_at: iso(service.clock.now()) })
      expect(answer.body.claims).toBe(1)
      expect((await used(tenant)).dlq_items).toBe(1)
      expect((await claim(tenant, letter.id)).body.claims).toBe(2)
      expect(await missing(tenant)).toBe(0)
    })

    test('that is archived counts again once, whatever number of callers ask at once', async () => {
      const tenant = await service.signUp()
      const letter = await agentLetter(tenant, ['claim', 'fail'])
      const answers = await Promise.all(Array.from({ length: 10 }, () => redrive(tenant, letter.id)))
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
      expect((await used(tenant)).dlq_items).toBe(1)
    })

    test('that is archived is 402 past dlq_items, and changes nothing', async () => {
      const tenant = await service.signUp()
      const letter = await agentLetter(tenant, ['claim', 'fail'])
      const body = { payload: 1, error: 'x' }
      for (let n = 0; n < 500; n += 50)
        await Promise.all(
          Array.from({ length: 50 }, () => service.ask('POST', '/v1/dlq', { key: tenant.api_key, body })),
        )
      expectRefusal(await redrive(tenant, letter.id), 'QUOTA_EXCEEDED', {
        ...{ quota: 'dlq_items', used: 500, limit: 500 },
      })
      expect(await item(tenant, letter.id)).toEqual(letter)
      expect((await used(tenant)).dlq_items).toBe(500)
    })
  })

  test('of a claimed item is ALREADY_CLAIMED until its lock has run out', async () => {
    const tenant = await service.signUp()
    const { letter } = await failedSchedule(tenant, await goneReceiver())
    const claimed = (await claim(tenant, letter.id)).body
    expectRefusal(await redrive(tenant, letter.id, { 'idempotency-key': 'k' }), 'ALREADY_CLAIMED')
    service.clock.advance(Date.parse(claimed.locked_until) - service.clock.now())
    const answer = await redrive(tenant, letter.id, { 'idempotency-key': 'k' })
    expect(answer.body).toMatchObject({ status: 'resolved', claims: 1, locked_by: null, locked_until: null })
    expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
  })

  test('of an item that was resolved by hand is INVALID_STATE, and sends nothing', async () => {
    const tenant = await service.signUp()
    const { letter } = await failedSchedule(tenant, await goneReceiver())
    await service.ask('POST', `/v1/dlq/${letter.id}/resolve`, { key: tenant.api_key })
    expectRefusal(await redrive(tenant, letter.id), 'INVALID_STATE', {
      status: 'resolved',
      redriven_as: null,
    })
    expect(await schedules(tenant)).toHaveLength(1)
  })

  test('of another tenant is DLQ_NOT_FOUND, as of one that does not exist, and changes nothing', async () => {
    const [tenant, other] = [await service.signUp(), await service.signUp()]
    const { letter } = await failedSchedule(tenant, await goneReceiver())
    for (const key of [other.api_key, other.admin_key]) {
      for (const id of [letter.id, 'dlq_none'])
        expectRefusal(await service.ask('POST', `/v1/dlq/${id}/redrive`, { key }), 'DLQ_NOT_FOUND')
    }
    expect(await item(tenant, letter.id)).toEqual(letter)
    expect(await schedules(tenant)).toHaveLength(1)
    expect(await schedules(other)).toEqual([])
  })
})
