// All routes while agents are stopped, generated from the list: what is refused, and what goes on.

import { describe, expect, test } from 'bun:test'
import type { NamedRoute } from '../src/contract/feature.ts'
import { goesOnWhileStopped } from '../src/contract/stopped.ts'
import { routes } from '../src/features.ts'
import { call, newKeyring, ownHeaders, type Ready, ready, titled } from './support/contract.ts'
import { type Answer, forEachWholeService, type TestService } from './support/service.ts'

const of_agents = routes.filter(({ route }) => route.auth.includes('agent'))

/** The routes that an agent may call although they change something, or are not a GET. */
const allowed = [
  ...['extendEffect', 'extendItem', 'failEffect', 'failItem', 'releaseItem', 'resolveItem'],
  ...['succeedEffect', 'waitForEvent'],
]
/** Of these the ones that the holder of a lock alone may call. */
const by_token = ['extendItem', 'failItem', 'releaseItem', 'resolveItem']
/** A GET that changes something. */
const refused = ['checkRateLimitByQuery']

type Stop = (service: TestService, made: Ready) => Promise<Answer>
const asAdmin = (service: TestService, { keyring }: Ready, method: string, path: string, body?: object) =>
  service.ask(method, path, { key: keyring.keys.admin, body })
const stops: [what: string, code: string, stop: Stop][] = [
  [
    'tenant is frozen',
    'TENANT_FROZEN',
    (service, made) => asAdmin(service, made, 'POST', `/v1/tenants/${made.keyring.tenant_id}/freeze`),
  ],
  [
    'agent is paused',
    'AGENT_PAUSED',
    (service, made) => asAdmin(service, made, 'POST', `/v1/agents/${made.keyring.agent_id}/pause`),
  ],
  [
    'agent may only read',
    'AGENT_READ_ONLY',
    (service, made) =>
      asAdmin(service, made, 'PATCH', `/v1/agents/${made.keyring.agent_id}`, { mode: 'read' }),
  ],
]

describe('while agents are stopped', () => {
  test('every GET goes on and everything else is refused, unless the route says otherwise', () => {
    const named = (list: readonly NamedRoute[]) => list.map(({ name }) => name).toSorted()
    const others = of_agents.filter(({ route }) => goesOnWhileStopped(route) !== (route.method === 'GET'))
    expect(named(others)).toEqual([...allowed, ...refused].toSorted())
  })
})

forEachWholeService('while its', (service) => {
  describe.each(stops)('%s', (_, code, stop) => {
    test.each(titled(of_agents))('%s is refused to the agent, or goes on', async (_, named) => {
      const { name, route } = named
      const made = await ready(service, named, await newKeyring(service))
      expect((await stop(service, made)).status).toBe(200)
      const answer = await call(service, named, made, { headers: ownHeaders(made.keyring, 'agent') })
      const goes_on = goesOnWhileStopped(route) && !by_token.includes(name)
      if (goes_on) expect([name, answer.status < 400]).toEqual([name, true])
      else expect([answer.status, answer.body.error.code]).toEqual([403, code])
    })
  })

  test.each(titled(routes.filter(({ route }) => route.auth.includes('admin'))))(
    'tenant is frozen, %s goes on for its admin',
    async (_, named) => {
      const made = await ready(service, named, await newKeyring(service))
      await stops[0]![2](service, made)
      const answer = await call(service, named, made, { headers: ownHeaders(made.keyring, 'admin') })
      expect([named.name, answer.status < 400]).toEqual([named.name, true])
    },
  )
})
