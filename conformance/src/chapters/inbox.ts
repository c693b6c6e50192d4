// The webhook inbox: public addresses, what they keep, and what is forwarded.

import { equal, holds, invalid, refused, sameText, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, hour, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { hasShape, inboxDetail, inboxPage, message, newInbox } from '../shapes.ts'
import type { Actor, Tenant } from '../tenant.ts'
import { unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const ttl_seconds_default = 86_400
const body_bytes_max = 1_048_576

export const inbox = chapter('inbox', {
  create: [
    'POST /api/webhook answers 201 with id, token, url of the form {site_url}/hook/<token>, label and expiresAt in 24 hours',
    'edge 2, edge 4, edge 8',
    async (t) => {
      const { agent } = await caller(t)
      const made = succeeded(await agent.post('/api/webhook', {}), 201)
      hasShape(made, newInbox, 'POST /api/webhook')
      equal(made.label, '', 'label without a value')
      holds(made.url.endsWith(`/hook/${made.token}`), `url is ${made.url}`)
      const seconds = (Date.parse(made.expiresAt) - (await t.time.now())) / 1_000
      holds(Math.abs(seconds - ttl_seconds_default) < 30, `expiresAt is in ${seconds} s`)
      equal(succeeded(await agent.post('/api/webhook', { label: 'Orders' }), 201).label, 'Orders', 'label')
    },
  ],
  ttl: [
    'ttl is a number of seconds, 1 up to the plan’s most; more is 400',
    'edge 2, decisions 6',
    async (t) => {
      const { agent } = await caller(t)
      for (const ttl of [0, -1, 100 * 365 * day, '60', true])
        invalid(await agent.post('/api/webhook', { ttl }), '/ttl')
      const { expiresAt } = succeeded(await agent.post('/api/webhook', { ttl: 600 }), 201)
      const seconds = (Date.parse(expiresAt) - (await t.time.now())) / 1_000
      holds(Math.abs(seconds - 600) < 30, `expiresAt is in ${seconds} s`)
    },
  ],
  'forward-url': [
    'forwardUrl is a URL that may be called',
    'edge 2, decisions 5 Addresses',
    async (t) => {
      const { agent } = await caller(t)
      const long = `${t.world.idle_url}/${'x'.repeat(2_048)}`
      for (const forwardUrl of ['not a url', 'ftp://example.com/', 'http://10.0.0.1/', long, 7])
        invalid(await agent.post('/api/webhook', { forwardUrl }), '/forwardUrl')
    },
  ],
  receive: [
    '/hook/{token} takes GET, POST, PUT, PATCH and DELETE of any sender and answers 200 {received: true}; the message can be read at once',
    'edge 1, edge 4, decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
      for (const [i, method] of methods.entries()) {
        const answer = await t.anyone.call(
          method,
          `/hook/${token}?n=${i}`,
          method === 'GET' ? undefined : { n: i },
        )
        equal(succeeded(answer, 200).received, true, `received, of a ${method}`)
        const [newest] = (await detailOf(agent, id)).messages
        equal([newest.method, newest.query], [method, { n: String(i) }], 'method and query of the message')
      }
      equal((await detailOf(agent, id)).inbox.messageCount, methods.length, 'messageCount')
    },
  ],
  message: [
    'A message has method, path, headers, query, body, bodyBase64, sourceIp, contentType and createdAt',
    'edge 2, decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      const headers = {
        'content-type': 'application/json',
        'X-Some-Header': 'kept',
        'proxy-authorization': 'dropped',
      }
      const text = '{"b":1e400, "a":123456789012345678901234567890,"b":-0.10}'
      succeeded(await t.anyone.post(`/hook/${token}/any/sub%20path?a=1&a=2&b=`, text, headers), 200)
      const answer = await agent.get(`/api/webhook/${id}`)
      const [got] = succeeded(answer, 200).messages
      hasShape(got, message, 'a message')
      equal([got.method, got.query], ['POST', { a: ['1', '2'], b: '' }], 'method and query')
      holds(/any\/sub(%20| )path$/.test(got.path), `path is ${got.path}`)
      equal(
        [got.headers['x-some-header'], got.headers['proxy-authorization']],
        ['kept', undefined],
        'headers',
      )
      holds(
        Object.keys(got.headers).every((name) => name === name.toLowerCase()),
        'a header name has capitals',
      )
      equal(got.contentType, 'application/json', 'contentType')
      equal(Buffer.from(got.bodyBase64, 'base64').toString(), text, 'bytes of bodyBase64')
      sameText(answer.text, text, 'data', 'messages', 0, 'body')
      holds(got.sourceIp !== '', 'sourceIp is empty')
    },
  ],
  'repeated-header': [
    'Headers of the same name are joined by a comma and a space',
    'decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      const headers = { 'x-repeated': ['a', 'b', 'c'] }
      succeeded(await t.anyone.call('POST', `/hook/${token}`, 'x', headers), 200)
      equal((await detailOf(agent, id)).messages[0].headers['x-repeated'], 'a, b, c', 'the header')
    },
  ],
  'body-forms': [
    'body is the JSON value when the content type is JSON or the bytes are a JSON object or array; else text; else null with bodyBase64',
    'decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      const odd = new Uint8Array([0xff, 0x00, 0xfe])
      const rows: [string | Uint8Array | undefined, string | undefined, unknown][] = [
        ['7', 'application/json', 7],
        ['[1]', 'application/cloudevents+json', [1]],
        ['{"a":1}', 'text/plain', { a: 1 }],
        ['[1]', undefined, [1]],
        ['7', 'text/plain', '7'],
        ['{oops', 'application/json', '{oops'],
        ['a=1&b=2', 'application/x-www-form-urlencoded', 'a=1&b=2'],
        [odd, 'application/octet-stream', null],
      ]
      for (const [body, type, expected] of rows) {
        const headers: Record<string, string> = type ? { 'content-type': type } : {}
        succeeded(await t.anyone.post(`/hook/${token}`, body, headers), 200)
        const [got] = (await detailOf(agent, id)).messages
        equal([got.body, got.contentType], [expected, type ?? ''], `body and contentType of ${type}`)
      }
    },
  ],
  'any-bytes': [
    '/hook takes anything, encoded bodies included, as they are',
    'decisions 1',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      const bytes = new Uint8Array([0x1f, 0x8b, 8, 0, 1, 2, 3])
      const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
      succeeded(await t.anyone.post(`/hook/${token}`, bytes, headers), 200)
      const [got] = (await detailOf(agent, id)).messages
      equal([...Buffer.from(got.bodyBase64, 'base64')], [...bytes], 'bytes of the message')
    },
  ],
  size: [
    'A message of 1 MiB is taken, one byte more is 413 PAYLOAD_TOO_LARGE',
    'decisions 6',
    async (t) => {
      const { token } = await newInboxOf(t)
      succeeded(await t.anyone.post(`/hook/${token}`, 'x'.repeat(body_bytes_max)), 200)
      refused(await t.anyone.post(`/hook/${token}`, 'x'.repeat(body_bytes_max + 1)), 'PAYLOAD_TOO_LARGE')
    },
  ],
  'stores-nothing': [
    'HEAD and OPTIONS on /hook store nothing',
    'decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      for (const method of ['HEAD', 'OPTIONS']) await t.anyone.call(method, `/hook/${token}`)
      equal((await detailOf(agent, id)).messages, [], 'messages')
    },
  ],
  unknown: [
    '/hook of an unknown token is 404 INBOX_NOT_FOUND, in the envelope with success: false',
    'decisions 1, decisions 6',
    async (t) => {
      for (const path of [`/hook/${unique()}`, `/hook/${unique()}/below`])
        refused(await t.anyone.post(path, {}), 'INBOX_NOT_FOUND')
    },
  ],
  detail: [
    'GET /api/webhook/{id} answers the inbox with forwardUrl, messageCount and createdAt, and the latest 50 messages, newest first',
    'edge 4, edge 8, decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      for (let i = 0; i < 52; i++) succeeded(await t.anyone.post(`/hook/${token}`, { i }), 200)
      const shown = await detailOf(agent, id)
      hasShape(shown, inboxDetail, 'GET /api/webhook/{id}')
      equal([shown.inbox.id, shown.inbox.forwardUrl, shown.inbox.messageCount], [id, null, 52], 'the inbox')
      const numbers = shown.messages.map(({ body }: { body: { i: number } }) => body.i)
      equal(
        numbers,
        Array.from({ length: 50 }, (_, i) => 51 - i),
        'messages',
      )
    },
  ],
  messages: [
    'GET /api/webhook/{id}/messages pages all messages, oldest first, as items and nextAfter',
    'decisions 6',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      for (let i = 0; i < 5; i++) succeeded(await t.anyone.post(`/hook/${token}`, { i }), 200)
      const seen: number[] = []
      let after = ''
      for (let pages = 0; pages < 5; pages++) {
        const page = succeeded(await agent.get(`/api/webhook/${id}/messages?limit=2${after}`), 200)
        seen.push(...page.items.map(({ body }: { body: { i: number } }) => body.i))
        if (page.items.length === 0 || page.nextAfter === null) break
        equal(page.nextAfter, page.items.at(-1).id, 'nextAfter')
        after = `&after=${page.nextAfter}`
      }
      equal(seen, [0, 1, 2, 3, 4], 'messages of all pages')
    },
  ],
  list: [
    'GET /api/webhook answers items with messageCount, and total; limit is 50 by default, above 100 it counts as 100; offset is 0',
    'edge 4, edge 8, decisions 6',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      for (let i = 0; i < 3; i++) await objects.inbox(tenant)
      const all = succeeded(await agent.get('/api/webhook'), 200)
      hasShape(all, inboxPage, 'GET /api/webhook')
      equal([all.items.length, all.total], [3, 3], 'items and total')
      const ids = (page: { items: { id: string }[] }) => page.items.map(({ id }) => id)
      const rest = succeeded(await agent.get('/api/webhook?limit=2&offset=1'), 200)
      equal([ids(rest), rest.total], [ids(all).slice(1), 3], 'items and total with limit=2 and offset=1')
      succeeded(await agent.get('/api/webhook?limit=1000'), 200)
      for (const query of ['limit=0', 'limit=x', 'offset=-1', 'offset=x'])
        invalid(await agent.get(`/api/webhook?${query}`), `query.${query.split('=')[0]}`)
    },
  ],
  delete: [
    'DELETE /api/webhook/{id} answers deleted: true; the inbox and its hook are gone',
    'edge 4',
    async (t) => {
      const { agent, id, token } = await newInboxOf(t)
      equal(succeeded(await agent.delete(`/api/webhook/${id}`), 200).deleted, true, 'deleted')
      refused(await agent.get(`/api/webhook/${id}`), 'INBOX_NOT_FOUND')
      refused(await agent.delete(`/api/webhook/${id}`), 'INBOX_NOT_FOUND')
      refused(await t.anyone.post(`/hook/${token}`, {}), 'INBOX_NOT_FOUND')
    },
  ],
  forwards: [
    'A message is forwarded at once, without waiting for an answer: same method, raw body, content-type and headers, x-waystation-inbox',
    'edge 1, edge 6, decisions 6',
    async (t) => {
      const hook = await t.hook()
      const { agent, id, token } = await newInboxOf(t, { forwardUrl: hook.url })
      const text = '{"a":1e400, "b":[ 1 ]}'
      const headers = { 'content-type': 'application/json', 'x-some-header': 'kept' }
      succeeded(await t.anyone.put(`/hook/${token}`, text, headers), 200)
      await t.happens(() => hook.received.length === 1, 'the forward, without a tick')
      const [got] = hook.received
      equal([got!.method, got!.body], ['PUT', text], 'method and body of the forward')
      equal(
        [got!.headers['content-type'], got!.headers['x-some-header']],
        [headers['content-type'], 'kept'],
        'headers',
      )
      equal(got!.headers['x-waystation-inbox'], id, 'x-waystation-inbox')
      equal((await detailOf(agent, id)).inbox.forwardUrl, hook.url, 'forwardUrl')
    },
  ],
  'forward-once': [
    'A forward has one try; a failure loses nothing of the message',
    'decisions 6',
    async (t) => {
      const hook = await t.hook()
      hook.answer = () => ({ status: 500 })
      const { agent, id, token } = await newInboxOf(t, { forwardUrl: hook.url })
      succeeded(await t.anyone.post(`/hook/${token}`, { n: 1 }), 200)
      await t.until(() => hook.received.length === 1, 'the forward')
      await t.settled()
      equal(hook.received.length, 1, 'tries')
      equal((await detailOf(agent, id)).messages.length, 1, 'messages')
    },
  ],
  'forward-circle': [
    'Forwards that come back end: a message that was forwarded more than three times is not forwarded again',
    'decisions 6',
    async (t) => {
      const hook = await t.hook()
      const { token } = await newInboxOf(t, { forwardUrl: hook.url })
      let headers: Record<string, string> = {}
      for (let forwards = 1; forwards <= 6; forwards++) {
        // The name of the counter is the service's own: what comes out goes in again as it is.
        const { host: _host, connection: _connection, 'content-length': _length, ...kept } = headers
        const answer = await t.anyone.post(`/hook/${token}`, `{"n":${forwards}}`, kept)
        holds(answer.status < 500, `the message is answered ${answer.status}`)
        const seen = () => hook.received.length >= forwards
        if (forwards === 1) await t.happens(seen, 'the first forward')
        else await t.settled()
        if (!seen()) return
        headers = hook.received.at(-1)!.headers
      }
      holds(false, 'a message is forwarded for the sixth time')
    },
  ],
  'label-length': [
    'label has 256 characters at most',
    'decisions 1',
    async (t) => {
      const { agent } = await caller(t)
      succeeded(await agent.post('/api/webhook', { label: 'x'.repeat(256) }), 201)
      invalid(await agent.post('/api/webhook', { label: 'x'.repeat(257) }), '/label')
    },
  ],
  expires: timed(
    8 * day + 2 * hour,
    'From expiry /hook answers 410 INBOX_EXPIRED for 7 days, then 404; the list leaves it out; its messages stay readable for 24 h',
    'edge 3, decisions 6',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const { id, token } = succeeded(await agent.post('/api/webhook', { ttl: minute }), 201)
      succeeded(await t.anyone.post(`/hook/${token}`, { n: 1 }), 200)
      await t.time.wait(minute - 5)
      succeeded(await t.anyone.post(`/hook/${token}`, { n: 2 }), 200)
      await t.time.wait(10)
      refused(await t.anyone.post(`/hook/${token}`, { n: 3 }), 'INBOX_EXPIRED')
      const { items, total } = succeeded(await agent.get('/api/webhook'), 200)
      equal([items, total], [[], 0], 'items and total of the list')
      equal((await detailOf(agent, id)).messages.length, 2, 'messages after the expiry')
      await t.time.wait(day - hour)
      equal((await detailOf(agent, id)).messages.length, 2, 'messages nearly 24 h after the expiry')
      await t.time.wait(2 * hour)
      await t.settled()
      refused(await agent.get(`/api/webhook/${id}`), 'INBOX_NOT_FOUND')
      refused(await t.anyone.post(`/hook/${token}`, { n: 4 }), 'INBOX_EXPIRED')
      await t.time.wait(6 * day)
      await t.settled()
      refused(await t.anyone.post(`/hook/${token}`, { n: 5 }), 'INBOX_NOT_FOUND')
    },
  ),
  'kept-messages': [
    'Past the plan’s number of messages the oldest goes',
    'decisions 4, decisions 6',
    async (t) => {
      const tenant = await t.newTenant('free')
      const agent = await tenant.agent()
      const { id, token } = succeeded(await agent.post('/api/webhook', {}), 201)
      const sent = 110
      for (let i = 0; i < sent; i++) succeeded(await t.anyone.post(`/hook/${token}`, { i }), 200)
      const { items } = succeeded(await agent.get(`/api/webhook/${id}/messages?limit=200`), 200)
      if (items.length === sent) t.notRun(`the plan free keeps ${sent} messages or more`)
      equal(items.at(-1).body.i, sent - 1, 'the newest message')
      equal(items[0].body.i, sent - items.length, 'the oldest message that is kept')
    },
  ],
})

async function caller(t: Trial): Promise<{ agent: Actor; tenant: Tenant }> {
  const tenant = await t.tenant()
  return { agent: await tenant.agent(), tenant }
}

async function newInboxOf(t: Trial, body: object = {}) {
  const { agent } = await caller(t)
  const { id, token } = succeeded(await agent.post('/api/webhook', body), 201)
  return { agent, id: id as string, token: token as string }
}

async function detailOf(agent: Actor, id: string) {
  return succeeded(await agent.get(`/api/webhook/${id}`), 200)
}
