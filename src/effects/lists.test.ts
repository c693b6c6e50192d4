// Lists of effects, and their cursors.

import { expect, test } from 'bun:test'
import { ask, claimed } from '../../test/support/effects.ts'
import { forEachService } from '../../test/support/service.ts'

forEachService('Lists of effects', (service) => {
  test('are newest first, by status, type, key and workflow', async () => {
    const tenant = await service.signUp()
    const of = (body: object) => claimed(service, tenant, body)
    const a = await of({ type: 'a', key: '1', workflow_id: 'w' })
    const b = await of({ type: 'b', key: '1', workflow_id: 'w' })
    const c = await of({ type: 'a', key: '2' })
    await ask(service, tenant.api_key, b.id, 'succeed', { lease_token: b.lease_token })
    const ids = async (query: string) => {
      const { body } = await service.ask('GET', `/v1/effects?${query}`, { key: tenant.api_key })
      return body.items.map(({ id }: { id: string }) => id)
    }
    expect(await ids('')).toEqual([c.id, b.id, a.id])
    expect(await ids('status=running')).toEqual([c.id, a.id])
    expect(await ids('type=a')).toEqual([c.id, a.id])
    expect(await ids('type=b&status=running')).toEqual([])
    expect(await ids('workflow_id=w')).toEqual([b.id, a.id])
    expect(await ids('workflow_id=w&status=succeeded')).toEqual([b.id])
    expect(await ids('workflow_id=w&type=a')).toEqual([a.id])
    expect(await ids('type=a&key=2')).toEqual([c.id])
    expect(await ids('type=a&key=2&status=failed')).toEqual([])
    expect(await ids('key=1')).toEqual([a.id, b.id])
    const first = await service.ask('GET', '/v1/effects?key=1&limit=1', { key: tenant.api_key })
    expect(await ids(`key=1&limit=1&cursor=${first.body.next_cursor}`)).toEqual([b.id])
  })

  test('have with a type and a key the one effect of this pair, however many other types have the key', async () => {
    const tenant = await service.signUp()
    const effects = []
    for (const type of ['a', 'b', 'c']) effects.push(await claimed(service, tenant, { type, key: '1' }))
    const page = async (query: string) => {
      const { body } = await service.ask('GET', `/v1/effects?${query}`, { key: tenant.api_key })
      return { ids: body.items.map(({ id }: { id: string }) => id), next_cursor: body.next_cursor }
    }
    for (const { type, id } of effects)
      expect(await page(`type=${type}&key=1&limit=1`)).toEqual({ ids: [id], next_cursor: null })
    for (const none of [
      'type=c&key=1&status=failed',
      'type=d&key=1',
      'type=c&key=2',
      'type=c&key=1&workflow_id=w',
    ])
      expect(await page(`${none}&limit=1`)).toEqual({ ids: [], next_cursor: null })
    const { next_cursor } = await page('key=1&limit=1')
    expect(await page(`type=a&key=1&cursor=${next_cursor}`)).toEqual({ ids: [], next_cursor: null })
    expect((await page(`type=c&key=1&cursor=${next_cursor}`)).ids).toEqual([effects[2].id])
  })

  test('refuse the cursor of the list with a key in one without, and the other way round', async () => {
    const tenant = await service.signUp()
    for (const type of ['a', 'b']) await claimed(service, tenant, { type, key: '1' })
    const page = (query: string) =>
      service.ask('GET', `/v1/effects?limit=1&${query}`, { key: tenant.api_key })
    for (const [one, other] of [
      ['key=1', ''],
      ['key=1', 'status=running'],
      ['', 'key=1'],
    ]) {
      const { next_cursor: cursor } = (await page(one!)).body
      const refused = await page(`${other}&cursor=${cursor}`)
      expect([refused.status, refused.body.error.details.issues]).toEqual([
        400,
        [{ path: 'query.cursor', message: 'is not a cursor of this list' }],
      ])
      expect((await page(`${one}&cursor=${cursor}`)).body.items).toHaveLength(1)
    }
  })
})
