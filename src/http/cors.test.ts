import { describe, expect, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'

const console_origin = 'https://console.example.com'
const local_origin = 'http://localhost:5173'

const exposed =
  'X-Request-Id, X-Version, ETag, X-Ignored-Fields, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy'

function corsOf(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))
}

forEachService(
  'CORS_ORIGINS with two origins',
  (service) => {
    service.over_http = true
    test.each([console_origin, local_origin])('an answer to %s may be read there', async (origin) => {
      const answer = await service.ask('GET', '/livez', { headers: { origin } })
      expect(answer.status).toBe(200)
      expect(corsOf(answer.headers)).toEqual({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposed,
      })
      expect(answer.headers.get('vary')).toBe('Origin')
    })

    test.each([
      ['another', 'https://evil.example.com'],
      ['the same over http', 'http://console.example.com'],
      ['the same at a port', `${console_origin}:8443`],
      ['one that begins alike', `${console_origin}.evil.com`],
      ['one in capitals', console_origin.toUpperCase()],
      ['null', 'null'],
      ['*', '*'],
    ])('no origin: %s', async (_, origin) => {
      const answer = await service.ask('GET', '/livez', { headers: { origin } })
      expect([answer.status, corsOf(answer.headers)]).toEqual([200, {}])
      expect(answer.headers.get('vary')).toBe('Origin')
    })

    test('without Origin an answer still varies, so that no cache mixes them up', async () => {
      const answer = await service.ask('GET', '/livez')
      expect([corsOf(answer.headers), answer.headers.get('vary')]).toEqual([{}, 'Origin'])
    })

    test('errors may be read too', async () => {
      const { api_key } = await service.signUp()
      const headers = { origin: console_origin }
      const answers = [
        await service.ask('GET', '/v1/kv/a/b', { headers }),
        await service.ask('GET', '/v1/kv/a/b', { headers, key: api_key }),
        await service.ask('PUT', '/v1/kv/a/b', { headers, key: api_key, body: '{' }),
        await service.ask('GET', '/nowhere', { headers }),
        await service.ask('PATCH', '/livez', { headers }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([401, 404, 400, 404, 405])
      for (const answer of answers) {
        expect(corsOf(answer.headers)['access-control-allow-origin']).toBe(console_origin)
      }
    })

    test('a preflight says which methods and headers a page may use', async () => {
      const answer = await service.ask('OPTIONS', '/v1/kv/state/key', {
        headers: { origin: console_origin, 'access-control-request-method': 'PUT' },
      })
      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(answer.headers.get('allow')).toBe('DELETE, GET, HEAD, OPTIONS, PUT')
      expect(corsOf(answer.headers)).toEqual({
        'access-control-allow-origin': console_origin,
        'access-control-expose-headers': exposed,
        'access-control-allow-methods': 'DELETE, GET, HEAD, OPTIONS, PUT',
        'access-control-allow-headers': [
          'Authorization, Baggage, Content-Type, Idempotency-Key, If-Match, If-None-Match',
          'Last-Event-ID, Mcp-Method, Mcp-Name, MCP-Protocol-Version, Traceparent, Tracestate, X-Admin-Key, X-Agent-Id, X-Api-Key, X-Approval-Key, X-Request-Id, X-Waystation-Mode, X-Workflow-Id',
        ].join(', '),
        'access-control-max-age': '600',
      })
      expect(answer.headers.get('vary')).toBe('Origin')
    })

    test('a preflight from elsewhere, or of an unknown path, allows nothing', async () => {
      const preflight = { 'access-control-request-method': 'GET' }
      const stranger = await service.ask('OPTIONS', '/livez', {
        headers: { origin: 'https://evil.example.com', ...preflight },
      })
      expect([stranger.status, corsOf(stranger.headers)]).toEqual([204, {}])
      const unknown = await service.ask('OPTIONS', '/nowhere', {
        headers: { origin: console_origin, ...preflight },
      })
      expect(unknown.status).toBe(404)
      expect(corsOf(unknown.headers)).not.toHaveProperty('access-control-allow-methods')
    })

    test('credentials of the browser are never asked for', async () => {
      const answer = await service.ask('GET', '/livez', { headers: { origin: console_origin } })
      expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
    })
  },
  { CORS_ORIGINS: `${console_origin}, ${local_origin}` },
)

forEachService(
  'CORS_ORIGINS=*',
  (service) => {
    service.over_http = true
    test.each(['https://anywhere.example', 'null'])('every origin may read: %s', async (origin) => {
      const answer = await service.ask('GET', '/livez', { headers: { origin } })
      expect(corsOf(answer.headers)['access-control-allow-origin']).toBe(origin)
    })
  },
  { CORS_ORIGINS: '*' },
)

forEachService('Without CORS_ORIGINS', (service) => {
  service.over_http = true
  describe('no answer carries a CORS header', () => {
    test.each([
      ['GET', '/livez', 200],
      ['OPTIONS', '/livez', 204],
      ['GET', '/v1/agents', 401],
      ['GET', '/nowhere', 404],
    ])('%s %s', async (method, path, status) => {
      const answer = await service.ask(method, path, {
        headers: { origin: console_origin, 'access-control-request-method': 'GET' },
      })
      expect([answer.status, corsOf(answer.headers), answer.headers.has('vary')]).toEqual([status, {}, false])
    })
  })
})
