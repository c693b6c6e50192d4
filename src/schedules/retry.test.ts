import { describe, expect, test } from 'bun:test'
import { exact_payload, expectRefusal, missingBytes, receivers, usedOf } from '../../test/support/again.ts'
import type { Receiver } from '../../test/support/receiver.ts'
import { forEachRacedService, type TestTenant } from '../../test/support/service.ts'
import { iso } from '../base/clock.ts'

const payload = exact_payload
const long_ago = '2020-01-01T00:00:00Z'
const never = '9999-12-31T23:59:59.999Z'

const receiverOf = receivers()

forEachRacedService('A retry', (service) => {
  const retry = (tenant: { api_key: string }, id: string, headers: Record<string, string> = {}) =>
    service.ask('POST', `/v1/schedules/${id}/retry`, { key: tenant.api_key, headers })
  const used = (tenant: TestTenant) => usedOf(service, tenant)
  const missing = (tenant: TestTenant) => missingBytes(service, tenant)
  const tick = () => service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
  const get = async (tenant: { api_key: string }, path: string) => {
    const answer = await service.ask('GET', path, { key: tenant.api_key })
    expect(answer.status).toBe(200)
    return answer
  }
  const schedule = async (tenant: TestTenant, id: string) => (await get(tenant, `/v1/schedules/${id}`)).body
  const schedules = async (tenant: TestTenant) => (await get(tenant, '/v1/schedules')).body.items
  const item = async (tenant: TestTenant, id: string) => (await get(tenant, `/v1/dlq/${id}`)).body

  async function create(tenant: TestTenant, url: string, dlq_on_failure = false, fire_at = long_ago) {
    service.clock.advance(1)
    const made = await service.ask('POST', '/v1/schedules', {
      key: tenant.api_key,
      headers: { 'content-type': 'application/json' },
      body: `{"callback_url": "${url}/x?a=1", "callback_payload": ${payload}, "fire_at": "${fire_at}", "dlq_on_failure": ${dlq_on_failure}}`,
    })
    expect(made.status).toBe(201)
    return made.body
  }

  /** A schedule that was called, and is not pending any more. */
  async function ended(tenant: TestTenant, receiver: Receiver, dlq_on_failure = false) {
    const { id } = await create(tenant, receiver.url, dlq_on_failure)
    await tick()
    return schedule(tenant, id)
  }

  describe('of a schedule that has ended', () => {
    test.each([
      ['failed', 410],
      ['fired', 204],
    ])('as %s is a new schedule, due now, and each names the other', async (status, answered) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(answered)
      const old = await ended(tenant, receiver)
      expect(old).toMatchObject({ status, dead_letter_id: null, retried_as: null })
      service.clock.advance(5)
      const now = iso(service.clock.now())
      const answer = await retry(tenant, old.id)
      expect(answer.status).toBe(201)
      const { id } = answer.body
      expect(id).toMatch(/^sch_[0-9a-z]{26}$/)
      expect(answer.body).toEqual({
        ...old,
        ...{ id, status: 'pending', fire_at: now, next_attempt_at: now, attempts: 0 },
        ...{ last_error: null, last_status_code: null, fired_at: null },
        ...{ retry_of: old.id, created_at: now, updated_at: now },
      })
      expect(answer.text).toContain(`"callback_payload":${payload}`)
      expect((await get(tenant, `/v1/schedules/${id}`)).text).toBe(answer.text)
      expect(await schedule(tenant, old.id)).toEqual({ ...old, retried_as: id, updated_at: now })
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })

      receiver.answer = () => ({ status: 204 })
      await tick()
      expect(receiver.requests.map(({ body, target }) => [target, body])).toEqual(
        Array(2).fill(['/x?a=1', payload]),
      )
      const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
      expect(new Set(ids).size).toBe(2)
      expect((await schedule(tenant, id)).status).toBe('fired')
      expect(await missing(tenant)).toBe(0)
    })

    test('keeps the agent and the settings, also when the admin asks for it', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(410)
      const settings = {
        name: 'nightly',
        callback_url: receiver.url,
        callback_payload: 1,
        dlq_on_failure: true,
      }
      const body = { ...settings, fire_at: long_ago }
      const { id } = (await service.ask('POST', '/v1/schedules', { key: tenant.api_key, body })).body
      await tick()
      const answer = await service.ask('POST', `/v1/schedules/${id}/retry`, { key: tenant.admin_key })
      expect(answer.body).toMatchObject({ ...settings, agent_id: 'agent-one' })
      expect(await missing(tenant)).toBe(0)
    })

    test('a second time is INVALID_STATE and names the successor, which can be retried', async () => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410))
      const second = (await retry(tenant, old.id)).body
      for (let n = 0; n < 2; n++)
        expectRefusal(await retry(tenant, old.id), 'INVALID_STATE', {
          ...{ status: 'failed', retried_as: second.id },
        })
      await tick()
      service.clock.advance(1)
      const third = await retry(tenant, second.id)
      expect(third.body).toMatchObject({ retry_of: second.id, redrive_of: null })
      expect(await schedules(tenant)).toHaveLength(3)
    })

    test('happens once, whatever number of callers ask at once', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(410)
      for (const dlq_on_failure of [false, true]) {
        const before = receiver.requests.length
        const old = await ended(tenant, receiver, dlq_on_failure)
        const answers = await Promise.all(Array.from({ length: 20 }, () => retry(tenant, old.id)))
        const done = answers.filter(({ status }) => status === 201)
        expect(done).toHaveLength(1)
        for (const refused of answers.filter(({ status }) => status !== 201))
          expectRefusal(refused, 'INVALID_STATE', { status: 'failed', retried_as: done[0]!.body.id })
        await tick()
        expect(receiver.requests).toHaveLength(before + 2)
      }
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 1 })
      expect(await missing(tenant)).toBe(0)
    })

    test('is one effect for one Idempotency-Key', async () => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410))
      const first = await retry(tenant, old.id, { 'idempotency-key': 'k' })
      const again = await retry(tenant, old.id, { 'idempotency-key': 'k' })
      expect([again.status, again.text]).toEqual([201, first.text])
      expect(again.headers.get('idempotent-replayed')).toBe('true')
      expectRefusal(await retry(tenant, old.id), 'INVALID_STATE', {
        ...{ status: 'failed', retried_as: first.body.id },
      })
    })
  })

  describe('of a schedule that left a dead letter', () => {
    test('resolves it, and it names the new schedule', async () => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410), true)
      const letter = await item(tenant, old.dead_letter_id)
      service.clock.advance(5)
      const now = iso(service.clock.now())
      const answer = await retry(tenant, old.id)
      expect(answer.body).toMatchObject({ retry_of: old.id, redrive_of: letter.id })
      expect(await item(tenant, letter.id)).toEqual({
        ...letter,
        ...{ status: 'resolved', redriven_as: answer.body.id, resolved_at: now, updated_at: now },
      })
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
      expect(await missing(tenant)).toBe(0)
    })

    test('is ALREADY_CLAIMED while an agent holds its lock', async () => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410), true)
      const path = `/v1/dlq/${old.dead_letter_id}`
      const claimed = (await service.ask('POST', `${path}/claim`, { key: tenant.api_key })).body
      expectRefusal(await retry(tenant, old.id, { 'idempotency-key': 'k' }), 'ALREADY_CLAIMED')
      expect(await schedules(tenant)).toEqual([old])
      service.clock.advance(Date.parse(claimed.locked_until) - service.clock.now())
      expect((await retry(tenant, old.id, { 'idempotency-key': 'k' })).status).toBe(201)
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
    })

    test.each([
      ['resolved by hand', ['resolve'], 'resolved', null],
      ['given up', ['claim', 'fail'], 'resolved', 'redriven'],
    ])('that was %s', async (_, verbs, status, redriven) => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410), true)
      const path = `/v1/dlq/${old.dead_letter_id}`
      for (const verb of verbs) await service.ask('POST', `${path}/${verb}`, { key: tenant.api_key })
      const { id, redrive_of } = (await retry(tenant, old.id)).body
      expect(redrive_of).toBe(redriven && old.dead_letter_id)
      expect(await item(tenant, old.dead_letter_id)).toMatchObject({ status, redriven_as: redriven && id })
      expect(await used(tenant)).toEqual({ active_schedules: 1, dlq_items: 0 })
    })

    test('that was removed works without it', async () => {
      const tenant = await service.signUp()
      const old = await ended(tenant, await receiverOf(410), true)
      await service.ask('DELETE', `/v1/dlq/${old.dead_letter_id}`, { key: tenant.api_key })
      expect((await retry(tenant, old.id)).body.redrive_of).toBeNull()
      expect(await missing(tenant)).toBe(0)
    })

    test('races with redrives of that dead letter: one successor in all', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(410)
      for (let round = 0; round < 6; round++) {
        const before = receiver.requests.length
        const old = await ended(tenant, receiver, true)
        const redrive = () =>
          service.ask('POST', `/v1/dlq/${old.dead_letter_id}/redrive`, { key: tenant.api_key })
        const answers = await Promise.all(
          Array.from({ length: 8 }, (_, n) => ((n + round) % 2 ? retry(tenant, old.id) : redrive())),
        )
        const done = answers.filter(({ status }) => status < 300)
        expect(done).toHaveLength(1)
        const { retried_as } = await schedule(tenant, old.id)
        const { redriven_as, status } = await item(tenant, old.dead_letter_id)
        expect([status, redriven_as]).toEqual(['resolved', retried_as])
        for (const refused of answers.filter((answer) => answer.status >= 300)) {
          expect(refused.body.error.code).toBe('INVALID_STATE')
          const { details } = refused.body.error
          expect(details.retried_as ?? details.redriven_as).toBe(retried_as)
        }
        await tick()
        expect(receiver.requests).toHaveLength(before + 2)
      }
      expect(await used(tenant)).toEqual({ active_schedules: 0, dlq_items: 6 })
      expect(await missing(tenant)).toBe(0)
    })
  })

  test.each(['pending', 'cancelled'])('of a %s schedule is INVALID_STATE', async (status) => {
    const tenant = await service.signUp()
    const { id } = await create(tenant, 'http://127.0.0.1:9', false, never)
    if (status === 'cancelled') await service.ask('DELETE', `/v1/schedules/${id}`, { key: tenant.api_key })
    expectRefusal(await retry(tenant, id), 'INVALID_STATE', { status, retried_as: null })
    expect(await schedules(tenant)).toHaveLength(1)
  })

  test('is 402 past active_schedules, and changes nothing', async () => {
    const tenant = await service.signUp()
    const old = await ended(tenant, await receiverOf(410), true)
    const letter = await item(tenant, old.dead_letter_id)
    for (let n = 0; n < 100; n++) await create(tenant, 'http://127.0.0.1:9', false, never)
    expectRefusal(await retry(tenant, old.id), 'QUOTA_EXCEEDED', {
      ...{ quota: 'active_schedules', used: 100, limit: 100 },
    })
    expect(await schedule(tenant, old.id)).toEqual(old)
    expect(await item(tenant, letter.id)).toEqual(letter)
    expect(await used(tenant)).toEqual({ active_schedules: 100, dlq_items: 1 })
    expect(await missing(tenant)).toBe(0)
  })

  test('of another tenant is SCHEDULE_NOT_FOUND, as of one that does not exist, and changes nothing', async () => {
    const [tenant, other] = [await service.signUp(), await service.signUp()]
    const old = await ended(tenant, await receiverOf(410), true)
    for (const key of [other.api_key, other.admin_key]) {
      for (const id of [old.id, 'sch_none'])
        expectRefusal(await service.ask('POST', `/v1/schedules/${id}/retry`, { key }), 'SCHEDULE_NOT_FOUND')
    }
    expect(await schedules(tenant)).toEqual([old])
    expect(await schedules(other)).toEqual([])
  })
})
