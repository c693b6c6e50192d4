import { expect, test } from 'bun:test'
import { happened } from '../../test/support/happened.ts'
import { forEachRacedService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { DbError } from '../db/errors.ts'
import { removeUpTo } from '../journal/retention-store.ts'
import { lastSeq } from '../journal/service.ts'

forEachRacedService('Workflows', (service) => {
  const reads = (tenant: TestTenant, path: string, key = tenant.admin_key) =>
    service.ask('GET', `/v1/workflows${path}`, { key })
  const names = async (tenant: TestTenant, query = '') =>
    (await reads(tenant, query)).body.items.map((row: { workflow_id: string }) => row.workflow_id)

  /** The sign-up has left two events before theirs. */
  async function three(of: TestService): Promise<TestTenant> {
    const tenant = await of.signUp()
    const begin = (workflow_id: string, ...types: Parameters<typeof happened>[3][]) =>
      types.reduce<Promise<unknown>>(
        (before, type) => before.then(() => happened(of, tenant.tenant_id, workflow_id, type)),
        Promise.resolve(),
      )
    await begin('order-1', 'checkpoint.created', 'checkpoint.approved')
    await begin('order-2', 'checkpoint.created')
    await begin('ticket 9/ä', 'checkpoint.created', 'dlq.created')
    return tenant
  }

  test('are listed with their counts, the latest activity first', async () => {
    const tenant = await three(service)
    const at = new Date(service.clock.now()).toISOString()
    const { status, body } = await reads(tenant, '')
    expect([status, body]).toEqual([
      200,
      {
        items: [
          {
            ...{ workflow_id: 'ticket 9/ä', events: 2, waiting: 1, failing: 1 },
            ...{ first_at: at, last_at: at, last_seq: 7, last_type: 'dlq.created' },
          },
          {
            ...{ workflow_id: 'order-2', events: 1, waiting: 1, failing: 0 },
            ...{ first_at: at, last_at: at, last_seq: 5, last_type: 'checkpoint.created' },
          },
          {
            ...{ workflow_id: 'order-1', events: 2, waiting: 0, failing: 0 },
            ...{ first_at: at, last_at: at, last_seq: 4, last_type: 'checkpoint.approved' },
          },
        ],
        next_cursor: null,
      },
    ])
    await happened(service, tenant.tenant_id, 'order-1')
    expect(await names(tenant)).toEqual(['order-1', 'ticket 9/ä', 'order-2'])
  })

  const filters: [query: string, found: string[]][] = [
    ['?status=waiting', ['ticket 9/ä', 'order-2']],
    ['?status=failed', ['ticket 9/ä']],
    ['?status=idle', ['order-1']],
    ['?prefix=order', ['order-1', 'order-2']],
    ['?prefix=order&status=waiting', ['order-2']],
    ['?prefix=order-2', ['order-2']],
    ['?prefix=Order', []],
    ['?prefix=zzz', []],
  ]
  test('are found by state and by the beginning of their ids', async () => {
    const tenant = await three(service)
    const found = await Promise.all(filters.map(async ([query]) => [query, await names(tenant, query)]))
    expect(found).toEqual(filters)
  })

  test.each(['', 'prefix=o', 'status=waiting', 'status=idle', 'prefix=o&status=idle'])(
    'come page by page, each once: %s',
    async (query) => {
      const tenant = await service.signUp()
      const made = Array.from({ length: 7 }, (_, i) => `o${i}`)
      for (const workflow_id of made) {
        await happened(service, tenant.tenant_id, workflow_id)
        if (query.includes('idle'))
          await happened(service, tenant.tenant_id, workflow_id, 'checkpoint.approved')
      }
      const found: string[] = []
      let cursor = ''
      do {
        const { body } = await reads(tenant, `?limit=3&${query}${cursor && `&cursor=${cursor}`}`)
        found.push(...body.items.map((row: { workflow_id: string }) => row.workflow_id))
        cursor = body.next_cursor
      } while (cursor !== null)
      expect(found).toEqual(query.startsWith('prefix') ? made : made.toReversed())
    },
  )

  test('take a cursor in its order alone: one of the list with a prefix is refused without it, and the other way', async () => {
    const tenant = await three(service)
    const latest = (await reads(tenant, '?limit=1')).body.next_cursor
    const by_id = (await reads(tenant, '?limit=1&prefix=order')).body.next_cursor
    for (const query of [`?cursor=${by_id}`, `?prefix=order&cursor=${latest}`, `?prefix=&cursor=${by_id}`]) {
      const { status, body } = await reads(tenant, query)
      const issues = [{ path: 'query.cursor', message: 'is not a cursor of this list' }]
      expect([status, body.error?.code, body.error?.details]).toEqual([400, 'VALIDATION_FAILED', { issues }])
    }
    expect(await names(tenant, `?cursor=${latest}`)).toEqual(['order-2', 'order-1'])
    expect(await names(tenant, `?prefix=order&cursor=${by_id}`)).toEqual(['order-2'])
  })

  test('one answers its counts and its events, oldest first, page by page', async () => {
    const tenant = await three(service)
    const path = `/${encodeURIComponent('ticket 9/ä')}`
    const { status, body } = await reads(tenant, path)
    expect([status, body]).toMatchObject([
      200,
      {
        ...{ workflow_id: 'ticket 9/ä', events: 2, waiting: 1, failing: 1, last_seq: 7 },
        items: [
          {
            seq: 6,
            workflow_seq: 1,
            type: 'checkpoint.created',
            subject: { kind: 'checkpoint', id: 'thing_1' },
          },
          { seq: 7, workflow_seq: 2, type: 'dlq.created', actor: 'service' },
        ],
        ...{ next_after: 7, more: false },
      },
    ])
    const first = (await reads(tenant, `${path}?limit=1`)).body
    expect([first.items.length, first.next_after, first.more]).toEqual([1, 6, true])
    const second = (await reads(tenant, `${path}?limit=1&after=6`)).body
    expect([second.items[0].seq, second.next_after, second.more]).toEqual([7, 7, false])
    const end = (await reads(tenant, `${path}?after=7`)).body
    expect([end.items, end.next_after, end.more]).toEqual([[], 7, false])
  })

  test('show nothing of another agent’s private namespace, neither in events nor in counts', async () => {
    const tenant = await three(service)
    const other = await service.addAgent(tenant.admin_key, 'other')
    await happened(service, tenant.tenant_id, 'order-2', 'dlq.created', tenant.agent_id)
    await happened(service, tenant.tenant_id, 'hidden', 'dlq.created', tenant.agent_id)
    const seen = async (path: string, key: string) => {
      const { status, body } = await reads(tenant, path, key)
      return [status, body.failing, body.items?.map((event: { seq: number }) => event.seq)]
    }
    expect(await seen('/order-2', other.api_key)).toEqual([200, 0, [5]])
    expect(await seen('/order-2', tenant.api_key)).toEqual([200, 0, [5, 9]])
    expect(await seen('/order-2', tenant.admin_key)).toEqual([200, 0, [5, 9]])
    expect(await seen('/hidden', other.api_key)).toEqual([404, undefined, undefined])
    expect(await seen('/hidden', tenant.api_key)).toEqual([200, 0, [10]])
    const unknown = await reads(tenant, '/unknown', other.api_key)
    const hidden = await reads(tenant, '/hidden', other.api_key)
    expect({ ...hidden.body.error, request_id: '' }).toEqual({ ...unknown.body.error, request_id: '' })
    for (const key of [other.api_key, tenant.api_key]) {
      const { body } = await reads(tenant, '?status=failed', key)
      expect(body.items.map((row: { workflow_id: string }) => row.workflow_id)).toEqual(['ticket 9/ä'])
    }
  })

  test('are read while the database takes no writes, as far as events have numbers', async () => {
    const tenant = await three(service)
    await reads(tenant, '')
    await happened(service, tenant.tenant_id, 'order-1')
    const { db } = service.app
    const { write } = db
    db.write = async () => {
      throw new DbError('busy', 'locked')
    }
    try {
      expect(await names(tenant)).toEqual(['ticket 9/ä', 'order-2', 'order-1'])
      const { status, body } = await reads(tenant, '/order-1')
      expect([status, body.events]).toEqual([200, 2])
    } finally {
      db.write = write
    }
    expect(await names(tenant)).toEqual(['order-1', 'ticket 9/ä', 'order-2'])
  })

  test('tell by no page that there are events which the agent may not see', async () => {
    const tenant = await service.signUp()
    const other = await service.addAgent(tenant.admin_key, 'other')
    await reads(tenant, '')
    const first = await lastSeq(service.app.db, tenant.tenant_id)
    const events: (string | null)[] = [null, tenant.agent_id, tenant.agent_id, null, tenant.agent_id]
    for (const private_to of events) await happened(service, tenant.tenant_id, 'w', 'dlq.created', private_to)
    const page = async (query: string, key: string) => {
      const { body } = await reads(tenant, `/w?${query}`, key)
      const seqs = body.items.map(({ seq }: { seq: number }) => seq - first)
      return [seqs, body.next_after - first, body.more]
    }
    expect(await page('limit=1', other.api_key)).toEqual([[1], 1, true])
    expect(await page(`limit=1&after=${first + 1}`, other.api_key)).toEqual([[4], 4, false])
    expect(await page(`after=${first + 4}`, other.api_key)).toEqual([[], 4, false])
    expect(await page('limit=2', other.api_key)).toEqual([[1, 4], 4, false])
    for (const key of [tenant.api_key, tenant.admin_key]) {
      expect(await page('limit=2', key)).toEqual([[1, 2], 2, true])
      expect(await page(`after=${first + 2}`, key)).toEqual([[3, 4, 5], 5, false])
    }
    await happened(service, tenant.tenant_id, 'own', 'dlq.created', tenant.agent_id)
    const behind = await reads(tenant, `/own?after=${first + 6}`, tenant.api_key)
    expect([behind.status, behind.body.items, behind.body.last_seq]).toEqual([200, [], first + 6])
  })

  test('are not there when all events are gone with age, unless something in them is open', async () => {
    const tenant = await three(service)
    const remove = (seq: number) => service.app.db.write((tx) => removeUpTo(tx, tenant.tenant_id, seq))
    expect(await names(tenant)).toEqual(['ticket 9/ä', 'order-2', 'order-1'])
    await remove(3)
    expect(await names(tenant)).toEqual(['ticket 9/ä', 'order-2', 'order-1'])
    await remove(7)
    const left = ['ticket 9/ä', 'order-2']
    for (const query of ['', '?status=waiting', '?prefix=order', '?prefix=order-1', '?status=idle'])
      expect([query, await names(tenant, query)]).toEqual([
        query,
        query.includes('prefix')
          ? left.filter((id) => id.startsWith(query.slice(8)))
          : query.includes('idle')
            ? []
            : left,
      ])
    expect((await reads(tenant, '/order-1')).body.error.code).toBe('WORKFLOW_NOT_FOUND')
    expect((await reads(tenant, '/order-2')).body).toMatchObject({ events: 1, waiting: 1, items: [] })
    await happened(service, tenant.tenant_id, 'order-1')
    expect((await reads(tenant, '/order-1')).body).toMatchObject({
      ...{ events: 3, waiting: 1, items: [{ seq: 8, workflow_seq: 3 }] },
    })
    await happened(service, tenant.tenant_id, 'order-2', 'checkpoint.approved')
    expect((await reads(tenant, '/order-2')).body).toMatchObject({
      events: 2,
      waiting: 0,
      items: [{ seq: 9 }],
    })
  })

  test('of nothing, or of another tenant, are WORKFLOW_NOT_FOUND; an id that cannot be one is refused', async () => {
    const tenant = await three(service)
    const stranger = await service.signUp()
    for (const path of ['/order-1', `/${'x'.repeat(256)}`]) {
      const { status, body } = await reads(stranger, path)
      expect([status, body.error.code]).toEqual([404, 'WORKFLOW_NOT_FOUND'])
    }
    for (const path of [`/${'x'.repeat(257)}`, '/%00', `?prefix=${'x'.repeat(257)}`]) {
      const { status, body } = await reads(tenant, path)
      expect([path, status, body.error.code]).toEqual([path, 400, 'VALIDATION_FAILED'])
    }
  })
})
