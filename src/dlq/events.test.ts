// The events of dead letters: each change once, in its order, and in the workflow of the item.

import { describe, expect, test } from 'bun:test'
import { startReceiver } from '../../test/support/receiver.ts'
import { type Ask, cron_secret, forEachService } from '../../test/support/service.ts'
import { iso, second_ms } from '../base/clock.ts'
import { unnamedAcrossTenants } from '../db/db.ts'
import { routes } from '../features.ts'

interface Seen {
  type: string
  subject_id: string
  workflow_id: string | null
  actor: string
  failing: number
  data: string
}

const EVENTS = unnamedAcrossTenants<Seen>(
  'test.events',
  `select type, subject_id, workflow_id, actor, failing, data from events
    where tenant_id = :tenant_id and type > 'dlq' and type < 'dlr' order by position`,
)

forEachService('The events of dead letters', (service) => {
  async function worker() {
    const tenant = await service.signUp()
    const ask = async (method: string, path: string, { headers, ...other }: Ask = {}) => {
      const answer = await service.ask(method, path, {
        key: tenant.api_key,
        ...other,
        headers: headers ?? {},
      })
      if (answer.status >= 300) throw new Error(answer.text)
      return answer.body
    }
    const capture = async (body = {}, headers = {}) =>
      (await ask('POST', '/v1/dlq', { body: { payload: 1, error: 'it broke', ...body }, headers }))
        .id as string
    const seen = () => service.app.db.all(EVENTS, { tenant_id: tenant.tenant_id })
    const types = async () => (await seen()).map(({ type }) => type)
    return { ...tenant, ask, capture, seen, types }
  }
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })

  test('carry the workflow of the item: that of its body, else that of X-Workflow-Id', async () => {
    const { ask, capture, seen } = await worker()
    const headers = { 'x-workflow-id': 'of the header' }
    const own = await capture({ workflow_id: 'its own' }, headers)
    const other = await capture({}, headers)
    const none = await capture()
    expect((await ask('GET', `/v1/dlq/${other}`)).workflow_id).toBe('of the header')
    for (const id of [own, other, none])
      await ask('POST', `/v1/dlq/${id}/resolve`, { headers: { 'x-workflow-id': 'later' } })
    expect(
      (await seen()).map(({ type, subject_id, workflow_id }) => [type, subject_id, workflow_id]),
    ).toEqual([
      ['dlq.created', own, 'its own'],
      ['dlq.created', other, 'of the header'],
      ['dlq.created', none, null],
      ['dlq.resolved', own, 'its own'],
      ['dlq.resolved', other, 'of the header'],
      ['dlq.resolved', none, 'later'],
    ])
  })

  test('have the cause of the failure, and neither payload nor error', async () => {
    const { capture, seen } = await worker()
    await capture({ payload: { card: 4242 }, error: 'no customer cus_8003\nat line 7' })
    expect((await seen()).map(({ data }) => JSON.parse(data))).toEqual([
      { source: 'agent', source_id: null, cause: 'no customer cus_…' },
    ])
  })

  describe('of a lock that has expired', () => {
    const ends: [verb: string, type: string][] = [
      ['claim', 'dlq.claimed'],
      ['resolve', 'dlq.resolved'],
      ['delete', 'dlq.deleted'],
      ['discard', 'dlq.archived'],
    ]
    test.each(ends)('come once, before that of the %s that finds it', async (verb, type) => {
      const { ask, capture, seen, types } = await worker()
      const id = await capture()
      const { locked_until } = await ask('POST', `/v1/dlq/${id}/claim`, { body: { lock_seconds: 1 } })
      service.clock.advance(second_ms)
      if (verb === 'delete') await ask('DELETE', `/v1/dlq/${id}`)
      else if (verb === 'discard') await ask('POST', '/v1/dlq/discard', { body: { filter: { ids: [id] } } })
      else await ask('POST', `/v1/dlq/${id}/${verb}`)
      await tick()
      const of_item = (await seen()).filter(({ subject_id }) => subject_id === id)
      expect(of_item.map((event) => event.type)).toEqual([
        'dlq.created',
        'dlq.claimed',
        'dlq.lock_expired',
        type,
      ])
      expect(of_item[2]).toMatchObject({ actor: 'service', data: JSON.stringify({ locked_until }) })
      expect((await types()).filter((other) => other === 'dlq.lock_expired')).toHaveLength(1)
    })

    test('come before that of the claim of the oldest', async () => {
      const { ask, capture, types } = await worker()
      await capture()
      await ask('POST', '/v1/dlq/claim', { body: { lock_seconds: 1 } })
      service.clock.advance(second_ms)
      await ask('POST', '/v1/dlq/claim')
      expect(await types()).toEqual(['dlq.created', 'dlq.claimed', 'dlq.lock_expired', 'dlq.claimed'])
    })

    test('come from no claim of an item that was released', async () => {
      const { ask, capture, types } = await worker()
      const id = await capture()
      for (const verb of ['claim', 'release', 'claim']) await ask('POST', `/v1/dlq/${id}/${verb}`)
      expect(await types()).toEqual(['dlq.created', 'dlq.claimed', 'dlq.released', 'dlq.claimed'])
    })
  })

  test('count each failure once, however it is settled, opened again or removed', async () => {
    const { ask, capture, seen } = await worker()
    const ways = [
      ['resolve', 'resolve'],
      ['claim', 'extend', 'fail', 'resolve'],
      ['claim', 'fail', 'delete'],
      ['resolve', 'delete'],
      ['claim', 'fail', 'redrive', 'redrive', 'delete'],
      ['delete'],
    ]
    for (const verbs of ways) {
      const id = await capture()
      for (const verb of verbs) {
        if (verb === 'delete') await ask('DELETE', `/v1/dlq/${id}`)
        else await ask('POST', `/v1/dlq/${id}/${verb}`)
      }
      const own = (await seen()).filter(({ subject_id }) => subject_id === id)
      expect([verbs, own.reduce((sum, { failing }) => sum + failing, 0)]).toEqual([verbs, 0])
      expect(own.length).toBe(1 + new Set(verbs).size)
    }
  })

  test('of an operation carry the workflow of its request, and that of its items where they have one', async () => {
    const { ask, capture, seen, agent_id } = await worker()
    const own = await capture({ workflow_id: 'its own' })
    service.clock.advance(1)
    const none = await capture()
    const headers = { 'x-workflow-id': 'tidy up' }
    const { id } = await ask('POST', '/v1/dlq/discard', { body: { filter: {} }, headers })
    await tick()
    const found = (await seen()).slice(2)
    expect(
      found.map(({ type, subject_id, workflow_id, actor }) => [type, subject_id, workflow_id, actor]),
    ).toEqual([
      ['dlq_operation.created', id, 'tidy up', agent_id],
      ['dlq.archived', own, 'its own', 'service'],
      ['dlq.archived', none, 'tidy up', 'service'],
      ['dlq_operation.succeeded', id, 'tidy up', 'service'],
    ])
    expect(found.map(({ data }) => JSON.parse(data))).toEqual([
      { verb: 'discard', matched: 2 },
      { operation_id: id },
      { operation_id: id },
      { done: 2, failed: 0, skipped: 0 },
    ])
  })

  test('of an operation that is cancelled: once', async () => {
    const { ask, capture, types } = await worker()
    for (let i = 0; i < 3; i++) await capture()
    const body = { filter: {}, per_second: 0.001 }
    const { id } = await ask('POST', '/v1/dlq/discard', { body })
    for (let i = 0; i < 2; i++) await ask('POST', `/v1/dlq/operations/${id}/cancel`)
    const of_operation = (await types()).filter((type) => type.startsWith('dlq_operation.'))
    expect(of_operation).toEqual(['dlq_operation.created', 'dlq_operation.cancelled'])
  })

  test('of a redrive are those that its route declares', async () => {
    const { ask, seen, tenant_id } = await worker()
    const receiver = await startReceiver()
    receiver.answer = () => ({ status: 410 })
    try {
      const body = { callback_url: receiver.url, fire_at: iso(service.clock.now()), dlq_on_failure: true }
      await ask('POST', '/v1/schedules', { body: { ...body, callback_payload: 1 } })
      const items = async () => (await ask('GET', '/v1/dlq')).items
      while ((await items()).length === 0) await tick()
      const [{ id, source_id }] = await items()
      const created = (await seen()).find(({ type }) => type === 'dlq.created')!
      expect([created.actor, JSON.parse(created.data).source_id]).toEqual(['service', source_id])

      const headers = { 'x-request-id': `redrive-${id}` }
      const { redriven_as } = await ask('POST', `/v1/dlq/${id}/redrive`, { headers })
      const left = await service.app.db.all(
        unnamedAcrossTenants<{ type: string }>(
          'test.of_redrive',
          'select type from events where tenant_id = :tenant_id and request_id = :request_id',
        ),
        { tenant_id, request_id: headers['x-request-id'] },
      )
      const { emits } = routes.find(({ name }) => name === 'redriveItem')!.route
      expect(left.map(({ type }) => type).filter((type) => !emits!.includes(type))).toEqual([])
      expect((await seen()).at(-1)).toMatchObject({
        type: 'dlq.resolved',
        data: JSON.stringify({ redriven_as }),
      })
    } finally {
      await receiver.stop()
    }
  })
})
