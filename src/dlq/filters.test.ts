// Filters of lists of dead letters, and their causes.

import { beforeAll, describe, expect, test } from 'bun:test'
import { forEachService, type TestTenant } from '../../test/support/service.ts'
import { iso } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { limits } from '../base/limit.ts'
import { unnamedAcrossTenants, upkeep } from '../db/db.ts'
import * as dlq from './service.ts'

const looked_max = limits.get('pages.looked_at_rows')!.value
const causes_looked_max = limits.get('dlq.causes_looked_at_rows')!.value
const causes_max = limits.get('dlq.causes')!.value

forEachService('Lists of dead letters', (service) => {
  let tenant: TestTenant
  /** Their names here, by id. */
  const names = new Map<string, string>()
  const at: Record<string, string> = {}

  const ask = (method: string, path: string, body?: object) =>
    service.ask(method, path, { key: tenant.api_key, ...(body && { body }) })

  async function capture(name: string, body: object): Promise<string> {
    service.clock.advance(1_000)
    at[name] = iso(service.clock.now())
    const { body: item } = await ask('POST', '/v1/dlq', { payload: name, error: 'boom', ...body })
    names.set(item.id, name)
    return item.id
  }

  /** As the service leaves it. */
  async function left(name: string, source: 'schedule' | 'checkpoint', source_id: string, error: string) {
    service.clock.advance(1_000)
    at[name] = iso(service.clock.now())
    await service.app.db.write((tx) =>
      dlq.deadLetter(tx, tenant.tenant_id, {
        ...{ payload: '1', error, source, source_id, agent_id: 'agent-one', workflow_id: null },
      }),
    )
    const { items } = (await ask('GET', '/v1/dlq?limit=1')).body
    names.set(items[0].id, name)
    return items[0].id as string
  }

  beforeAll(async () => {
    tenant = await service.signUp('pro')
    await capture('one', { error: 'no customer cus_8003', workflow_id: 'wf-1' })
    await capture('two', { error: 'no customer cus_8007', workflow_id: 'wf-2' })
    await left('three', 'schedule', 'sch_a', 'the callback of schedule sch_a1 failed: status 503')
    await left('four', 'schedule', 'sch_b', 'the callback of schedule sch_b2 failed: status 404')
    await left('five', 'checkpoint', 'chk_a', 'checkpoint chk_a1 was rejected')
    const six = await capture('six', { workflow_id: 'wf-1' })
    await ask('POST', `/v1/dlq/${six}/claim`, { lock_seconds: 86_400 })
    const seven = await capture('seven', { error: 'no customer cus_9', workflow_id: 'wf-1' })
    await ask('POST', `/v1/dlq/${seven}/resolve`)
    const eight = await left(
      'eight',
      'schedule',
      'sch_a',
      'the callback of schedule sch_a1 failed: status 503',
    )
    await ask('POST', `/v1/dlq/${eight}/claim`)
    await ask('POST', `/v1/dlq/${eight}/fail`)
  })

  const found = async (query: object, key = tenant.api_key) => {
    const text = new URLSearchParams(query as Record<string, string>)
    const answer = await service.ask('GET', `/v1/dlq?${text}`, { key })
    expect(answer.status).toBe(200)
    return answer.body.items.map(({ id }: { id: string }) => names.get(id))
  }

  const by_schedule = 'the callback of schedule sch_… failed: status 503'
  const filters: [query: Record<string, string>, expected: string[]][] = [
    [{ source: 'agent' }, ['seven', 'six', 'two', 'one']],
    [{ source: 'schedule' }, ['eight', 'four', 'three']],
    [{ source_id: 'sch_a' }, ['eight', 'three']],
    [{ source_id: 'sch_a', status: 'failed' }, ['three']],
    [{ source_id: 'sch_a', status: 'archived' }, ['eight']],
    [{ source_id: 'sch_a', status: 'claimed' }, []],
    [{ source_id: 'sch_a', source: 'checkpoint' }, []],
    [{ source_id: 'sch_none' }, []],
    [{ source_id: '' }, []],
    [{ cause: 'no customer cus_…' }, ['seven', 'two', 'one']],
    [{ cause: 'no customer cus_…', status: 'failed' }, ['two', 'one']],
    [{ cause: 'no customer cus_…', status: 'resolved' }, ['seven']],
    [{ cause: by_schedule }, ['eight', 'three']],
    [{ cause: by_schedule, status: 'archived' }, ['eight']],
    [{ cause: 'no customer' }, []],
    [{ workflow_id: 'wf-1' }, ['seven', 'six', 'one']],
    [{ workflow_id: 'wf-1', status: 'claimed' }, ['six']],
    [{ workflow_id: 'wf-1', cause: 'no customer cus_…', status: 'failed' }, ['one']],
    [{ status: 'failed', source: 'checkpoint' }, ['five']],
    [{ status: 'claimed', source: 'schedule' }, []],
  ]
  test.each(filters)('with %p shows %p', async (query, expected) => {
    expect(await found(query)).toEqual(expected)
    expect(await found(query, tenant.admin_key)).toEqual(expected)
  })

  test('from an instant on, and before one, also with a status', async () => {
    expect(await found({ from: at.five! })).toEqual(['eight', 'seven', 'six', 'five'])
    expect(await found({ to: at.three! })).toEqual(['two', 'one'])
    expect(await found({ from: at.two!, to: at.four! })).toEqual(['three', 'two'])
    expect(await found({ from: at.two!, to: at.four!, status: 'failed' })).toEqual(['three', 'two'])
    expect(await found({ from: at.six!, to: at.eight!, status: 'claimed' })).toEqual(['six'])
    expect(await found({ from: at.four!, source_id: 'sch_a' })).toEqual(['eight'])
    expect(await found({ from: at.four!, to: at.four! })).toEqual([])
    expect(await found({ from: at.five!, to: at.one! })).toEqual([])
  })

  test('of another tenant show nothing of these', async () => {
    const stranger = await service.signUp()
    for (const [query] of filters) expect(await found(query, stranger.api_key)).toEqual([])
    const causes = await service.ask('GET', '/v1/dlq/causes', { key: stranger.admin_key })
    expect(causes.body).toEqual({ items: [], truncated: false })
  })

  test.each([
    ['source=webhook', ['query.source']],
    ['from=yesterday', ['query.from']],
    ['to=1', ['query.to']],
    ['from=x&to=y&source=z', ['query.from', 'query.source', 'query.to']],
  ])('refuse %s', async (query, paths) => {
    const answer = await ask('GET', `/v1/dlq?${query}`)
    expect(answer.status).toBe(400)
    expect(answer.body.error.details.issues.map(({ path }: { path: string }) => path).toSorted()).toEqual(
      paths,
    )
  })

  describe('by cause', () => {
    test('count those of a status, the most frequent first', async () => {
      const answer = await ask('GET', '/v1/dlq/causes')
      expect(answer.status).toBe(200)
      const idOf = (name: string) => [...names].find(([, known]) => known === name)![0]
      const once = (cause: string, source: string, name: string) => ({
        ...{ cause, source, count: 1, oldest_at: at[name], newest_at: at[name], latest_id: idOf(name) },
      })
      expect(answer.body).toEqual({
        items: [
          {
            cause: 'no customer cus_…',
            source: 'agent',
            count: 2,
            oldest_at: at.one,
            newest_at: at.two,
            latest_id: idOf('two'),
          },
          once('checkpoint chk_… was rejected', 'checkpoint', 'five'),
          once('the callback of schedule sch_… failed: status 404', 'schedule', 'four'),
          once(by_schedule, 'schedule', 'three'),
        ],
        truncated: false,
      })
      expect((await service.ask('GET', '/v1/dlq/causes', { key: tenant.admin_key })).text).toBe(answer.text)
      const archived = await ask('GET', '/v1/dlq/causes?status=archived')
      expect(archived.body.items).toEqual([once(by_schedule, 'schedule', 'eight')])
    })

    test('count an item whose lock has run out as failed', async () => {
      const other = await service.signUp()
      const { body } = await service.ask('POST', '/v1/dlq', {
        ...{ key: other.api_key, body: { payload: 1, error: 'late' } },
      })
      await service.ask('POST', `/v1/dlq/${body.id}/claim`, { key: other.api_key, body: { lock_seconds: 1 } })
      const countsOf = async (status: string) =>
        (await service.ask('GET', `/v1/dlq/causes?status=${status}`, { key: other.admin_key })).body.items
          .length
      expect([await countsOf('failed'), await countsOf('claimed')]).toEqual([0, 1])
      service.clock.advance(1_000)
      expect([await countsOf('failed'), await countsOf('claimed')]).toEqual([1, 0])
    })

    test('refuse a status that there is not', async () => {
      expect((await ask('GET', '/v1/dlq/causes?status=open')).status).toBe(400)
    })
  })

  describe('of very many', () => {
    let many: TestTenant
    const plant = (tenant_id: string, count: number, cause: string) =>
      service.app.db.write(upkeep, (tx) =>
        tx.run(
          unnamedAcrossTenants(
            'test.plant',
            `insert into dlq_items (tenant_id, id, status, source, lock_seconds, claims, created_at, updated_at, cause,
               error, payload)
             with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
             select :tenant_id, :prefix || (1000000 + i), 'failed', 'agent', 300, 0, 1, 1, ${cause}, 'e', '1'
               from numbers`,
          ),
          { tenant_id, prefix: newId('dlq', service.clock.now()).slice(0, 20) },
        ),
      )
    beforeAll(async () => {
      many = await service.signUp('pro')
    })

    test('end a page after enough rows, and behind the cursors is all there is', async () => {
      await plant(many.tenant_id, 3 * looked_max, `case when i = 7 then 'rare' else 'common' end`)
      const sizes: number[] = []
      for (let cursor = ''; ; ) {
        const { body } = await service.ask('GET', `/v1/dlq?cause=rare&source=agent${cursor}`, {
          key: many.api_key,
        })
        sizes.push(body.items.length)
        if (body.next_cursor === null) break
        cursor = `&cursor=${body.next_cursor}`
      }
      expect(sizes).toEqual([0, 0, 1, 0])
      const failed = await service.ask('GET', '/v1/dlq?cause=rare&status=failed', { key: many.api_key })
      expect([failed.body.items.length, failed.body.next_cursor]).toEqual([1, null])
      const none = await service.ask('GET', '/v1/dlq?workflow_id=none', { key: many.api_key })
      expect([none.body.items, none.body.next_cursor === null]).toEqual([[], false])
    })

    test(`have ${causes_max} causes at most, of the newest ${causes_looked_max}, and say so`, async () => {
      const read = async ({ admin_key }: TestTenant) =>
        (await service.ask('GET', '/v1/dlq/causes', { key: admin_key })).body
      const few = await service.signUp('pro')
      await plant(few.tenant_id, causes_max, `'cause ' || i`)
      expect(await read(few)).toMatchObject({ items: { length: causes_max }, truncated: false })
      await plant(few.tenant_id, 1, `'one more'`)
      expect(await read(few)).toMatchObject({ items: { length: causes_max }, truncated: true })
      const full = await service.signUp('pro')
      await plant(full.tenant_id, causes_looked_max - 1, `'same'`)
      expect(await read(full)).toMatchObject({ items: [{ count: causes_looked_max - 1 }], truncated: false })
      service.clock.advance(1)
      await plant(full.tenant_id, 2, `'newer'`)
      expect(await read(full)).toMatchObject({
        items: [
          { cause: 'same', count: causes_looked_max - 2 },
          { cause: 'newer', count: 2 },
        ],
        truncated: true,
      })
    })
  })
})
