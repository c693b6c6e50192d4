import { describe, expect, spyOn, test } from 'bun:test'
import { approval, claim } from '../../test/support/effects.ts'
import { newInbox } from '../../test/support/inbox.ts'
import { sendInTwo } from '../../test/support/late-body.ts'
import { scrape } from '../../test/support/metrics.ts'
import { inTime, until } from '../../test/support/patience.ts'
import { type Answer, forEachService, type TestService, type TestTenant } from '../../test/support/service.ts'
import { second_ms } from '../base/clock.ts'
import { KeyChecks } from './still-allowed.ts'

/** Holds the result of the next look-up of a key that is not remembered, once it was read, until it is released. */
function heldLookUp({ app }: TestService) {
  const [read, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const one = app.db.one.bind(app.db)
  const looking = spyOn(app.db, 'one').mockImplementation(((statement: { name: string }, params: never) => {
    const row = one(statement as never, params)
    if (statement.name !== 'credentials.find') return row
    looking.mockRestore()
    return Promise.resolve(row).then(async (found) => {
      read.resolve()
      await released.promise
      return found
    })
  }) as never)
  return { read: read.promise, release: released.resolve }
}

const metrics = { METRICS: '127.0.0.1:0' }

forEachService(
  'A request that waits',
  (service) => {
    service.over_http = true
    service.looks_again = false // the end of a key, or what is waited for, wakes it, and nothing else

    const as = (key: string, method: string, path: string, body?: object) =>
      service.ask(method, path, { key, ...(body && { body }) })
    const refusal = ({ status, body }: Answer) => [status, body.error?.code]
    const unauthorized = [401, 'UNAUTHORIZED']

    /** Sent, and held by the service. */
    async function held(send: () => Promise<Answer>): Promise<{ answer: Promise<Answer> }> {
      const answer = send()
      await until(async () => (await scrape(service)).sum('waystation_waiters') === 1)
      return { answer: inTime(answer) }
    }

    /** Of the journal as it is now. */
    const end = async (key: string) => (await as(key, 'GET', '/v1/events?limit=200')).body.next_after

    /** Something to wait for, how an agent or an admin waits for it, and how it happens. */
    interface Awaited {
      wait(key: string): Promise<Answer>
      happen(): Promise<unknown>
    }

    const nouns: [string, (tenant: TestTenant) => Promise<Awaited>][] = [
      [
        'a message',
        async (tenant) => {
          const { id, path } = await newInbox(service, tenant)
          return {
            wait: (key) => as(key, 'GET', `/api/webhook/${id}/messages?wait=55`),
            happen: () => service.ask('POST', path, { body: 'a secret' }),
          }
        },
      ],
      [
        'a decision',
        async ({ api_key, admin_key }) => {
          const { body } = await as(api_key, 'POST', '/v1/checkpoints', { title: 'Go?', callback_url: null })
          return {
            wait: (key) => as(key, 'GET', `/v1/checkpoints/${body.id}?wait=55`),
            happen: () => as(admin_key, 'POST', `/v1/checkpoints/${body.id}/approve`),
          }
        },
      ],
      [
        'an effect',
        async (tenant) => {
          const { body } = await claim(service, tenant, { key: 'x', approval })
          return {
            wait: (key) => as(key, 'GET', `/v1/effects/${body.id}?wait=55`),
            happen: () => as(tenant.admin_key, 'POST', `/v1/checkpoints/${body.checkpoint_id}/approve`),
          }
        },
      ],
      [
        'a page of events',
        async ({ admin_key }) => {
          const query = `after=${await end(admin_key)}&type=audit.appended&wait=55`
          return {
            wait: (key) => as(key, 'GET', `/v1/events?${query}`),
            happen: () => as(admin_key, 'POST', '/v1/audit', { action: 'a' }),
          }
        },
      ],
      [
        'one of several events',
        async ({ admin_key }) => {
          const asked = { any: [{ type: 'audit.appended' }], after: await end(admin_key), wait_seconds: 55 }
          return {
            wait: (key) => as(key, 'POST', '/v1/wait', asked),
            happen: () => as(admin_key, 'POST', '/v1/audit', { action: 'a' }),
          }
        },
      ],
    ]

    describe.each(nouns)('for %s', (_, make) => {
      test('is 401 at once when its key is rotated without grace, or its agent deleted', async () => {
        const tenant = await service.signUp('pro')
        const { wait } = await make(tenant)
        const rotated = await held(() => wait(tenant.api_key))
        const path = `/v1/agents/${tenant.agent_id}`
        const { api_key } = (await as(tenant.admin_key, 'POST', `${path}/rotate-key`)).body
        expect(refusal(await rotated.answer)).toEqual(unauthorized)
        const deleted = await held(() => wait(api_key))
        expect((await as(tenant.admin_key, 'DELETE', path)).status).toBe(204)
        expect(refusal(await deleted.answer)).toEqual(unauthorized)
      })

      test('is 403 at once when its tenant is deleted', async () => {
        const tenant = await service.signUp('pro')
        const { wait } = await make(tenant)
        const { answer } = await held(() => wait(tenant.admin_key))
        await as(tenant.admin_key, 'DELETE', `/v1/tenants/${tenant.tenant_id}`, {
          confirm: 'DELETE ALL DATA',
        })
        expect(refusal(await answer)).toEqual([403, 'TENANT_PENDING_DELETION'])
      })

      test('does not show what comes after the grace of its key, of whose end there is no signal', async () => {
        const tenant = await service.signUp('pro')
        const { wait, happen } = await make(tenant)
        const grace = { grace_seconds: 30 }
        await as(tenant.admin_key, 'POST', `/v1/agents/${tenant.agent_id}/rotate-key`, grace)
        const { answer } = await held(() => wait(tenant.api_key))
        service.clock.advance(30 * second_ms)
        await happen()
        expect(refusal(await answer)).toEqual(unauthorized)
      })

      test('waits on when another key of its tenant ends, and shows what comes', async () => {
        const tenant = await service.signUp('pro')
        const other = await service.addAgent(tenant.admin_key, 'other')
        const { wait, happen } = await make(tenant)
        const { answer } = await held(() => wait(tenant.api_key))
        await as(tenant.admin_key, 'POST', `/v1/agents/${other.agent_id}/rotate-key`)
        await happen()
        expect((await answer).status).toBe(200)
      })
    })

    test('is 401 at once when its key ends while a change before that is looked at', async () => {
      const { api_key, admin_key, agent_id } = await service.signUp('pro')
      const other = await service.addAgent(admin_key, 'other')
      const asked = { any: [{ type: 'dlq.created' }], wait_seconds: 55 }
      const { answer } = await held(() => as(api_key, 'POST', '/v1/wait', asked))
      const look_up = heldLookUp(service)
      await as(admin_key, 'PATCH', `/v1/agents/${other.agent_id}`, { mode: 'read' })
      await inTime(look_up.read)
      await as(admin_key, 'POST', `/v1/agents/${agent_id}/rotate-key`)
      look_up.release()
      expect(refusal(await answer)).toEqual(unauthorized)
    })

    test('is 401 when the grace of its key ends while a check from before that is under way', async () => {
      const { api_key, admin_key, agent_id } = await service.signUp('pro')
      const other = await service.addAgent(admin_key, 'other')
      await as(admin_key, 'POST', `/v1/agents/${agent_id}/rotate-key`, { grace_seconds: 30 })
      const asked = { any: [{ type: 'dlq.created' }], wait_seconds: 55 }
      const { answer } = await held(() => as(api_key, 'POST', '/v1/wait', asked))
      // Looked up now, so that the next look-up is that of the key that waits.
      await as(admin_key, 'GET', '/v1/agents')
      const look_up = heldLookUp(service)
      const checks = spyOn(KeyChecks.prototype, 'requireAllowed')
      await as(admin_key, 'PATCH', `/v1/agents/${other.agent_id}`, { mode: 'propose' })
      await inTime(look_up.read)
      service.clock.advance(30 * second_ms)
      await as(other.api_key, 'POST', '/v1/dlq', { error: 'e', payload: 1 })
      await until(() => checks.mock.calls.length === 2)
      checks.mockRestore()
      look_up.release()
      expect(refusal(await answer)).toEqual(unauthorized)
    })

    test('is 401 at once when its key has ended before its body was there', async () => {
      const { api_key: key, admin_key, agent_id } = await service.signUp('pro')
      const body = { any: [{ type: 'dlq.created' }], wait_seconds: 55 }
      const answer = await inTime(
        sendInTwo(service, { method: 'POST', path: '/v1/wait', key, body }, () =>
          as(admin_key, 'POST', `/v1/agents/${agent_id}/rotate-key`),
        ),
      )
      expect(answer).toStartWith('HTTP/1.1 401 ')
    })

    test('for a decision is 401 at once when its approval key is revoked', async () => {
      const { api_key, admin_key } = await service.signUp('pro')
      const { id } = (await as(api_key, 'POST', '/v1/checkpoints', { title: 'Go?', callback_url: null })).body
      const key = (await as(admin_key, 'POST', '/v1/approval-keys')).body
      const { answer } = await held(() => as(key.approval_key, 'GET', `/v1/approvals/${id}?wait=55`))
      await as(admin_key, 'DELETE', `/v1/approval-keys/${key.approval_key_id}`)
      expect(refusal(await answer)).toEqual(unauthorized)
    })
  },
  metrics,
)
