// POST /mcp as HTTP: who may ask, from where, in which form, and how a wait ends.

import { describe, expect, spyOn, test } from 'bun:test'
import { answerPost } from '../mcp/http.ts'
import { ready_tools } from '../mcp/server.ts'
import { hour_ms, iso } from '../src/base/clock.ts'
import { becomes } from './support/patience.ts'
import { type Ask, cron_secret, forEachService } from './support/service.ts'
import { watchWaits } from './support/waits.ts'

const friendly_origin = 'https://app.example.com'
const both = 'application/json, text/event-stream'
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

forEachService(
  'POST /mcp',
  (service) => {
    const post = (path: string, { headers, ...ask }: Ask) =>
      service.ask('POST', path, { ...ask, headers: { accept: both, ...headers } })
    const called = (id: number, name: string, args: object) => ({
      ...{ jsonrpc: '2.0', id, method: 'tools/call' },
      params: { name, arguments: args },
    })
    const cancelled = (id: number) => ({
      ...{ jsonrpc: '2.0', method: 'notifications/cancelled' },
      params: { requestId: id },
    })

    test('a key is needed before anything is said, and it must be an agent key', async () => {
      const { admin_key, api_key, agent_id } = await service.signUp()
      const approval_key = (await service.ask('POST', '/v1/approval-keys', { key: admin_key })).body
        .approval_key
      const cases: [headers: Record<string, string>, status: number, code?: string][] = [
        [{}, 401, 'UNAUTHORIZED'],
        [{ authorization: 'Bearer nonsense' }, 401, 'UNAUTHORIZED'],
        [{ authorization: `Bearer ${api_key.slice(0, -1)}-` }, 401, 'UNAUTHORIZED'],
        [{ authorization: `Bearer ${cron_secret}` }, 401, 'UNAUTHORIZED'],
        [{ 'x-api-key': api_key, 'x-agent-id': 'another' }, 401, 'UNAUTHORIZED'],
        [{ authorization: `Bearer ${admin_key}` }, 403, 'FORBIDDEN'],
        [{ 'x-admin-key': admin_key }, 403, 'FORBIDDEN'],
        [{ 'x-api-key': admin_key }, 403, 'FORBIDDEN'],
        [{ 'x-approval-key': approval_key }, 403, 'FORBIDDEN'],
        [{ authorization: `Bearer ${admin_key}`, 'x-api-key': api_key }, 400, 'VALIDATION_FAILED'],
        [{ authorization: `Bearer ${api_key}` }, 200],
        [{ 'x-api-key': api_key }, 200],
        [{ 'x-api-key': api_key, 'x-agent-id': agent_id }, 200],
        [{ authorization: `Bearer ${api_key}`, 'x-api-key': api_key }, 200],
        [{ authorization: 'Basic cHJveHk6cHJveHk=', 'x-api-key': api_key }, 200],
      ]
      for (const [headers, status, code] of cases) {
        const answer = await post('/mcp', { headers, body: list })
        expect([headers, answer.status, answer.body.error?.code]).toEqual([headers, status, code])
        expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
        const request_id = answer.headers.get('x-request-id')
        expect(request_id).toStartWith('req_')
        expect(answer.body.error?.request_id ?? request_id).toBe(request_id)
      }
    })

    test('a tenant that is being deleted is refused as by the API', async () => {
      const { tenant_id, admin_key, api_key: key } = await service.signUp()
      const body = { confirm: 'DELETE ALL DATA' }
      await service.ask('DELETE', `/v1/tenants/${tenant_id}`, { key: admin_key, body })
      const answer = await post('/mcp', { key, body: list })
      expect([answer.status, answer.body.error.code]).toEqual([403, 'TENANT_PENDING_DELETION'])
    })

    test('a page of another site may not ask, whatever key it has', async () => {
      const { api_key: key } = await service.signUp()
      const cases: [origin: string, status: number][] = [
        [service.url, 200],
        [friendly_origin, 200],
        ['https://evil.example.com', 403],
        [`${friendly_origin}.evil.com`, 403],
        [service.url.replace('127.0.0.1', 'localhost'), 403],
        ['null', 403],
      ]
      for (const [origin, status] of cases) {
        const answer = await post('/mcp', { key, headers: { origin }, body: list })
        const code = status === 403 ? 'FORBIDDEN' : undefined
        expect([origin, answer.status, answer.body.error?.code]).toEqual([origin, status, code])
      }
    })

    test('the mode is read-only or nothing, in the query or in a header', async () => {
      const { api_key: key } = await service.signUp()
      const count = async (path: string, headers = {}) =>
        (await post(path, { key, headers, body: list })).body.result.tools.length
      const reading = ready_tools.filter(({ listed }) => listed.annotations.readOnlyHint).length
      expect(reading).toBe(11)
      expect(await count('/mcp')).toBe(ready_tools.length)
      expect(await count('/mcp?mode=read-only')).toBe(reading)
      expect(await count('/mcp', { 'x-waystation-mode': 'read-only' })).toBe(reading)
      for (const [path, headers] of [
        ['/mcp?mode=readonly', {}],
        ['/mcp?mode=', {}],
        ['/mcp?mode=read-only', { 'x-waystation-mode': 'all' }],
      ] as const) {
        const answer = await post(path, { key, headers, body: list })
        expect([answer.status, answer.body.error.code]).toEqual([400, 'VALIDATION_FAILED'])
      }
    })

    test('X-Workflow-Id names the workflow of every call of a tool, and has the rules of the API', async () => {
      const { api_key: key } = await service.signUp()
      const workflow_id = 'Größe 7: 日本'
      const append = called(1, 'audit_append', { action: 'a' })
      const named = (text: string) =>
        post('/mcp', {
          ...{ key, body: append },
          headers: { 'x-workflow-id': Buffer.from(text).toString('latin1') },
        })
      const { body } = await named(workflow_id)
      expect(body.result.structuredContent).toMatchObject({ action: 'a', workflow_id })
      const { status, body: refused } = await named('x'.repeat(257))
      expect([status, refused.error.code, refused.error.details.issues[0].path]).toEqual([
        ...[400, 'VALIDATION_FAILED', 'header.X-Workflow-Id'],
      ])
    })

    test('JSON is answered where it is taken, and a stream where only that is', async () => {
      const { api_key: key } = await service.signUp()
      const types: [accept: string, status: number, type: string | null][] = [
        [both, 200, 'application/json'],
        ['application/json', 200, 'application/json'],
        ['*/*', 200, 'application/json'],
        ['text/event-stream', 200, 'text/event-stream'],
        ['text/html', 406, 'application/json'],
      ]
      const put = called(3, 'kv_put', { namespace: 'a', key: 'b', value: 1 })
      for (const [accept, status, type] of types) {
        const answer = await post('/mcp', { key, headers: { accept }, body: put })
        const media = answer.headers.get('content-type')!.split(';')[0]!
        expect([accept, answer.status, media]).toEqual([accept, status, type!])
      }
      const { text } = await post('/mcp', { key, headers: { accept: 'text/event-stream' }, body: put })
      const [, data] = /^event: message\ndata: (.*)\n\n$/.exec(text)!
      expect(JSON.parse(data!)).toMatchObject({ id: 3, result: { structuredContent: { version: 5 } } })
    })

    test.each([both, 'text/event-stream'])(
      'all digits of a number are in both forms of an answer to %s',
      async (accept) => {
        const { api_key: key } = await service.signUp()
        const value = '[9007199254740993,-0.10,{"rate":12345678901234567890.5}]'
        const headers = { 'content-type': 'application/json' }
        await service.ask('PUT', '/v1/kv/a/b', { key, headers, body: `{"value":${value}}` })
        const get = called(1, 'kv_get', { namespace: 'a', key: 'b' })
        const { text } = await post('/mcp', { key, headers: { accept }, body: get })
        expect(text).toContain(`"structuredContent":{"namespace":"a","key":"b","value":${value},"version":1,`)
        expect(text).toContain(`\\"value\\":${value.replaceAll('"', '\\"')},\\"version\\":1,`)
      },
    )

    test('a number beyond every double is a string in structuredContent, which clients in Go refuse otherwise', async () => {
      const { api_key: key } = await service.signUp()
      const headers = { 'content-type': 'application/json' }
      await service.ask('PUT', '/v1/kv/a/b', { key, headers, body: '{"value":[1e400,-1e400,1e-400]}' })
      const get = called(1, 'kv_get', { namespace: 'a', key: 'b' })
      const { text } = await post('/mcp', { key, body: get })
      expect(text).toContain(
        '"structuredContent":{"namespace":"a","key":"b","value":["1e400","-1e400",1e-400],"version":1,',
      )
      expect(text).toContain('\\"value\\":[1e400,-1e400,1e-400],\\"version\\":1,')
    })

    test('a body that is not a message is refused', async () => {
      const { api_key: key } = await service.signUp()
      const json = { 'content-type': 'application/json' }
      const cases: [what: string, ask: Ask, status: number, code: number][] = [
        ['no JSON', { body: '{', headers: json }, 400, -32_700],
        ['no UTF-8', { body: new Uint8Array([0x22, 0xff, 0x22]), headers: json }, 400, -32_700],
        ['nothing', { headers: json }, 400, -32_700],
        ['a batch', { body: [list] }, 400, -32_600],
        ['no JSON-RPC', { body: { hello: 1 } }, 400, -32_600],
        ['another JSON-RPC', { body: { ...list, jsonrpc: '1.0' } }, 400, -32_600],
        ['no method', { body: { jsonrpc: '2.0', id: 1 } }, 400, -32_600],
        ['a method that is not a string', { body: { ...list, method: ['a'] } }, 400, -32_600],
        ['params that are not an object', { body: { ...list, params: [1] } }, 400, -32_600],
        ['null', { body: 'null', headers: json }, 400, -32_600],
        ['a string', { body: '"a"', headers: json }, 400, -32_600],
        ['a form', { body: 'a=b', headers: { 'content-type': 'text/plain' } }, 400, -32_700],
        [
          'JSON as text',
          { body: JSON.stringify(list), headers: { 'content-type': 'text/plain' } },
          415,
          -32_000,
        ],
        [
          'an unknown version',
          { body: list, headers: { 'mcp-protocol-version': '2020-01-01' } },
          400,
          -32_000,
        ],
      ]
      for (const [what, ask, status, code] of cases) {
        const answer = await post('/mcp', { key, ...ask })
        const { error } = JSON.parse(answer.text)
        expect([what, answer.status, error.code]).toEqual([what, status, code])
      }
    })

    describe('an id', () => {
      const calling = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`
      const cancelling = (id: string) =>
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`
      const json = { 'content-type': 'application/json' }
      const longest = 'x'.repeat(256)

      test.each([
        ['a string', '"a"'],
        ['an empty string', '""'],
        ['a string of 256 characters', `"${longest}"`],
        ['a string of 256 escaped characters', `"${'\\u0078'.repeat(256)}"`],
        ['0', '0'],
        ['a negative number', '-1'],
        ['the largest whole number', '9007199254740991'],
      ])('may be %s, and comes back', async (_, id) => {
        const { api_key: key } = await service.signUp()
        const answer = await post('/mcp', { key, headers: json, body: calling(id) })
        expect([answer.status, answer.body.id]).toEqual([200, JSON.parse(id)])
        const cancel = await post('/mcp', { key, headers: json, body: cancelling(id) })
        expect([cancel.status, cancel.text]).toEqual([202, ''])
      })

      const rule = 'must be a whole number or a string of at most 256 characters'
      test.each([
        ['null', 'null'],
        ['true', 'true'],
        ['an object', '{"a":1}'],
        ['an array', '[1]'],
        ['a fraction', '1.5'],
        ['a number that a double cannot hold', '9007199254740993'],
        ['an infinite number', '1e400'],
        ['a string of 257 characters', `"${longest}y"`],
        ['a string of 900 KB', `"${'x'.repeat(900_000)}"`],
        ['a wide object', `{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":${i}`).join()}}`],
        ['a wide array', `[${'0,'.repeat(400_000)}0]`],
      ])('may not be %s, nor may a params.requestId', async (_, id) => {
        const { api_key: key } = await service.signUp()
        for (const [body, name] of [
          [calling(id), 'id'],
          [cancelling(id), 'params.requestId'],
        ] as const) {
          const answer = await post('/mcp', { key, headers: json, body })
          const error = { code: -32_600, message: `The member ${name} ${rule}.` }
          expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { jsonrpc: '2.0', id: null, error }])
        }
      })
    })

    describe('a message that is nested deeper than 128 levels', () => {
      const json = { 'content-type': 'application/json' }
      const places: [place: string, before: string, after: string][] = [
        ['id', '{"jsonrpc":"2.0","method":"tools/list","id":', '}'],
        ['params', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":', '}'],
        [
          'params.requestId',
          '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":',
          '}}',
        ],
        [
          'an argument',
          '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kv_put","arguments":{"value":',
          '}}}',
        ],
      ]
      const cases = places.flatMap(([place, before, after]) =>
        [100_000, 520_000].map((levels) => [place, levels, before, after] as const),
      )

      test.each(cases)('is refused before it is parsed: %s, %d levels', async (_, levels, before, after) => {
        const { api_key: key } = await service.signUp()
        const body = `${before}${'['.repeat(levels)}${']'.repeat(levels)}${after}`
        const [parsing, stringifying] = [spyOn(JSON, 'parse'), spyOn(JSON, 'stringify')]
        const response = await fetch(`${service.url}/mcp`, {
          ...{ method: 'POST', body },
          headers: { ...json, accept: both, authorization: `Bearer ${key}` },
        })
        const text = await response.text()
        const parsed = parsing.mock.calls.map(([of]) => String(of).length)
        const made = stringifying.mock.results.map(({ type, value }) => `${type} ${value}`)
        parsing.mockRestore()
        stringifying.mockRestore()
        expect([response.status, JSON.parse(text).error]).toEqual([
          400,
          { code: -32_600, message: 'The message is nested deeper than 128 levels.' },
        ])
        // Other work of the service handles short texts only.
        expect(parsed.filter((length) => length > 1_000)).toEqual([])
        expect(made.filter((text) => !text.startsWith('return ') || text.length > 1_000)).toEqual([])
      })

      test.each(['[', '{"a":'])('is not JSON when %s is left open 300,000 times', async (opener) => {
        const { api_key: key } = await service.signUp()
        const body = opener.repeat(opener === '[' ? 520_000 : 200_000)
        const answer = await post('/mcp', { key, headers: json, body })
        expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, -32_700])
      })

      test.each([
        [125, 200, true],
        [126, 400, undefined],
      ])(
        'counts its own three levels: an argument of %d is answered %d',
        async (levels, status, is_error) => {
          const { api_key: key } = await service.signUp()
          const body = `${places[3]![1]}${'['.repeat(levels)}${']'.repeat(levels)},"namespace":"a","key":"deep"}}}`
          const answer = await post('/mcp', { key, headers: json, body })
          expect([answer.status, JSON.parse(answer.text).result?.isError]).toEqual([status, is_error])
        },
      )
    })

    describe('a message of many values', () => {
      const json = { 'content-type': 'application/json' }
      const client = '"protocolVersion":"2025-06-18","capabilities":{}'
      const starting = (icons: string) =>
        `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{${client},"clientInfo":{"name":"a, \\"b","version":"1","icons":[${icons}]}}}`
      const calling = (args: string) =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kv_put","arguments":${args}}}`
      const members = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":1`).join()
      const values = 'The message has more than 500 values outside params.arguments.'
      const many = 'The member params.arguments has more than 100 members.'
      const parts = 'The member params.arguments has more than 10000 objects, lists and members of objects.'
      const argument_values = 'The member params.arguments has more than 50000 values.'
      const storing = (value: string) => calling(`{"namespace":"a","key":"wide","value":${value}}`)
      /** With those of the call itself, which are four. */
      const objects = (count: number) => `[{}${',{}'.repeat(count - 6)}]`

      test.each([
        ['icons', starting(`1${',1'.repeat(500_000)}`), values],
        [
          'an unknown member',
          `{"jsonrpc":"2.0","id":1,"method":"tools/list","of":[1${',1'.repeat(501)}]}`,
          values,
        ],
        ['params', `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${members(502)}}}`, values],
        ['arguments that another member replaces', calling(`{${members(502)}},"arguments":{}`), values],
        ['arguments', calling(`{${members(101)}}`), many],
        [
          'arguments under an escaped name, with spaces',
          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\"}","\\u0061rguments" : {${members(101)}} }}`,
          many,
        ],
        ['a list of arguments', calling(`[1${',1'.repeat(500_000)}]`), values],
        ['objects within an argument', storing(objects(10_001)), parts],
        ['members within an argument', storing(`{${members(10_000)}}`), parts],
        ['texts within an argument', storing(`[""${',""'.repeat(49_998)}]`), argument_values],
        ['lists within lists', storing(`[[]${',[[[[[]]]]]'.repeat(2_000)}]`), parts],
      ])('is refused before it is parsed: %s', async (_, body, message) => {
        const { api_key: key } = await service.signUp()
        const answer = await post('/mcp', { key, headers: json, body })
        const error = { code: -32_600, message }
        expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { jsonrpc: '2.0', id: null, error }])
      })

      test('may have 100 arguments, and in one 50,000 values, or 10,000 objects, and a text of any form', async () => {
        const { api_key: key } = await service.signUp()
        for (const value of [`[1${',1'.repeat(49_997)}]`, `"${'{[:'.repeat(50_000)}"`, objects(10_000)]) {
          const stored = await post('/mcp', { key, headers: json, body: storing(value) })
          expect(stored.body.result.isError).toBeUndefined()
        }
        const answer = await post('/mcp', { key, headers: json, body: calling(`{${members(100)}}`) })
        expect(JSON.parse(answer.body.result.content[0].text).code).toBe('VALIDATION_FAILED')
      })

      test('may be refused by the protocol in 2,000 characters at most', async () => {
        const { api_key: key } = await service.signUp()
        const answer = await post('/mcp', { key, headers: json, body: starting(`1${',1'.repeat(400)}`) })
        expect(answer.body.error.message).toHaveLength(2_001)
        expect(answer.body.id).toBe(1)
      })
    })

    test('a body has 1 MiB at most', async () => {
      const { api_key: key } = await service.signUp()
      const of = (bytes: number) => ({
        key,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(list).padEnd(bytes),
      })
      expect((await post('/mcp', of(1_048_576))).status).toBe(200)
      const answer = await post('/mcp', of(1_048_577))
      expect([answer.status, answer.body.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    })

    test.each(['GET', 'DELETE', 'PUT', 'PATCH'])('%s is 405: there are no sessions', async (method) => {
      const { api_key: key } = await service.signUp()
      const answer = await service.ask(method, '/mcp', { key, headers: { accept: 'text/event-stream' } })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
      expect(answer.headers.has('mcp-session-id')).toBe(false)
    })

    test('a call leaves the traces of an API call: its agent, its request id, its line in the log', async () => {
      const { api_key: key, agent_id } = await service.signUp()
      const logged_before = service.logged.length
      await post('/mcp', {
        key,
        headers: { 'x-request-id': 'request-0042' },
        body: called(1, 'audit_append', { action: 'x' }),
      })
      const { items } = (await service.ask('GET', '/v1/audit?action=x', { key })).body
      expect(items).toMatchObject([{ agent_id, request_id: 'request-0042' }])
      const lines = service.logged.slice(logged_before).map(({ fields }) => fields)
      expect(lines).toContainEqual(
        expect.objectContaining({ request_id: 'request-0042', route: '/v1/audit', status: 201 }),
      )
      expect(lines).toContainEqual(expect.objectContaining({ request_id: 'request-0042', route: '/mcp' }))
    })

    test('what a tool creates belongs to the workflow that the header names, unless an argument names another', async () => {
      const { api_key: key } = await service.signUp()
      const append = async (headers: Record<string, string>, args: object) =>
        post('/mcp', { key, headers, body: called(1, 'audit_append', { action: 'x', ...args }) })
      const of = async (headers: Record<string, string>, args = {}) =>
        (await append(headers, args)).body.result.structuredContent.workflow_id
      // The bytes of its UTF-8, a character each.
      expect(await of({ 'x-workflow-id': 'Ablauf-\u00c3\u00bc' })).toBe('Ablauf-ü')
      expect(await of({ 'x-workflow-id': 'one' }, { workflow_id: 'two' })).toBe('two')
      expect(await of({})).toBeNull()
      const refused = await append({ 'x-workflow-id': '' }, {})
      expect([refused.status, refused.body.error.details.issues[0].path]).toEqual([
        400,
        'header.X-Workflow-Id',
      ])
    })

    test('only the calls of tools count as usage, and a call that goes well counts as no failure', async () => {
      const { api_key: key, admin_key } = await service.signUp()
      const usage = async () => {
        const to = iso(service.clock.now() + hour_ms)
        const { items } = (await service.ask('GET', `/v1/tenants/me/usage?to=${to}`, { key: admin_key })).body
        return items.flatMap(({ features }: { features: { feature: string }[] }) =>
          features.filter(({ feature }) => feature !== 'agents'),
        )
      }
      await post('/mcp', { key, body: list })
      expect(await usage()).toEqual([])
      await post('/mcp', { key, body: called(1, 'audit_append', { action: 'x' }) })
      expect(await usage()).toEqual([{ feature: 'audit', calls: 1, failures: 0 }])
    })

    /** An inbox, and a call that waits at it; resolves when the wait has begun. */
    async function waiting(id: number, accept = both) {
      const { api_key: key } = await service.signUp()
      const inbox = (await service.ask('POST', '/api/webhook', { key })).body.data
      const gone = new AbortController()
      const { began, ended, restore } = watchWaits()
      const answer = fetch(`${service.url}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept },
        body: JSON.stringify(called(id, 'inbox_wait', { id: inbox.id })),
        signal: gone.signal,
      }).then((response) => response.text())
      answer.catch(() => {})
      await began
      return { key, inbox, gone, answer, ended, restore }
    }

    test.each([both, 'text/event-stream'])(
      'a cancellation ends the wait of its own caller (Accept: %s)',
      async (accept) => {
        const { key, answer, ended, restore } = await waiting(7, accept)
        const answered = await post('/mcp', { key, body: cancelled(7) })
        expect([answered.status, answered.text]).toEqual([202, ''])
        await ended
        restore()
        expect(await answer).toContain('No message came')
      },
    )

    test("a cancellation ends no wait of another caller, nor of another request of one's own", async () => {
      const { key, inbox, answer, restore } = await waiting(7)
      restore()
      const other = await service.signUp()
      for (const [of, id] of [
        [other.api_key, 7],
        [key, 8],
      ] as const) {
        expect((await post('/mcp', { key: of, body: cancelled(id) })).status).toBe(202)
      }
      await service.ask('POST', new URL(inbox.url).pathname, { body: { still: 'there' } })
      expect(await answer).toContain('{"still":"there"}')
    })

    test.each([both, 'text/event-stream'])(
      'a client that goes away waits no longer (Accept: %s)',
      async (accept) => {
        const { gone, ended, restore } = await waiting(7, accept)
        gone.abort()
        await ended
        restore()
      },
    )

    describe('in the memory of its tenant, until the end', () => {
      /** Messages of calls that wait until `end`. A quarter of MEMORY_BUDGET is 8 MiB. */
      async function waiting(count: number, accept: string) {
        const { api_key: key } = await service.signUp()
        const { id } = (await service.ask('POST', '/api/webhook', { key })).body.data
        const gone = new AbortController()
        const send = async (name: string, args: object, of = '', signal?: AbortSignal) => {
          const { params, ...message } = called(1, name, args)
          const { status } = await fetch(`${service.url}/mcp`, {
            ...{ method: 'POST', ...(signal && { signal }) },
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept },
            body: JSON.stringify({ ...message, params: { ...params, _meta: { of } } }),
          })
          return status
        }
        for (let i = 0; i < count; i++) {
          const { began, restore } = watchWaits()
          send('inbox_wait', { id }, megabyte, gone.signal).catch(() => {})
          await began
          restore()
        }
        return { send, end: () => gone.abort() }
      }
      const megabyte = 'x'.repeat(1_000_000)

      // Otherwise one tenant could fill the memory of a node with the messages of its waits.
      test.each([both, 'text/event-stream'])('the message of a call counts (Accept: %s)', async (accept) => {
        const { send, end } = await waiting(8, accept)
        const list = () => send('kv_list', { namespace: 'a' }, megabyte)
        expect(await list()).toBe(503)
        end()
        await becomes(list, 200)
      })

      test.each([
        ['objects', Array(9_900).fill({})],
        ['members', Object.fromEntries(Array.from({ length: 9_900 }, (_, i) => [i, 1]))],
      ])('what is made of its %s counts, many times their text', async (_, value) => {
        const { send, end } = await waiting(5, both)
        const put = (stored: unknown) => send('kv_put', { namespace: 'a', key: 'k', value: stored })
        expect([await put('x'.repeat(250_000)), await put(Array(40_000).fill(1)), await put(value)]).toEqual([
          200, 200, 503,
        ])
        end()
        await becomes(() => put(value), 200)
      })
    })
  },
  { CORS_ORIGINS: friendly_origin, MEMORY_BUDGET: '32MiB' },
)

test('a client that has gone while its request was taken in does not wait at all', async () => {
  const message = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'inbox_wait', arguments: { id: 'inb_1' } },
  }
  const gone: boolean[] = []
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://any/mcp', { method: 'POST', headers, signal: AbortSignal.abort() })
  await answerPost(request, message, {
    ...{
      base_url: 'http://any',
      caller: 'a',
      read_only: false,
      headers: () => new Headers(),
      timeIn: String,
    },
    async api({ signal }) {
      gone.push(signal.aborted)
      return Response.json({ success: true, data: { items: [], nextAfter: null } })
    },
  })
  expect(gone).toEqual([true])
})
