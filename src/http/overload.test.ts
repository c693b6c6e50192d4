import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { forEachService } from '../../test/support/service.ts'
import { TurnBudget } from '../base/event-loop.ts'
import { FairTurns } from '../base/fair-turns.ts'
import { routes } from '../features.ts'

/** `POST /v1/kv`: the routes that say so, in the order of their paths. */
function shed(when: 'report' | 'last' | 'never'): string[] {
  return routes
    .filter(({ route }) => route.shed === when)
    .map(({ route }) => `${route.method} ${route.path}`)
    .toSorted()
}

describe('a route', () => {
  test('is refused last when it stops agents, revokes a key, lets them go on, or decides, or shows an operator what there is', () => {
    expect(shed('last')).toEqual([
      'DELETE /v1/agents/:agent_id',
      'DELETE /v1/approval-keys/:approval_key_id',
      'GET /v1/agents',
      'GET /v1/approval-keys',
      'GET /v1/approvals/:checkpoint_id',
      'GET /v1/tenants/:tenant_id',
      'PATCH /v1/agents/:agent_id',
      'POST /v1/agents/:agent_id/pause',
      'POST /v1/agents/:agent_id/resume',
      'POST /v1/agents/:agent_id/rotate-key',
      'POST /v1/checkpoints/:id/approve',
      'POST /v1/checkpoints/:id/reject',
      'POST /v1/checkpoints/:id/revoke',
      'POST /v1/effects/:id/resolve',
      'POST /v1/tenants/:tenant_id/freeze',
      'POST /v1/tenants/:tenant_id/resume',
      'POST /v1/tenants/:tenant_id/rotate-key',
      'POST /v1/tenants/:tenant_id/rotate-signing-secret',
    ])
  })

  test('is refused last only when no agent may call it: one that runs wild would keep its operator waiting', () => {
    const of_agents = routes.filter(({ route }) => route.shed === 'last' && route.auth.includes('agent'))
    expect(of_agents).toEqual([])
    expect(routes.filter(({ route }) => route.shed === 'last' && route.auth.length === 0)).toEqual([])
  })

  test('does not count as new work when it reports on work that has begun', () => {
    expect(shed('report')).toEqual([
      'POST /v1/dlq/:id/extend',
      'POST /v1/dlq/:id/fail',
      'POST /v1/dlq/:id/release',
      'POST /v1/dlq/:id/resolve',
      'POST /v1/effects/:id/extend',
      'POST /v1/effects/:id/fail',
      'POST /v1/effects/:id/succeed',
    ])
  })

  test('is never refused when it asks whether the service is there', () => {
    expect(shed('never')).toEqual(['GET /livez', 'GET /readyz'])
  })
})

forEachService('An overloaded service', (service) => {
  service.over_http = true
  /** The event loop has been late for two seconds. */
  function overload(): void {
    service.overload.delayed(300, 0)
    service.overload.delayed(300, 2_000)
  }
  function inTime(): void {
    service.overload.delayed(0, 2_050)
  }
  afterEach(inTime)

  test('refuses new work with 503 UNAVAILABLE, a reason and Retry-After, and takes it again when it has ended', async () => {
    const { admin_key, api_key } = await service.signUp()
    const requests = [
      ['GET', '/v1/kv/ns/another', api_key],
      ['PUT', '/v1/kv/ns/k', api_key, { value: 1 }],
      ['POST', '/v1/audit', api_key, { action: 'a' }],
      ['GET', '/v1/tenants/me/usage', admin_key],
      ['GET', '/api/webhook', api_key],
    ] as const
    const asked = () =>
      Promise.all(requests.map(([method, path, key, body]) => service.ask(method, path, { key, body })))
    overload()
    const refused = await asked()
    for (const { status, headers, body } of refused) {
      expect([status, body.error.code, body.error.details]).toEqual([
        503,
        'UNAVAILABLE',
        { reason: 'the service is overloaded' },
      ])
      expect(headers.get('retry-after')).toMatch(/^[123]$/)
    }
    inTime()
    expect((await asked()).map(({ status }) => status)).toEqual([404, 200, 201, 200, 200])
  })

  test('refuses a key that it does not know as well: nothing is looked up', async () => {
    overload()
    const statements: string[] = []
    service.app.db.onStatement((name) => statements.push(name))
    const { status } = await service.ask('GET', '/v1/kv/ns/k', { key: 'garbage' })
    service.app.db.onStatement(null)
    expect([status, statements.filter((name) => name.startsWith('credentials'))]).toEqual([503, []])
  })

  test('takes reports on work that has been begun', async () => {
    const { api_key } = await service.signUp()
    overload()
    const body = { lease_token: 'lse_01m7yjrz37hxnv52px0106nehe' }
    const { status } = await service.ask('POST', '/v1/effects/eff_01m7yjrz37hxnv52px0106nehd/succeed', {
      ...{ key: api_key, body },
    })
    expect(status).toBe(404)
  })

  test('answers whether it is there and ready, and does not leave its load balancer', async () => {
    overload()
    for (const path of ['/livez', '/health', '/readyz'])
      expect((await service.ask('GET', path)).status).toBe(200)
  })

  test('freezes, resumes, pauses, revokes and decides', async () => {
    const { tenant_id, admin_key, api_key, agent_id } = await service.signUp()
    const question = { title: 't', prompt: 'p', callback_url: 'http://127.0.0.1:1/' }
    const asked = await service.ask('POST', '/v1/checkpoints', { key: api_key, body: question })
    const key = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body: { label: 'phone' } })
    expect([asked.status, key.status]).toEqual([201, 201])
    const { id } = asked.body
    overload()
    const admin = (method: string, path: string, body?: object) =>
      service.ask(method, path, { key: admin_key, body })
    const done = [
      await admin('GET', `/v1/tenants/${tenant_id}`),
      await admin('GET', '/v1/agents'),
      await admin('POST', `/v1/tenants/${tenant_id}/freeze`, {}),
      await admin('POST', `/v1/tenants/${tenant_id}/resume`, {}),
      await admin('POST', `/v1/agents/${agent_id}/pause`, {}),
      await admin('POST', `/v1/agents/${agent_id}/resume`, {}),
      await admin('PATCH', `/v1/agents/${agent_id}`, { mode: 'read' }),
      await service.ask('GET', `/v1/approvals/${id}`, { key: key.body.approval_key }),
      await service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: key.body.approval_key, body: {} }),
      await admin('DELETE', `/v1/approval-keys/${key.body.approval_key_id}`),
      await admin('POST', `/v1/agents/${agent_id}/rotate-key`, {}),
      await admin('DELETE', `/v1/agents/${agent_id}`),
    ]
    expect(done.map(({ status }) => status)).toEqual([
      200, 200, 200, 200, 200, 200, 200, 200, 200, 204, 200, 204,
    ])
  })

  test('refuses the tool of an MCP client, and answers its page', async () => {
    const { api_key } = await service.signUp()
    overload()
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'kv_get', arguments: { namespace: 'ns', key: 'k' } },
    }
    const { status, text } = await service.ask('POST', '/mcp', {
      key: api_key,
      headers: { accept: 'application/json, text/event-stream' },
      body: call,
    })
    expect(status).toBe(200)
    expect(text).toContain('UNAVAILABLE')
  })

  test('lets calls of MCP wait in the line of their tenant, and pages in that of their address', async () => {
    const { tenant_id, api_key } = await service.signUp()
    const begin = spyOn(TurnBudget.prototype, 'begin').mockReturnValue(false)
    const turn = spyOn(TurnBudget.prototype, 'turn')
    const page_turn = spyOn(FairTurns.prototype, 'next')
    const waited: unknown[] = []
    try {
      const headers = { accept: 'application/json, text/event-stream' }
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
      expect((await service.ask('POST', '/mcp', { key: api_key, headers, body })).status).toBe(200)
      waited.push(turn.mock.calls.splice(0), page_turn.mock.calls.splice(0))
      const large = { ...body, params: { _meta: { of: 'x'.repeat(20_000) } } }
      expect((await service.ask('POST', '/mcp', { key: api_key, headers, body: large })).status).toBe(200)
      waited.push(turn.mock.calls.splice(0), page_turn.mock.calls.splice(0))
      expect((await service.ask('POST', '/mcp', { key: 'garbage', headers, body })).status).toBe(401)
      waited.push(turn.mock.calls.splice(0))
      expect((await service.ask('GET', '/docs')).status).toBe(200)
      waited.push(turn.mock.calls.splice(0))
    } finally {
      for (const spy of [begin, turn, page_turn]) spy.mockRestore()
    }
    const of_tenant = [tenant_id, 'tenant']
    const of_page = (weight: number) => [of_tenant, [...of_tenant, weight]]
    expect(waited).toEqual([
      ...[[of_tenant], of_page(1), [of_tenant], of_page(4)],
      ...[[], [['127.0.0.1', 'stranger']]],
    ])
  })
})
