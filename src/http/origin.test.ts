import { expect, test } from 'bun:test'
import { cron_secret, forEachService } from '../../test/support/service.ts'

const friendly_origin = 'https://app.example.com'
const issues = [{ path: 'header.Origin', message: 'is neither this service nor one of CORS_ORIGINS' }]

function newTenant() {
  return { name: `o-${crypto.randomUUID().slice(0, 13)}`, owner_email: 'owner@example.com' }
}

forEachService(
  'A request without a key that changes something',
  (service) => {
    service.over_http = true
    const signUp = (origin: string | null, body: unknown = newTenant()) =>
      service.ask('POST', '/v1/tenants', {
        headers: { 'content-type': 'text/plain', ...(origin === null ? {} : { origin }) },
        body: JSON.stringify(body),
      })

    test.each([
      ...['https://evil.example', 'null', 'http://localhost:1', `${friendly_origin}.evil.example`, '', '*'],
      ...['https://127.0.0.1', 'http://127.0.0.1'],
    ])('is 403 FORBIDDEN from the page of another site (%s), and does nothing', async (origin) => {
      const body = newTenant()
      const refused = await signUp(origin, body)
      expect([refused.status, refused.body.error.code, refused.body.error.details]).toEqual([
        ...[403, 'FORBIDDEN', { issues }],
      ])
      expect((await signUp(null, body)).status).toBe(201)
    })

    test('is served from a page of PUBLIC_URL or of CORS_ORIGINS, and to programs, which send no Origin', async () => {
      for (const origin of [service.url, friendly_origin, null]) {
        expect([origin, (await signUp(origin)).status]).toEqual([origin, 201])
      }
    })

    test('is served from a page of this service under its other names on loopback, by the same scheme and port', async () => {
      const { port } = new URL(service.url)
      for (const origin of [`http://localhost:${port}`, `http://[::1]:${port}`]) {
        expect([origin, (await signUp(origin)).status]).toEqual([origin, 201])
      }
      const others = [
        `https://localhost:${port}`,
        `http://localhost.evil.example:${port}`,
        `http://localhost:${port}/`,
      ]
      for (const origin of [...others, 'http://localhost']) {
        expect([origin, (await signUp(origin)).status]).toEqual([origin, 403])
      }
    })

    test('is refused before its body is looked at', async () => {
      const refused = await service.ask('POST', '/v1/tenants', {
        headers: { origin: 'https://evil.example' },
        body: '{',
      })
      expect([refused.status, refused.body.error.code]).toEqual([403, 'FORBIDDEN'])
    })

    test('is judged by nothing else: reads, calls with a key, the tick and /hook take any Origin', async () => {
      const { api_key: key } = await service.signUp()
      const inbox = (await service.ask('POST', '/api/webhook', { key })).body.data
      const headers = { origin: 'https://evil.example' }
      const answers = [
        await service.ask('GET', '/livez', { headers }),
        await service.ask('PUT', '/v1/kv/a/b', { headers, key, body: { value: 1 } }),
        await service.ask('POST', '/v1/tick', { headers, key: cron_secret }),
        await service.ask('POST', new URL(inbox.url).pathname, { headers, body: {} }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    })
  },
  { CORS_ORIGINS: friendly_origin },
)

forEachService(
  'With CORS_ORIGINS=*',
  (service) => {
    service.over_http = true
    test('a page of any site may sign up', async () => {
      const headers = { origin: 'https://anywhere.example' }
      expect((await service.ask('POST', '/v1/tenants', { headers, body: newTenant() })).status).toBe(201)
    })
  },
  { CORS_ORIGINS: '*' },
)
