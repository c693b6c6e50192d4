import { expect, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'

forEachService('KV', (service) => {
  test('a put answers namespace, key, version and expires_at, and X-Version', async () => {
    const { api_key } = await service.signUp()
    const put = await service.ask('PUT', '/v1/kv/state/last-run', { key: api_key, body: { value: { a: 1 } } })
    expect(put.status).toBe(200)
    expect(put.body).toEqual({ namespace: 'state', key: 'last-run', version: 1, expires_at: null })
    expect(put.headers.get('x-version')).toBe('1')
  })
})
