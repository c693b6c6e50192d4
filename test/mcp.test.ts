// The official MCP client calls every tool, over both transports and in both generations of the protocol.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { ready_tools } from '../mcp/server.ts'
import { routes } from '../src/features.ts'
import { readyIn } from './support/contract.ts'
import { connect, type McpClient, transports } from './support/mcp.ts'
import { cron_secret, forEachService, type TestTenant } from './support/service.ts'
import { watchWaits } from './support/waits.ts'

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true })
addFormats.default(ajv)

forEachService('MCP', (service) => {
  describe.each(transports)('over %s, revision %s', (over, revision) => {
    let tenant: TestTenant
    let agent: McpClient
    let called: Set<string>
    const schemas = new Map<string, { input: ValidateFunction; output: ValidateFunction }>()

    beforeAll(async () => {
      tenant = await service.signUp('pro')
      agent = await connect(over, service.url, tenant.api_key, { revision })
      called = new Set()
      for (const { name, inputSchema, outputSchema } of (await agent.client.listTools()).tools) {
        schemas.set(name, {
          input: ajv.compile(inputSchema as object),
          output: ajv.compile(outputSchema as object),
        })
      }
    })
    afterAll(() => agent.close())

    /** Calls, and judges arguments and answer by the schemas that the tool was listed with. */
    async function call(name: string, args: Record<string, unknown> = {}) {
      const { input, output } = schemas.get(name)!
      expect([name, input(args), input.errors]).toEqual([name, true, null])
      const answer = await agent.call(name, args)
      expect([name, answer.is_error, answer.text]).toEqual([name, false, expect.any(String)])
      expect([name, output(answer.data), output.errors]).toEqual([name, true, null])
      expect(JSON.parse(answer.text)).toEqual(answer.data)
      called.add(name)
      return answer.data
    }

    test('an agent keeps state', async () => {
      const at = { namespace: 'state', key: 'a/b c?' }
      expect(await call('kv_put', { ...at, value: { n: 1 }, cas_version: 0 })).toEqual({
        ...at,
        version: 1,
        expires_at: null,
      })
      expect(await call('kv_get', at)).toMatchObject({ ...at, value: { n: 1 }, version: 1 })
      expect(await call('kv_list', { namespace: 'state', prefix: 'a/' })).toMatchObject({
        items: [{ key: at.key, version: 1 }],
        next_cursor: null,
      })
      expect(await agent.call('kv_delete', { ...at, if_version: 2 })).toMatchObject({
        is_error: true,
        data: { code: 'VERSION_MISMATCH' },
      })
      expect(await call('kv_delete', { ...at, if_version: 1 })).toEqual({ deleted: true })
      expect(await agent.call('kv_get', at)).toMatchObject({
        is_error: true,
        data: { code: 'KEY_NOT_FOUND' },
      })
    })

    test('an agent notes what it did, once for an idempotency_key', async () => {
      const entry = { action: 'invoice.paid', workflow_id: 'w-1', metadata: { n: 7 }, idempotency_key: 'k-1' }
      const first = await call('audit_append', entry)
      expect(first).toMatchObject({ action: 'invoice.paid', actor: 'agent-one', agent_id: 'agent-one' })
      expect(await call('audit_append', entry)).toEqual(first)
      expect(await call('audit_list', { workflow_id: 'w-1' })).toEqual({ items: [first], next_cursor: null })
    })

    test('an agent dead-letters failures, and claims and resolves them', async () => {
      const { id } = await call('dlq_create', { payload: { order: 7 }, error: 'card declined' })
      service.clock.advance(1)
      // Taken, and not listed: converters for Gemini cannot say it beside other types.
      const { data: other } = await agent.call('dlq_create', { payload: null, error: 'no such order' })
      expect((await call('dlq_list', { status: 'failed' })).items).toMatchObject([{ id: other.id }, { id }])
      expect(await call('dlq_get', { id })).toMatchObject({ id, status: 'failed', payload: { order: 7 } })
      const { item } = await call('dlq_claim', { lock_seconds: 60 })
      expect(item).toMatchObject({ id, status: 'claimed', payload: { order: 7 }, claims: 1 })
      expect(await call('dlq_release', { id, lock_token: item.lock_token })).toMatchObject({
        status: 'failed',
      })
      const again = (await call('dlq_claim', { id })).item
      expect(again).toMatchObject({ id, claims: 2 })
      expect(await call('dlq_resolve', { id, lock_token: again.lock_token })).toMatchObject({
        status: 'resolved',
      })
      expect((await call('dlq_claim')).item).toMatchObject({ id: other.id })
      expect(await call('dlq_fail', { id: other.id })).toMatchObject({ status: 'archived' })
      expect(await call('dlq_claim')).toEqual({ item: null })
    })

    test('an agent schedules, asks and waits, with an inbox as its URL', async () => {
      const inbox = await call('inbox_create', { label: 'mine', idempotency_key: 'inbox' })
      const schedule = await call('schedule_create', {
        callback_url: inbox.url,
        callback_payload: { wake: 'up' },
        fire_at: '2099-01-01T09:00:00Z',
      })
      expect(await call('schedule_get', { id: schedule.id })).toEqual(schedule)
      expect(await call('schedule_cancel', { id: schedule.id })).toEqual({ cancelled: true })

      const soon = { callback_url: inbox.url, callback_payload: 1, in_seconds: 90.5 }
      const { now } = (await agent.call('schedule_create', {})).data
      const { fire_at } = await call('schedule_create', soon)
      expect(Date.parse(fire_at)).toBeGreaterThanOrEqual(Date.parse(now) + 90_500)
      expect(Date.parse(fire_at)).toBeLessThan(Date.parse(now) + 150_000)

      const silent = await call('checkpoint_create', { title: 'Pay?' })
      expect(silent).toMatchObject({ status: 'pending', callback_url: null })
      const checkpoint = await call('checkpoint_create', { title: 'Pay?', callback_url: inbox.url })
      expect(await call('checkpoint_wait', { id: checkpoint.id, wait: 0 })).toEqual({
        ...checkpoint,
        next_step: `Not decided yet. Call checkpoint_wait again with id "${checkpoint.id}".`,
      })
      expect(await call('checkpoint_cancel', { id: checkpoint.id })).toEqual({ cancelled: true })
      expect(await call('checkpoint_wait', { id: checkpoint.id })).toMatchObject({
        status: 'cancelled',
        next_step: 'Settled as cancelled: do not do what was asked.',
      })

      expect(await call('inbox_wait', { id: inbox.id, wait: 0 })).toEqual({
        items: [],
        nextAfter: null,
        next_step: 'No message came. Call inbox_wait again without after.',
      })
      const watched = watchWaits(tenant.tenant_id)
      const waited = call('inbox_wait', { id: inbox.id })
      await watched.began
      watched.restore()
      await service.ask('POST', new URL(inbox.url).pathname, { body: { hello: 'agent' } })
      const { items, nextAfter, next_step } = await waited
      expect(items).toMatchObject([{ id: nextAfter, method: 'POST', body: { hello: 'agent' } }])
      expect(next_step).toBe(`Handle this message, then call inbox_wait again with after "${nextAfter}".`)
      expect(await call('inbox_wait', { id: inbox.id, wait: 0 })).toEqual({ items, nextAfter, next_step })
      expect(await call('inbox_wait', { id: inbox.id, after: nextAfter, wait: 0 })).toEqual({
        items: [],
        nextAfter,
        next_step: `No message came. Call inbox_wait again with after "${nextAfter}".`,
      })
    })

    test('an agent sends again what failed', async () => {
      const url = 'http://127.0.0.1:9/'
      const due = { callback_url: url, callback_payload: 1, fire_at: '2020-01-01T00:00:00Z' }
      const failed: string[] = []
      for (const dlq_on_failure of [true, false])
        failed.push((await call('schedule_create', { ...due, dlq_on_failure })).id)
      const { id, url: own } = await call('inbox_create', { forwardUrl: url })
      await service.ask('POST', new URL(own).pathname, { body: { n: 1 } })
      for (const wait_ms of [0, 30_000, 60_000]) {
        service.clock.advance(wait_ms)
        expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
      }
      const { dead_letter_id } = await call('schedule_get', { id: failed[0] })
      const redriven = await call('dlq_redrive', { id: dead_letter_id, idempotency_key: 'again' })
      expect(redriven).toMatchObject({ id: dead_letter_id, status: 'resolved' })
      expect(await call('dlq_redrive', { id: dead_letter_id, idempotency_key: 'again' })).toEqual(redriven)
      expect(await call('schedule_get', { id: redriven.redriven_as })).toMatchObject({
        ...{ status: 'pending', retry_of: failed[0], redrive_of: dead_letter_id },
      })
      expect(await call('schedule_retry', { id: failed[1] })).toMatchObject({
        ...{ status: 'pending', retry_of: failed[1], redrive_of: null },
      })
      const { items } = await call('inbox_wait', { id, wait: 0 })
      expect(await call('inbox_replay', { id, message_id: items[0].id })).toMatchObject({
        ...{ id: items[0].id, forward: { status: 'pending' } },
      })
    })

    test('an agent discards and redrives many, and follows it', async () => {
      for (let n = 0; n < 3; n++) await call('dlq_create', { payload: n, error: 'many of these' })
      const filter = { cause: 'many of these' }
      const counted = await call('dlq_many', { verb: 'discard', filter, dry_run: true })
      expect(counted).toEqual({ matched: 3 })
      const ended = async ({ id }: { id: string }) => {
        for (;;) {
          expect((await service.ask('POST', '/v1/tick', { key: cron_secret })).status).toBe(200)
          const seen = await call('dlq_get', { id })
          if (seen.status !== 'running') return seen
        }
      }
      const started = await call('dlq_many', { verb: 'discard', filter, idempotency_key: 'discard' })
      expect(started.id).toMatch(/^dop_/)
      expect(started).toMatchObject({ verb: 'discard', matched: 3 })
      expect(await ended(started)).toMatchObject({ status: 'succeeded', done: 3 })
      const again = await call('dlq_many', { verb: 'redrive', filter: { ...filter, status: 'archived' } })
      expect(again).toMatchObject({ verb: 'redrive', matched: 3 })
      expect(await ended(again)).toMatchObject({ verb: 'redrive', status: 'succeeded', done: 3 })
      expect((await call('dlq_list', { status: 'failed' })).items).toHaveLength(3)
      await ended(await call('dlq_many', { verb: 'discard', filter }))
      expect(await call('dlq_claim')).toEqual({ item: null })
    })

    test('an agent asks whether it is too much; a blocked check is an answer, no error', async () => {
      const check = { key: 'mail', limit: 1, windowSeconds: 60 }
      expect(await call('rate_limit_check', check)).toMatchObject({ allowed: true, count: 1, remaining: 0 })
      expect(await call('rate_limit_check', check)).toMatchObject({ allowed: false, retryAfter: 60 })
    })

    test('an agent waits for whichever of several events comes first, and misses none before the wait', async () => {
      const any = [{ type: 'schedule.fired' }, { type: 'inbox.created' }]
      const begun = await call('wait_for', { any, wait_seconds: 0 })
      expect(begun).toMatchObject({ event: null })
      expect(begun.next_step).toBe(`Nothing has come. Call wait_for again with after ${begun.after}.`)
      const { id } = await call('inbox_create')
      const came = await call('wait_for', { any, after: begun.after })
      expect(came.event).toMatchObject({ type: 'inbox.created', subject: { kind: 'inbox', id } })
      expect(came.next_step).toStartWith('inbox.created has come: continue with your work.')
    })

    test('an agent does once what a person has approved, and is answered the result from then on', async () => {
      const payload = { order: 7, amount: 30 }
      const claim = { type: 'refund', key: `order-${over}`, payload, approval: { title: 'Refund 30 EUR?' } }
      const { id, checkpoint, next_step } = await call('effect_begin', claim)
      expect(next_step).toBe(
        `A person has been asked. Call effect_status with id "${id}" until it is decided.`,
      )
      const waited = call('effect_status', { id })
      await service.ask('POST', `/v1/checkpoints/${checkpoint.id}/approve`, { key: tenant.admin_key })
      expect(await waited).toMatchObject({
        status: 'approved',
        next_step: `It may be done: call effect_begin with id "${id}" and nothing else.`,
      })
      const begun = await call('effect_begin', { id, lease_seconds: 120 })
      expect(begun).toMatchObject({ status: 'running', payload, effective_payload: null })
      expect(begun.next_step).toStartWith(
        `You have the lease until ${begun.lease_until}: do exactly what payload`,
      )
      const again = await agent.call('effect_begin', claim)
      expect(again.data).toMatchObject({ code: 'EFFECT_IN_FLIGHT', retry_after_seconds: 120 })
      const { lease_token } = begun
      const result = { refund: 're_9' }
      await call('effect_finish', { id, lease_token, outcome: 'succeeded', result })
      expect(await call('effect_begin', claim)).toMatchObject({
        status: 'succeeded',
        result,
        lease_token: null,
      })
      expect((await call('effect_status', { id, wait: 0 })).next_step).toStartWith('It has happened')
    })

    test('the question of an effect leads to the effect, whose bytes may be others and which may have happened', async () => {
      const asked = { type: 'refund', key: `edited-${over}`, payload: { amount: 30 } }
      const { id, checkpoint_id } = await call('effect_begin', {
        ...asked,
        approval: { title: 'Refund 30 EUR?', editable: true },
      })
      const lookAt = async () => (await call('checkpoint_wait', { id: checkpoint_id, wait: 0 })).next_step
      expect(await lookAt()).toStartWith('Not decided yet.')
      const body = { effective_payload: { amount: 20 } }
      await service.ask('POST', `/v1/checkpoints/${checkpoint_id}/approve`, { key: tenant.admin_key, body })
      const next = `Settled as approved. It is about an effect: call effect_status with id "${id}", and do only what that says.`
      expect(await lookAt()).toBe(next)
      const { lease_token } = await call('effect_begin', { id })
      await call('effect_finish', { id, lease_token, outcome: 'succeeded' })
      expect(await lookAt()).toBe(next)
    })

    test('an agent reports that an effect did not happen, for good or to be tried again', async () => {
      const claim = { type: 'refund', key: `other-${over}`, payload: [1] }
      const { id, lease_token } = await call('effect_begin', claim)
      const failed = { id, lease_token, outcome: 'failed', error: 'card declined' }
      expect(await call('effect_finish', { ...failed, retry: true })).toMatchObject({ status: 'ready' })
      const second = await call('effect_begin', { id })
      expect(second.fence).toBe(2)
      await call('effect_finish', { ...failed, lease_token: second.lease_token })
      expect((await call('effect_begin', claim)).next_step).toBe('It is failed for good: do not do it.')
    })

    test('arguments of the other operation of a tool are refused, and missing ones named', async () => {
      const issuesOf = async (name: string, args: Record<string, unknown>) => {
        const { data } = await agent.call(name, args)
        expect(data.code).toBe('VALIDATION_FAILED')
        return data.details.issues.map((issue: { argument: string; message: string }) => [
          issue.argument,
          issue.message,
        ])
      }
      const id = 'eff_01m7yjrz37hxnv52px0106nehd'
      expect(await issuesOf('effect_begin', { key: 'k' })).toEqual([
        ['type', 'is required, or id'],
        ['payload', 'is required, or id'],
      ])
      expect(await issuesOf('effect_begin', { id, payload: 1 })).toEqual([['payload', 'does not go with id']])
      const report = { id, lease_token: 'x'.repeat(16) }
      expect(await issuesOf('effect_finish', { ...report, outcome: 'failed', result: 1 })).toEqual([
        ['error', 'is required'],
        ['result', 'does not go with outcome "failed"'],
      ])
      expect(await issuesOf('effect_finish', { ...report, outcome: 'succeeded', retry: true })).toEqual([
        ['retry', 'does not go with outcome "succeeded"'],
      ])
    })

    test('an agent calls every tool that no story above is about, with an example of its arguments', async () => {
      expect(called.size).toBeGreaterThanOrEqual(24)
      const { tenant_id, agent_id, admin_key: admin, api_key } = tenant
      const keys = { admin, agent: api_key, approval: '' }
      for (const { tool } of ready_tools.filter(({ tool }) => !called.has(tool.name))) {
        const named = routes.find(({ name }) => name === tool.operation)!
        const made = await readyIn(service, named, { tenant_id, agent_id, keys, approval_key_id: '' })
        await call(tool.name, { ...made.params, ...made.body })
      }
    })

    test('every tool was called', () => {
      expect([...called].toSorted()).toEqual([...schemas.keys()].toSorted())
    })

    test('a wait that is cancelled ends at the service as well', async () => {
      const { id } = (await agent.call('inbox_create')).data
      const watched = watchWaits(tenant.tenant_id)
      const cancel = new AbortController()
      const waited = agent.call('inbox_wait', { id }, cancel.signal).catch((error: Error) => error.message)
      await watched.began
      cancel.abort('no longer needed')
      await watched.ended
      watched.restore()
      expect(await waited).toContain('no longer needed')
      expect((await agent.call('kv_list', { namespace: 'state' })).is_error).toBe(false)
    })

    test('what belongs to another tenant answers like what does not exist', async () => {
      const other = await service.signUp()
      const ask = async (path: string, body: object) =>
        (await service.ask('POST', path, { key: other.api_key, body })).body
      const callback_url = `${service.url}/hook/none`
      const { id: dlq_id } = await ask('/v1/dlq', { payload: 1, error: 'x' })
      const { id: checkpoint_id } = await ask('/v1/checkpoints', { title: 'x', callback_url })
      const { id: schedule_id } = await ask('/v1/schedules', {
        ...{ callback_url, callback_payload: 1, fire_at: '2099-01-01T09:00:00Z' },
      })
      const { id: inbox_id } = (await ask('/api/webhook', {})).data
      await service.ask('PUT', '/v1/kv/theirs/key', { key: other.api_key, body: { value: 1 } })
      const cases: [tool: string, args: object, absent: object, code: string][] = [
        [
          'kv_get',
          { namespace: 'theirs', key: 'key' },
          { namespace: 'theirs', key: 'none' },
          'KEY_NOT_FOUND',
        ],
        [
          'kv_delete',
          { namespace: 'theirs', key: 'key' },
          { namespace: 'theirs', key: 'none' },
          'KEY_NOT_FOUND',
        ],
        ...['dlq_get', 'dlq_claim', 'dlq_release', 'dlq_resolve', 'dlq_fail'].map(
          (tool): [string, object, object, string] => [
            tool,
            { id: dlq_id },
            { id: 'dlq_none' },
            'DLQ_NOT_FOUND',
          ],
        ),
        ...['schedule_get', 'schedule_cancel', 'schedule_retry'].map(
          (tool): [string, object, object, string] => [
            tool,
            { id: schedule_id },
            { id: 'sch_none' },
            'SCHEDULE_NOT_FOUND',
          ],
        ),
        ...['checkpoint_wait', 'checkpoint_cancel'].map((tool): [string, object, object, string] => [
          tool,
          { id: checkpoint_id },
          { id: 'chk_none' },
          'CHECKPOINT_NOT_FOUND',
        ]),
        ['inbox_wait', { id: inbox_id }, { id: 'inb_none' }, 'INBOX_NOT_FOUND'],
        [
          'inbox_replay',
          { id: inbox_id, message_id: 'msg_x' },
          { id: 'inb_none', message_id: 'msg_x' },
          'INBOX_NOT_FOUND',
        ],
      ]
      for (const [tool, args, absent, code] of cases) {
        const [theirs, nobodys] = [await agent.call(tool, { ...args }), await agent.call(tool, { ...absent })]
        expect([tool, theirs.is_error, theirs.data.code]).toEqual([tool, true, code])
        expect({ ...theirs.data, request_id: '' }).toEqual({ ...nobodys.data, request_id: '' })
      }
      expect((await agent.call('kv_list', { namespace: 'theirs' })).data.items).toEqual([])
      expect((await agent.call('dlq_claim')).data).toEqual({ item: null })
    })

    test('arguments that break a rule are all named, and nothing is done', async () => {
      const refused = async (name: string, args: Record<string, unknown>) => {
        const { is_error, data } = await agent.call(name, args)
        expect([is_error, data.code, data.next_step]).toEqual([
          true,
          'VALIDATION_FAILED',
          'Correct what details.issues names, then send the request again.',
        ])
        return data.details.issues
      }
      expect(await refused('kv_put', { namespace: '-', ttl_seconds: 0, versoin: 1 })).toEqual([
        { argument: 'key', message: 'is required' },
        { argument: 'value', message: 'is required' },
        { argument: 'versoin', message: 'is not an argument of this tool' },
        { argument: 'namespace', message: expect.stringContaining('must match pattern') },
        { argument: 'ttl_seconds', message: 'must be >= 1' },
      ])
      expect(await refused('kv_put', { namespace: 'a', key: 'b', value: { n: [2 ** 53] } })).toEqual([
        { argument: 'value', message: expect.stringContaining('beyond 2^53') },
      ])
      const deep = JSON.parse('['.repeat(65) + ']'.repeat(65))
      expect(await refused('kv_put', { namespace: 'a', key: 'b', value: deep })).toEqual([
        { argument: 'value', message: 'is nested deeper than 64 levels' },
      ])
      const inherited = JSON.parse(
        '{"namespace": "a", "key": "..", "__proto__": {"value": 1e30}, "constructor": 1}',
      )
      expect(await refused('kv_put', inherited)).toEqual([
        { argument: 'value', message: 'is required' },
        { argument: '__proto__', message: 'is not an argument of this tool' },
        { argument: 'constructor', message: 'is not an argument of this tool' },
        { argument: 'key', message: 'cannot be part of a URL' },
      ])
      expect(await refused('kv_delete', { namespace: 'a', key: '..' })).toEqual([
        { argument: 'key', message: 'cannot be part of a URL' },
      ])
      expect(await refused('kv_get', { namespace: 'a', key: '\ud800' })).toEqual([
        { argument: 'key', message: 'must be well-formed text' },
      ])
      expect(await refused('kv_list', { namespace: 'a', prefix: '\0' })).toEqual([
        { argument: 'prefix', message: 'must be well-formed text without NUL' },
      ])
      expect(await refused('dlq_get', { id: '' })).toEqual([
        { argument: 'id', message: expect.stringContaining('fewer than 1') },
      ])
      expect(await refused('dlq_list', { status: 'gone' })).toEqual([
        { argument: 'status', message: expect.stringContaining('failed, claimed, resolved, archived') },
      ])
      expect(await refused('dlq_many', { verb: 'discard', filter: { max: 5 }, max: 5 })).toEqual([
        { argument: 'filter/max', message: 'is not a member of filter' },
      ])
      const events = [{ type: 'kv.*' }, { 'a/b': 1, after: 7 }]
      expect(await refused('wait_for', { any: events, after: 7, all: 1 })).toEqual([
        { argument: 'all', message: 'is not an argument of this tool' },
        { argument: 'any/1/a~1b', message: 'is not a member of any/1' },
        { argument: 'any/1/after', message: 'is not a member of any/1' },
      ])
      expect(await refused('checkpoint_wait', { id: 'chk_1', wait: 51 })).toEqual([
        { argument: 'wait', message: 'must be <= 50' },
      ])
      expect(
        await refused('schedule_create', { callback_url: 'ftp://x', callback_payload: 1, fire_at: 'soon' }),
      ).toEqual([{ argument: 'fire_at', message: expect.any(String) }])
      expect((await agent.call('kv_list', { namespace: 'a' })).data.items).toEqual([])
    })

    test('schedule_create takes one of fire_at and in_seconds, and its errors say the present time', async () => {
      const body = { callback_url: 'http://127.0.0.1:9/', callback_payload: 1 }
      const at = { fire_at: '2099-01-01T00:00:00Z' }
      const cases: [object, object[]][] = [
        [{}, [{ argument: 'fire_at', message: 'is required, or in_seconds' }]],
        [{ ...at, in_seconds: 1 }, [{ argument: 'in_seconds', message: 'excludes fire_at' }]],
        [
          { in_seconds: 1, idempotency_key: 'once' },
          [
            {
              argument: 'in_seconds',
              message: 'excludes idempotency_key: give fire_at, which a repeat can name again',
            },
          ],
        ],
        [{ in_seconds: -1 }, [{ argument: 'in_seconds', message: 'must be >= 0' }]],
        [{ in_seconds: 315_360_001 }, [{ argument: 'in_seconds', message: 'must be <= 315360000' }]],
        [{ fire_at: 'soon' }, [{ argument: 'fire_at', message: expect.any(String) }]],
      ]
      for (const [more, issues] of cases) {
        const { data, is_error } = await agent.call('schedule_create', { ...body, ...more })
        expect([is_error, data]).toEqual([
          true,
          expect.objectContaining({
            code: 'VALIDATION_FAILED',
            details: { issues },
            now: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          }),
        ])
      }
      for (const in_seconds of [0, 315_360_000]) {
        expect((await agent.call('schedule_create', { ...body, in_seconds })).is_error).toBe(false)
      }
      expect((await agent.call('kv_get', { namespace: 'a', key: 'none' })).data.now).toBeUndefined()
    })

    test('null counts as absent in an optional argument, and is a value where any JSON goes', async () => {
      const at = { namespace: 'nulls', key: 'a' }
      expect(await agent.call('kv_put', { ...at, value: null, ttl_seconds: null })).toMatchObject({
        is_error: false,
        data: { version: 1, expires_at: null },
      })
      expect((await agent.call('kv_get', at)).data.value).toBeNull()
    })

    test.each([
      ['dlq_list', { status: null, source: null, limit: null, from: null }],
      [
        'checkpoint_create',
        { title: 'May I?', timeout_action: null, callback_url: null, callback_payload: null },
      ],
      ['rate_limit_check', { key: 'nulls', limit: 3, windowSeconds: 60, algorithm: null, cost: null }],
      ['dlq_many', { verb: 'discard', dry_run: true, filter: { status: null, source: 'agent', ids: null } }],
      ['wait_for', { any: [{ type: 'agent.created', subject: null, workflow_id: null }], after: 0 }],
    ])('frameworks fill %s with null, in objects and lists of texts as well', async (name, args) => {
      expect(await agent.call(name, args)).toMatchObject({ is_error: false })
    })

    test('a filter of nulls alone is refused: it would be one for every item', async () => {
      const many = { verb: 'discard', dry_run: true }
      const { is_error, data } = await agent.call('dlq_many', { ...many, filter: { ids: null, cause: null } })
      const named = data.details.issues.map(({ argument }: { argument: string }) => argument)
      expect([is_error, data.code, named.toSorted()]).toEqual([
        true,
        'VALIDATION_FAILED',
        ['filter/cause', 'filter/ids'],
      ])
      expect(await agent.call('dlq_many', { ...many, filter: {} })).toMatchObject({ is_error: false })
    })

    test('null in what the other operation of a tool takes counts as absent', async () => {
      const asked = { type: 'refund', key: 'nulls', payload: 1, on_unknown: null }
      const approval = { title: 'Refund?', prompt: null, editable: null, timeout_seconds: null }
      const begun = await agent.call('effect_begin', { ...asked, id: null, approval: null })
      expect(begun).toMatchObject({ is_error: false, data: { status: 'running' } })
      const { id, lease_token } = begun.data
      const failed = { id, lease_token, outcome: 'failed', error: 'no card', retry: true }
      expect(await agent.call('effect_finish', { ...failed, result: null })).toMatchObject({
        is_error: false,
      })
      const again = { id, type: null, key: null, payload: null, approval: null }
      expect(await agent.call('effect_begin', again)).toMatchObject({ data: { status: 'running' } })
      const held = await agent.call('effect_begin', { ...asked, key: 'held', approval })
      expect(held).toMatchObject({ is_error: false, data: { status: 'awaiting_approval' } })
    })

    test('null for an argument that is needed, or that is none, is refused', async () => {
      const { data } = await agent.call('kv_get', { namespace: 'a', key: null, version: null })
      const named = data.details.issues.map(({ argument }: { argument: string }) => argument)
      expect([data.code, named.toSorted()]).toEqual(['VALIDATION_FAILED', ['key', 'version']])
    })

    test('the text of an answer keeps all digits of a stored number', async () => {
      const path = '/v1/kv/digits/long'
      await service.ask('PUT', path, {
        key: tenant.api_key,
        headers: { 'content-type': 'application/json' },
        body: '{"value": [12345678901234567890, 1e400]}',
      })
      const { text, is_error } = await agent.call('kv_get', { namespace: 'digits', key: 'long' })
      expect(is_error).toBe(false)
      expect(text).toContain('"value":[12345678901234567890, 1e400]')
    })

    test.each([
      ['"\\uD800"', '\ufffd'],
      ['["\\udc00\\ud800","\\\\ud800 \\n\\udfff."]', ['\ufffd\ufffd', '\\ud800 \n\ufffd.']],
      ['{"a\\udbff": ["\\ud83d\\ude00 \\ud83d", 1e400]}', { 'a\ufffd': ['😀 \ufffd', '1e400'] }],
    ])('half of a character is replaced beside the text, which keeps it: %s', async (value, shown) => {
      const body = `{"value": ${value}}`
      const headers = { 'content-type': 'application/json' }
      await service.ask('PUT', '/v1/kv/state/half', { key: tenant.api_key, headers, body })
      const { text, data } = await agent.call('kv_get', { namespace: 'state', key: 'half' })
      expect(text).toContain(`"value":${value},`)
      expect(data.value).toEqual(shown)
    })

    test('a tool that is none, and arguments that are none, are errors of the protocol', async () => {
      await expect(agent.call('kv_steal')).rejects.toMatchObject({
        ...{ code: -32_602, message: 'there is no tool kv_steal' },
      })
      const no_object = agent.client.callTool({ name: 'kv_get', arguments: 'namespace' as never })
      await expect(no_object).rejects.toMatchObject({ code: -32_602 })
    })

    test('a read-only connection has and calls only tools that change nothing', async () => {
      const reader = await connect(over, service.url, tenant.api_key, { read_only: true, revision })
      const { tools } = await reader.client.listTools()
      expect(tools.map(({ name }) => name)).toEqual([
        ...['kv_get', 'kv_list', 'audit_list', 'workflow_timeline', 'dlq_list', 'dlq_get', 'schedule_get'],
        ...['checkpoint_wait', 'inbox_wait', 'wait_for', 'effect_status'],
      ])
      expect(reader.client.getInstructions()).toEndWith('only tools that change nothing are there.')
      expect((await reader.call('kv_list', { namespace: 'state' })).is_error).toBe(false)
      const wanted = { any: [{ type: 'agent.created' }], after: 0 }
      expect((await reader.call('wait_for', wanted)).data.event.type).toBe('agent.created')
      const put = reader.call('kv_put', { namespace: 'state', key: 'x', value: 1 })
      await expect(put).rejects.toMatchObject({
        ...{ code: -32_602, message: 'kv_put changes data, and this connection is read-only' },
      })
      expect((await reader.call('kv_get', { namespace: 'state', key: 'x' })).data.code).toBe('KEY_NOT_FOUND')
      await reader.close()
    })
  })
})
