import { describe, expect, test } from 'bun:test'
import { type Answer, forEachRacedService, type TestService } from '../../test/support/service.ts'
import { hour_ms, iso } from '../base/clock.ts'
import { limits } from '../base/limit.ts'

function refusal({ status, body }: Answer) {
  return [status, body?.error?.code, body?.error?.details]
}

/** Status, code and where the rules were broken. */
function broken({ status, body }: Answer) {
  const issues: { path: string }[] = body?.error?.details?.issues ?? []
  return [status, body?.error?.code, ...issues.map(({ path }) => path)]
}

function logOf(service: TestService, key: string) {
  return {
    append: (body: unknown, headers: Record<string, string> = {}) =>
      service.ask('POST', '/v1/audit', { key, headers, body }),
    list: (query = '') => service.ask('GET', `/v1/audit${query}`, { key }),
    get: (id: string) => service.ask('GET', `/v1/audit/${id}`, { key }),
  }
}

async function newLog(service: TestService) {
  return logOf(service, (await service.signUp()).api_key)
}

function actionsOf({ body }: Answer): string[] {
  return body.items.map(({ action }: { action: string }) => action)
}

const merged_max = limits.get('audit.merged_actions')!.value

forEachRacedService('Audit log', (service) => {
  describe('POST /audit', () => {
    test('answers every field: what was sent, and id, seq, agent_id, request_id, created_at', async () => {
      const log = await newLog(service)
      const appended = await log.append(
        { action: 'deploy', workflow_id: 'wf-1', actor: 'release bot', metadata: { commit: 'abc' } },
        { 'x-request-id': 'request-0001' },
      )
      expect(appended.status).toBe(201)
      expect(appended.body).toEqual({
        id: expect.stringMatching(/^log_[0-9a-z]{26}$/),
        seq: 1,
        action: 'deploy',
        workflow_id: 'wf-1',
        actor: 'release bot',
        metadata: { commit: 'abc' },
        agent_id: 'agent-one',
        request_id: 'request-0001',
        created_at: iso(service.clock.now()),
      })
    })

    test("actor defaults to the agent's id, or admin; agent_id is null for the admin key", async () => {
      const { admin_key, api_key } = await service.signUp()
      const body = { action: 'noted' }
      const nulls = { action: 'noted', workflow_id: null, actor: null, metadata: null }
      for (const sent of [body, nulls]) {
        const by_agent = (await logOf(service, api_key).append(sent)).body
        expect([by_agent.actor, by_agent.agent_id]).toEqual(['agent-one', 'agent-one'])
        const by_admin = (await logOf(service, admin_key).append(sent)).body
        expect([by_admin.actor, by_admin.agent_id]).toEqual(['admin', null])
        expect([by_admin.workflow_id, by_admin.metadata]).toEqual([null, null])
      }
    })

    test('a client chooses neither id, seq, time nor tenant', async () => {
      const log = await newLog(service)
      const appended = await log.append({
        action: 'noted',
        id: 'log_00000000000000000000000000',
        seq: 99,
        created_at: '2000-01-01T00:00:00Z',
        tenant_id: 'ten_x',
        agent_id: 'someone',
        request_id: 'mine-12345',
      })
      expect(appended.body).toMatchObject({
        seq: 1,
        agent_id: 'agent-one',
        created_at: iso(service.clock.now()),
      })
      expect(appended.body.id).not.toBe('log_00000000000000000000000000')
      expect(appended.body.request_id).toBe(appended.headers.get('x-request-id'))
      expect(appended.headers.get('x-ignored-fields')).toBe(
        'id, seq, created_at, tenant_id, agent_id, request_id',
      )
    })

    test.each([
      ['action', 128],
      ['workflow_id', 256],
      ['actor', 256],
    ])('%s has at most %d characters', async (field, most) => {
      const log = await newLog(service)
      for (const character of ['x', '\u{1f600}']) {
        const kept = await log.append({ action: 'a', [field]: character.repeat(most) })
        expect([kept.status, kept.body[field]]).toEqual([201, character.repeat(most)])
        const refused = await log.append({ action: 'a', [field]: character.repeat(most + 1) })
        expect(broken(refused)).toEqual([400, 'VALIDATION_FAILED', `/${field}`])
      }
    })

    test.each(['', null, undefined, 7, true, {}, [['a']], 'a\u0000b', '\ud800'])(
      'action %j is refused',
      async (action) => {
        const log = await newLog(service)
        expect(broken(await log.append({ action }))).toEqual([400, 'VALIDATION_FAILED', '/action'])
        expect((await log.list()).body.items).toEqual([])
      },
    )

    test.each([
      '{}',
      '{ "b" : 1,\n "a" : [ 1e400, 123456789012345678901234567890 ], "b" : 2 }',
      '{"\\u0000":"\\ud800"}',
    ])('metadata %j comes back as the exact text that came in', async (text) => {
      const log = await newLog(service)
      const appended = await log.append(`{"action": "a", "metadata":  ${text} }`)
      expect(appended.status).toBe(201)
      expect(appended.text).toContain(`"metadata":${text},"agent_id"`)
      expect((await log.get(appended.body.id)).text).toBe(appended.text)
      expect((await log.list()).text).toBe(`{"items":[${appended.text}],"next_cursor":null}`)
    })

    test.each(['[]', '[{}]', '"text"', '7', 'true', 'false'])(
      'metadata %s is not an object',
      async (text) => {
        const log = await newLog(service)
        const refused = await log.append(`{"action": "a", "metadata": ${text}}`)
        expect(broken(refused)).toEqual([400, 'VALIDATION_FAILED', '/metadata'])
      },
    )

    test.each([
      ['64 KiB', `{"a":"${'x'.repeat(65_528)}"}`, 201],
      ['one byte more', `{"a":"${'x'.repeat(65_529)}"}`, 413],
      ['64 KiB of two-byte characters', `{"a":"${'é'.repeat(32_764)}"}`, 201],
      ['one byte more of these', `{"a":"${'é'.repeat(32_764)}x"}`, 413],
    ])('metadata of %s answers its status', async (_, text, status) => {
      const log = await newLog(service)
      const answer = await log.append(`{"action": "a", "metadata": ${text}}`)
      expect([answer.status, answer.body.error?.code]).toEqual([
        status,
        status === 201 ? undefined : 'PAYLOAD_TOO_LARGE',
      ])
    })

    test('seq is gap-free per tenant: what was refused or replayed takes no number', async () => {
      const { admin_key, api_key } = await service.signUp()
      const other = await newLog(service)
      const log = logOf(service, api_key)
      const once = { 'idempotency-key': 'append-once' }
      const seqs: number[] = []
      seqs.push((await log.append({ action: 'one' })).body.seq)
      await log.append({ action: '' })
      seqs.push((await log.append({ action: 'two' }, once)).body.seq)
      await log.append({ action: 'two' }, once)
      await log.append({ action: 'another body' }, once)
      seqs.push((await logOf(service, admin_key).append({ action: 'three' })).body.seq)
      seqs.push((await log.append({ action: 'four' })).body.seq)
      expect(seqs).toEqual([1, 2, 3, 4])
      expect((await other.append({ action: 'first' })).body.seq).toBe(1)
      expect(actionsOf(await log.list())).toEqual(['four', 'three', 'two', 'one'])
    })

    test('time never runs backwards in a log, though the clock may', async () => {
      const log = await newLog(service)
      const before = service.clock.now()
      const first = (await log.append({ action: 'before' })).body
      service.clock.jump(-hour_ms)
      const second = (await log.append({ action: 'after' })).body
      expect([first.created_at, second.created_at]).toEqual([iso(before), iso(before)])
      service.clock.jump(hour_ms + 5)
      const third = (await log.append({ action: 'later' })).body
      expect(third.created_at).toBe(iso(before + 5))
      expect(actionsOf(await log.list(`?from=${iso(before)}&to=${iso(before + 5)}`))).toEqual([
        'after',
        'before',
      ])
    })
  })

  describe('No route changes or removes an entry', () => {
    test.each(['PATCH', 'PUT', 'DELETE'])('%s answers 405 with Allow', async (method) => {
      const { admin_key } = await service.signUp()
      const log = logOf(service, admin_key)
      const { id } = (await log.append({ action: 'kept' })).body
      for (const [path, allow] of [
        ['/v1/audit', 'GET, HEAD, OPTIONS, POST'],
        [`/v1/audit/${id}`, 'GET, HEAD, OPTIONS'],
      ] as const) {
        const refused = await service.ask(method, path, { key: admin_key, body: { action: 'changed' } })
        expect(refusal(refused)).toEqual([405, 'METHOD_NOT_ALLOWED', undefined])
        expect(refused.headers.get('allow')).toBe(allow)
      }
      expect(actionsOf(await log.list())).toEqual(['kept'])
    })

    test('the log holds what POST /audit appended and nothing else', async () => {
      const { tenant_id, admin_key, api_key } = await service.signUp()
      await service.ask('PUT', '/v1/kv/a/b', { key: api_key, body: { value: 1 } })
      await service.addAgent(admin_key, 'agent-two')
      await service.ask('DELETE', '/v1/agents/agent-two', { key: admin_key })
      await service.ask('POST', '/v1/approval-keys', { key: admin_key })
      await service.ask('POST', `/v1/tenants/${tenant_id}/rotate-signing-secret`, { key: admin_key })
      expect((await logOf(service, api_key).list()).body).toEqual({ items: [], next_cursor: null })
    })
  })

  describe('GET /audit/{id}', () => {
    test('answers the entry as it was appended, to every agent and the admin of the tenant', async () => {
      const { admin_key, api_key } = await service.signUp()
      const { api_key: second_key } = await service.addAgent(admin_key, 'agent-two')
      const appended = await logOf(service, api_key).append({ action: 'read me', metadata: { a: 1 } })
      for (const key of [admin_key, api_key, second_key]) {
        const read = await logOf(service, key).get(appended.body.id)
        expect([read.status, read.text]).toEqual([200, appended.text])
      }
    })

    test('an unknown id answers 404, one of another tenant byte for byte alike', async () => {
      const { api_key } = await service.signUp()
      const foreign = (await (await newLog(service)).append({ action: 'foreign' })).body.id
      const ids = [foreign, 'log_00000000000000000000000000', '1', 'nonsense', '%00', '%FF', 'x'.repeat(300)]
      const answers = await Promise.all(
        ids.map((id) =>
          service.ask('GET', `/v1/audit/${id}`, {
            key: api_key,
            headers: { 'x-request-id': 'request-0001' },
          }),
        ),
      )
      expect(answers.map(refusal)).toEqual(Array(7).fill([404, 'AUDIT_ENTRY_NOT_FOUND', undefined]))
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    })
  })

  describe('GET /audit/suggestions/{field}', () => {
    async function filledLog() {
      const { admin_key, api_key } = await service.signUp()
      const log = logOf(service, api_key)
      for (const action of ['b', 'order.paid', 'order.sent', 'Order', 'order', 'order.paid', 'ordes', 'ä']) {
        await log.append({ action, workflow_id: `wf of ${action}` })
      }
      await logOf(service, admin_key).append({ action: 'b', actor: '' })
      const texts = async (at: string, key = api_key) => {
        const answer = await service.ask('GET', `/v1/audit/suggestions/${at}`, { key })
        expect(answer.status).toBe(200)
        return answer.body
      }
      const valuesOf = async (at: string) =>
        (await texts(at)).items.map(({ value }: { value: string }) => value)
      return { admin_key, api_key, texts, valuesOf }
    }

    test('lists each text once in bytewise order, and those that begin with a prefix', async () => {
      const { valuesOf } = await filledLog()
      const actions = ['Order', 'b', 'order', 'order.paid', 'order.sent', 'ordes', 'ä']
      expect(await valuesOf('action')).toEqual(actions)
      expect(await valuesOf('action?prefix=order')).toEqual(['order', 'order.paid', 'order.sent'])
      expect(await valuesOf('action?prefix=%C3%A4')).toEqual(['ä'])
      expect(await valuesOf('action?prefix=z')).toEqual([])
      expect(await valuesOf('actor')).toEqual(['', 'agent-one'])
      expect(await valuesOf('agent_id')).toEqual(['agent-one'])
      expect(await valuesOf('workflow_id?prefix=wf%20of%20o')).toEqual(
        ['order', 'order.paid', 'order.sent', 'ordes'].map((action) => `wf of ${action}`),
      )
    })

    test('pages have no repeat and no gap, and a cursor is worth nothing for another field or tenant', async () => {
      const { admin_key, api_key, texts } = await filledLog()
      const seen: string[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: { items: { value: string }[]; next_cursor: string | null } = await texts(
          `action?limit=1${cursor && `&cursor=${cursor}`}`,
          admin_key,
        )
        seen.push(...page.items.map(({ value }) => value))
        cursor = page.next_cursor
      }
      expect(seen).toEqual(['Order', 'b', 'order', 'order.paid', 'order.sent', 'ordes', 'ä'])
      const { next_cursor } = await texts('action?limit=1')
      const other = await service.signUp()
      const refused = [
        await service.ask('GET', `/v1/audit/suggestions/actor?cursor=${next_cursor}`, { key: api_key }),
        await service.ask('GET', `/v1/audit/suggestions/action?cursor=${next_cursor}`, {
          key: other.api_key,
        }),
      ]
      expect(refused.map(({ status, body }) => [status, body.error.details.issues[0].path])).toEqual(
        Array(2).fill([400, 'query.cursor']),
      )
      expect((await texts('action', other.api_key)).items).toEqual([])
    })

    test('agent_id lists the agents that there are, page by page; entries of a deleted one stay', async () => {
      const { admin_key, texts } = await filledLog()
      const create = (name: string) => service.ask('POST', '/v1/agents', { key: admin_key, body: { name } })
      const [made] = [await create('agent-two'), await create('agent-ten'), await create('other')]
      await logOf(service, made.body.api_key).append({ action: 'b' })
      const pageOf = async (at: string) => {
        const { items, next_cursor } = await texts(`agent_id?${at}`, admin_key)
        return { values: items.map(({ value }: { value: string }) => value), next_cursor }
      }
      const first = await pageOf('prefix=agent-&limit=2')
      expect(first.values).toEqual(['agent-one', 'agent-ten'])
      expect(await pageOf(`prefix=agent-&limit=2&cursor=${first.next_cursor}`)).toEqual({
        values: ['agent-two'],
        next_cursor: null,
      })
      await service.ask('DELETE', '/v1/agents/agent-two', { key: admin_key })
      expect((await pageOf('prefix=agent-t')).values).toEqual(['agent-ten'])
      expect(actionsOf(await logOf(service, admin_key).list('?agent_id=agent-two'))).toEqual(['b'])
    })

    test('a field that has no filter answers 400', async () => {
      const { api_key } = await filledLog()
      for (const field of ['metadata', 'seq', 'Action', 'id']) {
        const answer = await service.ask('GET', `/v1/audit/suggestions/${field}`, { key: api_key })
        expect([answer.status, answer.body.error.code]).toEqual([400, 'VALIDATION_FAILED'])
      }
    })

    test('costs one statement, whatever the log holds', async () => {
      const { texts } = await filledLog()
      const names: string[] = []
      await texts('action')
      service.app.db.onStatement((name) => name.startsWith('audit.') && names.push(name))
      await texts('action?prefix=o')
      service.app.db.onStatement(null)
      expect(names).toEqual(['audit.values_action'])
    })
  })

  describe('GET /audit', () => {
    /** Six entries, one second apart, told apart by their action. */
    async function filledLog() {
      const { admin_key, api_key } = await service.signUp()
      const log = logOf(service, api_key)
      const began = service.clock.now()
      const entries = [
        { action: 'start', workflow_id: 'wf-1', actor: 'ann' },
        { action: 'step', workflow_id: 'wf-1', actor: 'bob' },
        { action: 'start', workflow_id: 'wf-2', actor: 'ann' },
        { action: 'step', workflow_id: 'wf-2' },
        { action: 'stop', workflow_id: 'wf-1', actor: 'ann' },
      ]
      for (const entry of entries) {
        await log.append(entry)
        service.clock.advance(1_000)
      }
      await logOf(service, admin_key).append({ action: 'close' })
      service.clock.advance(1_000)
      return { log, at: (second: number, ms = 0) => iso(began + second * 1_000 + ms) }
    }

    const seqsOf = ({ body }: Answer): number[] => body.items.map(({ seq }: { seq: number }) => seq)

    test('is newest first', async () => {
      const { log } = await filledLog()
      const list = await log.list()
      expect([list.status, seqsOf(list), list.body.next_cursor]).toEqual([200, [6, 5, 4, 3, 2, 1], null])
    })

    test.each([
      ['workflow_id=wf-1', [5, 2, 1]],
      ['action=start', [3, 1]],
      ['actor=ann', [5, 3, 1]],
      ['actor=agent-one', [4]],
      ['actor=admin', [6]],
      ['workflow_id=wf-1&action=start', [1]],
      ['workflow_id=wf-1&actor=ann', [5, 1]],
      ['action=start&actor=ann', [3, 1]],
      ['workflow_id=wf-2&action=start&actor=ann', [3]],
      ['workflow_id=wf-2&action=stop', []],
      ['workflow_id=', []],
      ['action=START', []],
      ['action=star', []],
      ['action=%25', []],
      ['action=nothing&action=start', [3, 1]],
      ['action_prefix=st', [5, 4, 3, 2, 1]],
      ['action_prefix=sto', [5]],
      ['action_prefix=start', [3, 1]],
      ['action_prefix=start.', []],
      ['action_prefix=ST', []],
      ['action_prefix=', [6, 5, 4, 3, 2, 1]],
      ['action_prefix=%25', []],
      ['action_prefix=st&action=stop', [5]],
      ['action_prefix=c&action=stop', []],
      ['action_prefix=st&actor=ann', [5, 3, 1]],
      ['action_prefix=ste&actor=ann', []],
      ['action_prefix=st&workflow_id=wf-1&actor=ann', [5, 1]],
      ['agent_id=agent-one', [5, 4, 3, 2, 1]],
      ['agent_id=admin', []],
      ['agent_id=agent-one&action_prefix=st&actor=bob', [2]],
      ['agent_id=agent-one&action=start', [3, 1]],
      ['agent_id=agent-one&workflow_id=wf-1&action=stop&actor=ann', [5]],
      ['seq=3&tenant_id=ten_x', [6, 5, 4, 3, 2, 1]],
    ] as [string, number[]][])('filter %s gives %j', async (query, seqs) => {
      const { log } = await filledLog()
      expect(seqsOf(await log.list(`?${query}`))).toEqual(seqs)
      expect(seqsOf(await log.list(`?${query}&limit=2`))).toEqual(seqs.slice(0, 2))
    })

    test.each([merged_max, merged_max + 1])(
      'a prefix of %p actions leads through all of their entries, newest first',
      async (actions) => {
        const { api_key } = await service.signUp()
        const log = logOf(service, api_key)
        const appended: string[] = []
        for (let i = 0; i < 3 * actions; i++) {
          const action = i % 3 === 2 ? 'other' : `order.${(i * 7) % actions}\u{1f4e8}`
          await log.append({ action, ...(i % 2 === 0 && { workflow_id: 'even' }) })
          appended.unshift(action)
          service.clock.advance(1_000)
        }
        const orders = appended.flatMap((action, i) =>
          action.startsWith('order.') ? [appended.length - i] : [],
        )
        expect(await pagedSeqs(log, 'action_prefix=order.&limit=7')).toEqual(orders)
        expect(await pagedSeqs(log, `action_prefix=${encodeURIComponent('order.1')}&limit=2`)).toEqual(
          orders.filter((seq) => appended[appended.length - seq]!.startsWith('order.1')),
        )
        const even = await pagedSeqs(log, 'action_prefix=order.&workflow_id=even&limit=4')
        expect(even).toEqual(orders.filter((seq) => seq % 2 === 1))
        const from = iso(service.clock.now() - 10_000)
        expect(await pagedSeqs(log, `action_prefix=order.&from=${from}&limit=3`)).toEqual(
          orders.filter((seq) => seq > appended.length - 10),
        )
        const to = iso(service.clock.now() - 10_000)
        expect(await pagedSeqs(log, `action_prefix=order.&to=${to}&limit=50`)).toEqual(
          orders.filter((seq) => seq <= appended.length - 10),
        )
      },
    )

    test('entries of a rare agent are found through pages of a bounded look at the log', async () => {
      const { admin_key, api_key } = await service.signUp()
      const mine = logOf(service, api_key)
      const admins = logOf(service, admin_key)
      await mine.append({ action: 'order.paid' })
      for (let i = 0; i < 5; i++) await admins.append({ action: `order.${i % 3}`, workflow_id: 'w' })
      await mine.append({ action: 'order.sent', workflow_id: 'w' })
      for (const [query, seqs] of [
        ['', [7, 1]],
        ['&action_prefix=order.', [7, 1]],
        ['&action_prefix=order.p', [1]],
        ['&workflow_id=w', [7]],
        ['&workflow_id=w&action_prefix=order.', [7]],
        ['&actor=admin', []],
      ] as const) {
        for (const limit of [1, 3]) {
          expect(await pagedSeqs(mine, `agent_id=agent-one${query}&limit=${limit}`)).toEqual([...seqs])
        }
      }
      const names: string[] = []
      service.app.db.onStatement((name) => name.startsWith('audit.') && names.push(name))
      await mine.list('?agent_id=agent-one')
      service.app.db.onStatement(null)
      expect(names).toEqual(['audit.reach_log', 'audit.list_filtered'])
    })

    async function pagedSeqs(log: ReturnType<typeof logOf>, query: string): Promise<number[]> {
      const seqs: number[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Answer = await log.list(`?${query}${cursor && `&cursor=${cursor}`}`)
        expect(page.status).toBe(200)
        seqs.push(...seqsOf(page))
        cursor = page.body.next_cursor
      }
      return seqs
    }

    test('from is inclusive, to is exclusive', async () => {
      const { log, at } = await filledLog()
      const cases: [string, number[]][] = [
        [`from=${at(2)}`, [6, 5, 4, 3]],
        [`from=${at(2, 1)}`, [6, 5, 4]],
        [`from=${at(0)}`, [6, 5, 4, 3, 2, 1]],
        [`from=${at(6)}`, []],
        [`to=${at(2)}`, [2, 1]],
        [`to=${at(2, 1)}`, [3, 2, 1]],
        [`to=${at(0)}`, []],
        [`to=${at(100)}`, [6, 5, 4, 3, 2, 1]],
        [`from=${at(1)}&to=${at(4)}`, [4, 3, 2]],
        [`from=${at(1)}&to=${at(4)}&workflow_id=wf-1`, [2]],
        [`from=${at(1)}&to=${at(5)}&workflow_id=wf-1&action=stop&actor=ann`, [5]],
        [`from=${at(4)}&to=${at(1)}`, []],
        [`from=${at(3)}&to=${at(3)}`, []],
      ]
      for (const [query, seqs] of cases)
        expect([query, seqsOf(await log.list(`?${query}`))]).toEqual([query, seqs])
    })

    test('entries of one millisecond stay together', async () => {
      const log = await newLog(service)
      await log.append({ action: 'before' })
      service.clock.advance(1)
      const at = iso(service.clock.now())
      for (let i = 0; i < 20; i++) await log.append({ action: 'together' })
      service.clock.advance(1)
      await log.append({ action: 'after' })
      const together = Array.from({ length: 20 }, (_, i) => 21 - i)
      expect(seqsOf(await log.list(`?from=${at}`))).toEqual([22, ...together])
      expect(seqsOf(await log.list(`?to=${at}`))).toEqual([1])
      const next = iso(service.clock.now())
      expect(seqsOf(await log.list(`?from=${at}&to=${next}`))).toEqual(together)
    })

    test('a time may carry any offset and more digits than milliseconds', async () => {
      const { log, at } = await filledLog()
      const utc = at(2)
      const shifted = (hours: number) => iso(Date.parse(utc) + hours * hour_ms).slice(0, -1)
      for (const from of [
        utc,
        utc.replace('Z', 'z').replace('T', 't'),
        utc.replace('.000Z', 'Z'),
        utc.replace('Z', '000000Z'),
        `${shifted(2)}%2B02:00`,
        `${shifted(-5)}-05:00`,
        `${shifted(5.5)}%2B05:30`,
      ]) {
        expect(seqsOf(await log.list(`?from=${from}`))).toEqual([6, 5, 4, 3])
      }
    })

    test.each([
      'yesterday',
      '',
      '2026-01-01',
      '2026-01-01T00:00:00',
      '2026-01-01T00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-01-01T00:00:00+02:00',
      '2026-01-01T00:00:00%2B24:00',
      '2026-01-01T00:00:00%2B0200',
      '10000-01-01T00:00:00Z',
      '1767225600',
    ])('"%s" is not a time: from and to answer 400', async (text) => {
      const log = await newLog(service)
      for (const name of ['from', 'to']) {
        const refused = await log.list(`?${name}=${text}`)
        expect(broken(refused)).toEqual([400, 'VALIDATION_FAILED', `query.${name}`])
      }
    })

    test('a page holds 50 by default; pages have no repeat and no gap while entries come in', async () => {
      const log = await newLog(service)
      for (let i = 1; i <= 53; i++) await log.append({ action: `a${i}` })
      const first = await log.list()
      expect(seqsOf(first)).toEqual(Array.from({ length: 50 }, (_, i) => 53 - i))
      await log.append({ action: 'new' })
      const second = await log.list(`?cursor=${first.body.next_cursor}`)
      expect([seqsOf(second), second.body.next_cursor]).toEqual([[3, 2, 1], null])
    })

    test.each([1, 2, 3])('pages of %d through a filter', async (limit) => {
      const { log } = await filledLog()
      const seen: number[] = []
      let cursor: string | null = null
      do {
        const query: string = cursor === null ? '' : `&cursor=${cursor}`
        const page: Answer = await log.list(`?actor=ann&limit=${limit}${query}`)
        expect(page.body.items.length).toBe(Math.min(limit, 3 - seen.length))
        seen.push(...seqsOf(page))
        cursor = page.body.next_cursor
      } while (cursor !== null)
      expect(seen).toEqual([5, 3, 1])
    })

    test('a log is read by its own tenant only', async () => {
      const log = await newLog(service)
      const other = await newLog(service)
      await log.append({ action: 'mine' })
      await other.append({ action: 'theirs' })
      expect(actionsOf(await log.list())).toEqual(['mine'])
      expect(actionsOf(await other.list('?action=mine'))).toEqual([])
    })
  })
})
