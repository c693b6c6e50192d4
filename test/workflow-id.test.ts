// The workflow of a record: a field with its limits, a filter of its list, and what it is passed on to.

import { describe, expect, test } from 'bun:test'
import { tick } from './support/inbox.ts'
import type { Received, Receiver } from './support/receiver.ts'
import { receiversOfFile } from './support/receivers.ts'
import { forEachService, type TestTenant } from './support/service.ts'

const long_ago = '2020-01-01T00:00:00Z'
const never = '9999-12-31T23:59:59.999Z'
const closed = 'http://127.0.0.1:9/'

const receiverOf = receiversOfFile()

interface Noun {
  name: string
  path: string
  field: 'workflow_id' | 'workflowId'
  body: object
}

const nouns: Noun[] = [
  {
    ...{ name: 'schedule', path: '/v1/schedules', field: 'workflow_id' },
    body: { callback_url: closed, callback_payload: 1, fire_at: never },
  },
  {
    ...{ name: 'checkpoint', path: '/v1/checkpoints', field: 'workflow_id' },
    body: { title: 'Ship it?', callback_url: null },
  },
  { name: 'inbox', path: '/api/webhook', field: 'workflowId', body: {} },
  { name: 'dead letter', path: '/v1/dlq', body: { payload: 1, error: 'x' }, field: 'workflow_id' },
  { name: 'audit entry', path: '/v1/audit', body: { action: 'x' }, field: 'workflow_id' },
]

forEachService('The workflow', (service) => {
  const ask = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    service.ask(method, path, { key: tenant.api_key, ...(body === undefined ? {} : { body }) })

  /** Returns the answer without its envelope. */
  async function make(tenant: TestTenant, { path, body, field }: Noun, workflow_id?: string) {
    service.clock.advance(1) // ids made in one millisecond are in no order
    const answer = await ask(tenant, 'POST', path, {
      ...body,
      ...(workflow_id !== undefined && { [field]: workflow_id }),
    })
    expect(answer.status).toBe(201)
    return answer.body.data ?? answer.body
  }

  async function idsOf(tenant: TestTenant, path: string): Promise<string[]> {
    const answer = await ask(tenant, 'GET', path)
    expect(answer.status).toBe(200)
    return (answer.body.data ?? answer.body).items.map(({ id }: { id: string }) => id)
  }

  describe.each(nouns)('of a $name', (noun) => {
    const { path, field } = noun

    test('has at most 256 characters, and is shown as it was given', async () => {
      const tenant = await service.signUp('pro')
      for (const text of ['night-17', ' 100% of ä / "7" ', '😀'.repeat(256)]) {
        const made = await make(tenant, noun, text)
        expect(made[field]).toBe(text)
        const found = (await ask(tenant, 'GET', `${path}/${made.id}`)).body
        expect((found.data?.inbox ?? found)[field]).toBe(text)
      }
      for (const text of ['😀'.repeat(257), 'a\0b']) {
        const refused = await ask(tenant, 'POST', path, { ...noun.body, [field]: text })
        expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([400, `/${field}`])
      }
    })

    test('is null when none, or an empty one, was given', async () => {
      const tenant = await service.signUp('pro')
      expect((await make(tenant, noun))[field]).toBeNull()
      expect((await make(tenant, noun, ''))[field]).toBeNull()
    })

    test('filters the list, newest first', async () => {
      const tenant = await service.signUp('pro')
      const other = await service.signUp('pro')
      await make(other, noun, 'flow')
      const first = await make(tenant, noun, 'flow')
      await make(tenant, noun, 'flow-2')
      await make(tenant, noun)
      const second = await make(tenant, noun, 'flow')
      expect(await idsOf(tenant, `${path}?${field}=flow`)).toEqual([second.id, first.id])
      expect(await idsOf(tenant, `${path}?${field}=flow&limit=1`)).toEqual([second.id])
      expect(await idsOf(tenant, `${path}?${field}=flo`)).toEqual([])
      expect(await idsOf(tenant, `${path}?${field}=`)).toEqual([])
      expect(await idsOf(tenant, path)).toHaveLength(4)
    })
  })

  describe.each(nouns)('of X-Workflow-Id: a $name', ({ path, body, field }) => {
    const create = async (tenant: TestTenant, header: string, given: object = {}) => {
      const headers = { 'x-workflow-id': header }
      return service.ask('POST', path, { key: tenant.api_key, headers, body: { ...body, ...given } })
    }

    test('belongs to it, unless its body names another, or none', async () => {
      const tenant = await service.signUp('pro')
      for (const [given, workflow_id] of [
        [{}, 'of-the-header'],
        [{ [field]: 'of-the-body' }, 'of-the-body'],
        [{ [field]: '' }, null],
      ] as const) {
        const answer = await create(tenant, 'of-the-header', given)
        expect([answer.status, (answer.body.data ?? answer.body)[field]]).toEqual([201, workflow_id])
      }
      expect(await idsOf(tenant, `${path}?${field}=of-the-header`)).toHaveLength(1)
    })

    test('keeps every character, a byte order mark at its beginning as well', async () => {
      const tenant = await service.signUp('pro')
      const workflow_id = '\ufeffGröße \ufeff 日本'
      const sent = Buffer.from(workflow_id).toString('latin1')
      const answer = await service.overHttp(() => create(tenant, sent))
      expect([answer.status, (answer.body.data ?? answer.body)[field]]).toEqual([201, workflow_id])
    })

    test('has at most 256 characters', async () => {
      const tenant = await service.signUp('pro')
      const made = await create(tenant, 'x'.repeat(256))
      expect([made.status, (made.body.data ?? made.body)[field]]).toEqual([201, 'x'.repeat(256)])
      const refused = await create(tenant, 'x'.repeat(257))
      const [issue] = refused.body.error.details.issues
      expect([refused.status, issue.path]).toEqual([400, 'header.X-Workflow-Id'])
      expect(await idsOf(tenant, path)).toEqual([(made.body.data ?? made.body).id])
    })
  })

  test.each(nouns)(
    'the event of a new $name is of the same workflow, and of none where that is empty',
    async ({ path, body, field }) => {
      const tenant = await service.signUp('pro')
      const eventsOf = async (query: string) =>
        (await service.ask('GET', `/v1/events?${query}`, { key: tenant.admin_key })).body
      const after = (await eventsOf('limit=200')).next_after
      const headers = { 'x-workflow-id': 'of-the-header' }
      for (const given of [{}, { [field]: 'of-the-body' }, { [field]: '' }])
        await service.ask('POST', path, { key: tenant.api_key, headers, body: { ...body, ...given } })
      const { items } = await eventsOf(`after=${after}`)
      expect(items.map((event: { workflow_id: string | null }) => event.workflow_id)).toEqual([
        ...['of-the-header', 'of-the-body', null],
      ])
    },
  )

  test('a schedule that leaves its workflow is changed in none', async () => {
    const tenant = await service.signUp('pro')
    const [schedule] = nouns
    const made = await make(tenant, schedule!, 'flow')
    const headers = { 'x-workflow-id': 'of-the-header' }
    const change = { key: tenant.api_key, headers, body: { workflow_id: '' } }
    expect((await service.ask('PATCH', `/v1/schedules/${made.id}`, change)).status).toBe(200)
    const { items } = (await ask(tenant, 'GET', `/v1/events?subject=${made.id}`)).body
    expect(
      items.map((event: { type: string; workflow_id: string | null }) => [event.type, event.workflow_id]),
    ).toEqual([
      ['schedule.created', 'flow'],
      ['schedule.workflow_left', 'flow'],
      ['schedule.updated', null],
    ])
  })

  test.each(nouns.slice(0, 2))('and the status filter the list of ${name}s page by page', async (noun) => {
    const { path } = noun
    const tenant = await service.signUp('pro')
    const made = []
    for (let i = 0; i < 4; i++) made.push(await make(tenant, noun, 'flow'))
    const [first, second, third, fourth] = made.map(({ id }) => id as string)
    expect((await ask(tenant, 'DELETE', `${path}/${third}`)).status).toBe(204)
    const query = `${path}?workflow_id=flow&status=pending&limit=2`
    const page = (await ask(tenant, 'GET', query)).body
    expect(page.items.map(({ id }: { id: string }) => id)).toEqual([fourth, second])
    expect(await idsOf(tenant, `${query}&cursor=${page.next_cursor}`)).toEqual([first!])
    expect(await idsOf(tenant, `${path}?workflow_id=flow&status=cancelled`)).toEqual([third!])
    expect(await idsOf(tenant, `${path}?workflow_id=other&status=pending`)).toEqual([])
  })

  test('of inboxes: the total counts those of the workflow that have not expired', async () => {
    const tenant = await service.signUp('pro')
    const inboxes = nouns[2]!
    await make(tenant, { ...inboxes, body: { ttl: 1 } }, 'flow')
    await make(tenant, inboxes, 'flow')
    const last = await make(tenant, inboxes, 'flow')
    await make(tenant, inboxes)
    const total = async () =>
      (await ask(tenant, 'GET', '/api/webhook?workflowId=flow&limit=1')).body.data.total
    expect(await total()).toBe(3)
    service.clock.advance(1_000)
    expect(await total()).toBe(2)
    await ask(tenant, 'DELETE', `/api/webhook/${last.id}`)
    expect(await total()).toBe(1)
  })

  describe('is passed on', () => {
    const workflow = async (
      receiver: Receiver,
      count = 1,
    ): Promise<Received['headers'][string] | undefined> => {
      await receiver.received(count)
      return receiver.requests[count - 1]!.headers['x-waystation-workflow']
    }

    test.each([
      ['order-17/step:2', 'order-17/step:2'],
      [' a b%', '%20a%20b%25'],
      ['Größe 😀', 'Gr%C3%B6%C3%9Fe%20%F0%9F%98%80'],
      ['a\r\nx-evil: 1', 'a%0D%0Ax-evil:%201'],
    ])('as a header of the callback of a schedule: %j', async (workflow_id, header) => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const body = { callback_url: receiver.url, callback_payload: 1, fire_at: long_ago }
      await make(tenant, { ...nouns[0]!, body }, workflow_id)
      await tick(service)
      expect(await workflow(receiver)).toBe(header)
      expect(decodeURIComponent(header)).toBe(workflow_id)
    })

    test('as a header of the callback of a decision, and not without one', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(204)
      const asks = { ...nouns[1]!, body: { title: 'Ship it?', callback_url: receiver.url } }
      for (const [count, workflow_id] of [
        [1, 'flow'],
        [2, undefined],
      ] as const) {
        const { id } = await make(tenant, asks, workflow_id)
        const decided = await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: tenant.admin_key })
        expect(decided.body.workflow_id).toBe(workflow_id ?? null)
        await tick(service)
        expect(await workflow(receiver, count)).toBe(workflow_id)
      }
    })

    test('as a header of a forward, in place of the one that was sent', async () => {
      const tenant = await service.signUp('pro')
      const receiver = await receiverOf(204)
      const headers = { 'x-waystation-workflow': 'of-the-sender' }
      for (const [count, workflow_id] of [
        [1, 'flow'],
        [2, undefined],
      ] as const) {
        const body = { forwardUrl: receiver.url }
        const { token } = await make(tenant, { ...nouns[2]!, body }, workflow_id)
        expect((await service.ask('POST', `/hook/${token}`, { headers, body: {} })).status).toBe(200)
        await tick(service)
        expect(await workflow(receiver, count)).toBe(workflow_id)
      }
    })

    test('to the dead letter of a schedule, and to the schedule that repeats it', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(410)
      const body = {
        callback_url: receiver.url,
        callback_payload: 1,
        fire_at: long_ago,
        dlq_on_failure: true,
      }
      const { id } = await make(tenant, { ...nouns[0]!, body }, 'flow')
      await tick(service)
      const letters = await ask(tenant, 'GET', '/v1/dlq?workflow_id=flow')
      expect(letters.body.items).toMatchObject([{ source_id: id, workflow_id: 'flow' }])
      service.clock.advance(1)
      const retried = await ask(tenant, 'POST', `/v1/schedules/${id}/retry`)
      expect([retried.status, retried.body.workflow_id]).toEqual([201, 'flow'])
      expect(await idsOf(tenant, '/v1/schedules?workflow_id=flow')).toEqual([retried.body.id, id])
    })

    test('to the dead letters of a checkpoint: of its rejection, and of its callback', async () => {
      const tenant = await service.signUp()
      const receiver = await receiverOf(410)
      const body = { title: 'Ship it?', callback_url: receiver.url, timeout_action: 'dlq' }
      const { id } = await make(tenant, { ...nouns[1]!, body }, 'flow')
      await service.ask('POST', `/v1/checkpoints/${id}/reject`, { key: tenant.admin_key })
      await tick(service)
      const letters = (await ask(tenant, 'GET', '/v1/dlq')).body.items
      expect(letters).toMatchObject([
        { source_id: id, workflow_id: 'flow' },
        { source_id: id, workflow_id: 'flow' },
      ])
    })
  })

  test('of a schedule changes with PATCH, and an empty one removes it', async () => {
    const tenant = await service.signUp()
    const { id } = await make(tenant, nouns[0]!, 'flow')
    const patch = (body: object) => ask(tenant, 'PATCH', `/v1/schedules/${id}`, body)
    expect((await patch({ name: 'one' })).body.workflow_id).toBe('flow')
    expect((await patch({ workflow_id: 'flow-2' })).body.workflow_id).toBe('flow-2')
    expect(await idsOf(tenant, '/v1/schedules?workflow_id=flow')).toEqual([])
    expect(await idsOf(tenant, '/v1/schedules?workflow_id=flow-2')).toEqual([id])
    expect((await patch({ workflow_id: '' })).body.workflow_id).toBeNull()
    expect((await patch({ workflow_id: 'a'.repeat(257) })).status).toBe(400)
  })
})
