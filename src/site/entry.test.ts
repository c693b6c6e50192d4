import { describe, expect, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'
import { prefersHtml } from './entry.ts'

const browsers = [
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'text/html, application/json;q=0.9',
  'text/*, */*;q=0.1',
]
const programs = [
  '*/*',
  'application/json',
  'application/json, text/html;q=0.5',
  'text/html, application/json',
  'text/html;q=0, */*',
  'text/plain',
  'nonsense;;,',
  '',
]

describe('A client', () => {
  test.each(browsers)('with Accept %j prefers HTML', (accept) => expect(prefersHtml(accept)).toBe(true))
  test.each([...programs, null])('with Accept %j does not', (accept) =>
    expect(prefersHtml(accept)).toBe(false),
  )
})

forEachService('The address of the service alone', (service) => {
  const get = (path: string, accept: string, method = 'GET') =>
    fetch(`${service.url}${path}`, { method, redirect: 'manual', headers: { accept } })

  test.each(['GET', 'HEAD'])('leads a browser to the console, by %s', async (method) => {
    const { status, headers } = await get('/', browsers[0]!, method)
    expect([status, headers.get('location'), headers.get('vary'), headers.get('cache-control')]).toEqual([
      ...[302, '/console', 'Accept', 'no-store'],
    ])
    expect(headers.get('x-request-id')).toMatch(/^req_/)
  })

  test.each(programs)(
    'answers a program with Accept %j in JSON, as any path that names nothing',
    async (accept) => {
      const answer = await get('/', accept)
      const { error } = (await answer.json()) as { error: { code: string; request_id: string } }
      expect([answer.status, answer.headers.get('content-type'), answer.headers.get('vary')]).toEqual([
        ...[404, 'application/json', 'Accept'],
      ])
      expect([error.code, error.request_id]).toEqual(['ROUTE_NOT_FOUND', answer.headers.get('x-request-id')!])
    },
  )
})

forEachService(
  'Below a path',
  (service) => {
    test('/ leads to the console below it', async () => {
      const headers = { accept: browsers[0]! }
      const { status, headers: sent } = await fetch(`${service.url}/`, { redirect: 'manual', headers })
      expect([status, sent.get('location')]).toEqual([302, '/below/console'])
    })
  },
  { PUBLIC_URL: 'http://127.0.0.1/below/' },
)
