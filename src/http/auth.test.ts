import { describe, expect, test } from 'bun:test'
import { type Answer, forEachRacedService } from '../../test/support/service.ts'
import { newKey } from '../base/keys.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

const unauthorized = [401, 'UNAUTHORIZED', undefined]

forEachRacedService('Credentials', (service) => {
  service.over_http = true
  type Keys = { admin_key: string; api_key: string; other_key: string; approval_key: string }

  async function newKeys(): Promise<Keys> {
    const { admin_key, api_key } = await service.signUp()
    const other = await service.addAgent(admin_key, 'agent-two')
    const approval = await service.ask('POST', '/v1/approval-keys', { key: admin_key })
    return { admin_key, api_key, other_key: other.api_key, approval_key: approval.body.approval_key }
  }

  /** An agent's route, the admin's, and one for both. */
  const agents_route = '/v1/kv/state'
  const admins_route = '/v1/approval-keys'
  const route_of_both = '/v1/audit'
  const ask = (path: string, headers: Record<string, string>) => service.ask('GET', path, { headers })

  const accepted: [string, string, (keys: Keys) => Record<string, string>][] = [
    [
      'x-api-key with x-agent-id',
      agents_route,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'agent-one' }),
    ],
    ['Bearer', agents_route, ({ api_key }) => ({ authorization: `Bearer ${api_key}` })],
    ['bearer in lower case', agents_route, ({ api_key }) => ({ authorization: `bearer ${api_key}` })],
    ['BEARER and several spaces', agents_route, ({ api_key }) => ({ authorization: `BEARER   ${api_key}` })],
    [
      'Bearer with the matching x-agent-id',
      agents_route,
      ({ api_key }) => ({ authorization: `Bearer ${api_key}`, 'x-agent-id': 'agent-one' }),
    ],
    [
      'the same key in both headers',
      agents_route,
      ({ api_key }) => ({
        authorization: `Bearer ${api_key}`,
        'x-api-key': api_key,
        'x-agent-id': 'agent-one',
      }),
    ],
    [
      'a key of ours beside a credential of a proxy',
      agents_route,
      ({ api_key }) => ({
        authorization: 'Basic cHJveHk6cHJveHk=',
        'x-api-key': api_key,
        'x-agent-id': 'agent-one',
      }),
    ],
    ['x-admin-key', admins_route, ({ admin_key }) => ({ 'x-admin-key': admin_key })],
    ['Bearer with an admin key', admins_route, ({ admin_key }) => ({ authorization: `Bearer ${admin_key}` })],
    ['x-admin-key where both may', route_of_both, ({ admin_key }) => ({ 'x-admin-key': admin_key })],
    [
      'Bearer with an agent key where both may',
      route_of_both,
      ({ api_key }) => ({ authorization: `Bearer ${api_key}` }),
    ],
  ]
  const under_api = '/api/rate-limit/k'
  const accepted_under_api: typeof accepted = [
    ['an agent key in x-api-key', under_api, ({ api_key }) => ({ 'x-api-key': api_key })],
    [
      'an agent key with its x-agent-id',
      under_api,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'agent-one' }),
    ],
    ['an admin key in x-api-key', under_api, ({ admin_key }) => ({ 'x-api-key': admin_key })],
    ['an admin key in x-admin-key', under_api, ({ admin_key }) => ({ 'x-admin-key': admin_key })],
    ['an agent key as Bearer', under_api, ({ api_key }) => ({ authorization: `Bearer ${api_key}` })],
    ['an admin key as Bearer', under_api, ({ admin_key }) => ({ authorization: `Bearer ${admin_key}` })],
  ]
  test.each(accepted_under_api)('accepted under /api: %s', async (_, path, headers) => {
    expect((await ask(path, headers(await newKeys()))).status).toBe(200)
  })

  const refused_under_api: [string, (keys: Keys) => Record<string, string>, number, string][] = [
    ['no key', () => ({}), 401, 'UNAUTHORIZED'],
    [
      "another agent's id",
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'agent-two' }),
      401,
      'UNAUTHORIZED',
    ],
    ['an empty id', ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': '' }), 401, 'UNAUTHORIZED'],
    ['an agent key in x-admin-key', ({ api_key }) => ({ 'x-admin-key': api_key }), 401, 'UNAUTHORIZED'],
    [
      'an approval key in x-api-key',
      ({ approval_key }) => ({ 'x-api-key': approval_key }),
      401,
      'UNAUTHORIZED',
    ],
    ['an approval key', ({ approval_key }) => ({ 'x-approval-key': approval_key }), 403, 'FORBIDDEN'],
    [
      'two different keys',
      ({ api_key, admin_key }) => ({ 'x-api-key': api_key, 'x-admin-key': admin_key }),
      400,
      'VALIDATION_FAILED',
    ],
  ]
  test.each(refused_under_api)(
    'refused under /api, in its envelope: %s',
    async (_, headers, status, code) => {
      const answer = await ask(under_api, headers(await newKeys()))
      expect([answer.status, answer.body.success, answer.body.error.code]).toEqual([status, false, code])
      expect(Object.keys(answer.body)).toEqual(['success', 'error'])
    },
  )

  test.each(accepted)('accepted: %s', async (_, path, headers) => {
    expect((await ask(path, headers(await newKeys()))).status).toBe(200)
  })

  const refused: [string, string, (keys: Keys) => Record<string, string>][] = [
    ['no credential', agents_route, () => ({})],
    ['x-api-key without x-agent-id', agents_route, ({ api_key }) => ({ 'x-api-key': api_key })],
    [
      "x-api-key with another agent's id",
      agents_route,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'agent-two' }),
    ],
    [
      'an unknown agent id',
      agents_route,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'nobody' }),
    ],
    ['an empty agent id', agents_route, ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': '' })],
    [
      'an agent id in capitals',
      agents_route,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'AGENT-ONE' }),
    ],
    [
      "Bearer with another agent's id",
      agents_route,
      ({ api_key }) => ({ authorization: `Bearer ${api_key}`, 'x-agent-id': 'agent-two' }),
    ],
    ['an agent id alone', agents_route, () => ({ 'x-agent-id': 'agent-one' })],
    ['an unknown key', agents_route, () => ({ authorization: `Bearer ${newKey('agent')}` })],
    ['a bad checksum', agents_route, ({ api_key }) => ({ authorization: `Bearer ${changedLast(api_key)}` })],
    [
      'a key in capitals',
      agents_route,
      ({ api_key }) => ({ authorization: `Bearer ${api_key.toUpperCase()}` }),
    ],
    ['a key cut short', agents_route, ({ api_key }) => ({ authorization: `Bearer ${api_key.slice(0, -1)}` })],
    ['a key with a tail', agents_route, ({ api_key }) => ({ authorization: `Bearer ${api_key}0` })],
    ['a key without Bearer', agents_route, ({ api_key }) => ({ authorization: api_key })],
    ['a key as Basic', agents_route, ({ api_key }) => ({ authorization: `Basic ${api_key}` })],
    ['Bearer and two words', agents_route, ({ api_key }) => ({ authorization: `Bearer ${api_key} x` })],
    ['Bearer without a key', agents_route, () => ({ authorization: 'Bearer' })],
    ['Bearer with something else', agents_route, () => ({ authorization: 'Bearer cron-secret' })],
    ['an agent key in x-admin-key', agents_route, ({ api_key }) => ({ 'x-admin-key': api_key })],
    ['an agent key in X-Approval-Key', agents_route, ({ api_key }) => ({ 'x-approval-key': api_key })],
    ['an admin key in x-api-key', admins_route, ({ admin_key }) => ({ 'x-api-key': admin_key })],
    [
      'an admin key in x-api-key with an agent id',
      route_of_both,
      ({ admin_key }) => ({ 'x-api-key': admin_key, 'x-agent-id': 'agent-one' }),
    ],
    ['an approval key in x-admin-key', admins_route, ({ approval_key }) => ({ 'x-admin-key': approval_key })],
    ['a key in the query', `${agents_route}?x-api-key=svc_agt_`, () => ({})],
  ]

  test.each(refused)('refused: %s', async (_, path, headers) => {
    expect(refusal(await ask(path, headers(await newKeys())))).toEqual(unauthorized)
  })

  test('the answer has the same bytes for each reason', async () => {
    const keys = await newKeys()
    const answers = await Promise.all(
      refused.map(([, path, headers]) => ask(path, { ...headers(keys), 'x-request-id': 'request-0001' })),
    )
    const bytes = answers.map(({ status, headers, text }) => {
      headers.delete('date')
      return JSON.stringify([status, [...headers], text])
    })
    expect(new Set(bytes).size).toBe(1)
    expect(answers[0]!.headers.get('www-authenticate')).toBe('Bearer')
  })

  const wrong_kind: [string, string, (keys: Keys) => Record<string, string>][] = [
    ['an admin key on a route of agents', agents_route, ({ admin_key }) => ({ 'x-admin-key': admin_key })],
    [
      'an agent key on a route of the admin',
      admins_route,
      ({ api_key }) => ({ 'x-api-key': api_key, 'x-agent-id': 'agent-one' }),
    ],
    [
      'an approval key on a route of both',
      route_of_both,
      ({ approval_key }) => ({ 'x-approval-key': approval_key }),
    ],
  ]
  test.each(wrong_kind)(
    'a valid credential of the wrong kind is 403 FORBIDDEN: %s',
    async (name, path, headers) => {
      const key_kind = name.split(' ')[1]
      const kinds = {
        key_kind,
        accepted_key_kinds:
          path === route_of_both ? ['agent', 'admin'] : [path === admins_route ? 'admin' : 'agent'],
      }
      expect(refusal(await ask(path, headers(await newKeys())))).toEqual([403, 'FORBIDDEN', kinds])
    },
  )

  const two_keys: [string, (keys: Keys) => Record<string, string>][] = [
    [
      'Bearer and x-api-key of two agents',
      ({ api_key, other_key }) => ({
        authorization: `Bearer ${other_key}`,
        'x-api-key': api_key,
        'x-agent-id': 'agent-one',
      }),
    ],
    [
      'x-admin-key and x-api-key',
      ({ admin_key, api_key }) => ({
        'x-admin-key': admin_key,
        'x-api-key': api_key,
        'x-agent-id': 'agent-one',
      }),
    ],
    [
      'X-Approval-Key and Bearer',
      ({ approval_key, api_key }) => ({ 'x-approval-key': approval_key, authorization: `Bearer ${api_key}` }),
    ],
  ]
  test.each(two_keys)('two different keys of ours on one route are 400: %s', async (_, headers) => {
    const answer = await ask(route_of_both, headers(await newKeys()))
    expect(refusal(answer)).toEqual([
      400,
      'VALIDATION_FAILED',
      { issues: [{ path: 'header', message: 'two different keys were sent; send one' }] },
    ])
  })

  describe('Public routes read no credentials', () => {
    test.each([
      ['GET', '/livez', undefined, 200],
      ['GET', '/readyz', undefined, 200],
      ['GET', '/openapi.json', undefined, 200],
      ['POST', '/v1/tenants', { name: 'no-keys-read', owner_email: 'owner@example.com' }, 201],
    ])('%s %s', async (method, path, body, status) => {
      const headers = {
        authorization: `Bearer ${newKey('agent')}`,
        'x-admin-key': newKey('admin'),
        'x-api-key': 'garbage',
        'x-agent-id': 'nobody',
      }
      expect((await service.ask(method, path, { headers, body })).status).toBe(status)
    })
  })
})

function changedLast(key: string): string {
  return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
}
