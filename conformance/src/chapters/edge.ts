// The second API document alone: the webhook inbox and the rate limiter.

import { equal, holds, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import { agentIn, isRefused } from '../documents.ts'
import { type Actor, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const check_path = '/api/rate-limit/check'

export const edge = chapter(
  'edge',
  {
    'no-key': [
      'What is under /api/webhook and /api/rate-limit needs a key in x-api-key',
      'edge 5',
      async (t) => {
        const calls = [
          ['POST', '/api/webhook'],
          ['GET', '/api/webhook'],
          ['GET', '/api/webhook/x'],
          ['DELETE', '/api/webhook/x'],
          ['POST', check_path],
          ['GET', `${check_path}?key=x&limit=1&window=60`],
          ['POST', '/api/rate-limit/reset'],
          ['GET', '/api/rate-limit/x'],
        ]
        for (const [method, path] of calls) {
          for (const headers of [{}, { 'x-api-key': 'nobody' }]) {
            const body = method === 'POST' ? { key: 'x', limit: 1, windowSeconds: 60 } : undefined
            isRefused(await t.anyone.call(method!, path!, body, headers))
          }
        }
      },
    ],
    create: [
      'POST /api/webhook answers 201 {success, data} with id, token, url {site_url}/hook/<token>, label, and expiresAt in 24 hours',
      'edge 1.1, edge 2, edge 4, edge 8',
      async (t) => {
        const caller = await callerOf(t)
        const made = succeeded(await caller.post('/api/webhook', { label: 'Orders' }), 201)
        for (const name of ['id', 'token', 'url', 'label', 'expiresAt'])
          holds(typeof made[name] === 'string', `${name} is ${made[name]}`)
        equal(made.label, 'Orders', 'label')
        holds(made.url.endsWith(`/hook/${made.token}`), `url is ${made.url}`)
        const short = succeeded(await caller.post('/api/webhook', { ttl: 43_200 }), 201)
        const hours = (Date.parse(made.expiresAt) - Date.parse(short.expiresAt)) / 3_600_000
        holds(Math.abs(hours - 12) < 0.1, `without ttl it expires ${hours} h after one with a ttl of 12 h`)
      },
    ],
    receive: [
      '/hook/{token} takes GET, POST, PUT, PATCH and DELETE of anybody, answers {received: true}, and keeps the message',
      'edge 1, edge 2, edge 4, edge 6',
      async (t) => {
        const caller = await callerOf(t)
        const { id, token } = succeeded(await caller.post('/api/webhook', {}), 201)
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
          const body = method === 'GET' ? undefined : { by: method }
          const answer = await t.anyone.call(method, `/hook/${token}?by=${method}`, body, {
            'x-some': 'kept',
          })
          holds(
            answer.status < 300 && answer.json?.received === true,
            `answer is ${answer.status} ${answer.text}`,
          )
        }
        const { messages } = succeeded(await caller.get(`/api/webhook/${id}`), 200)
        equal(messages.length, 5, 'messages')
        for (const one of messages) {
          equal(one.query, { by: one.method }, 'query')
          if (one.method !== 'GET') equal(one.body, { by: one.method }, 'body')
          equal(one.headers['x-some'], 'kept', 'a header')
          for (const name of ['id', 'sourceIp', 'contentType', 'createdAt'])
            equal(typeof one[name], 'string', `type of ${name}`)
        }
      },
    ],
    latest: [
      'The detail of an inbox has the latest 50 messages',
      'edge 4, edge 8',
      async (t) => {
        const caller = await callerOf(t)
        const { id, token } = succeeded(await caller.post('/api/webhook', {}), 201)
        for (let n = 0; n < 52; n++)
          holds((await t.anyone.post(`/hook/${token}`, { n })).status < 300, 'not taken')
        const { inbox, messages } = succeeded(await caller.get(`/api/webhook/${id}`), 200)
        equal(typeof inbox, 'object', 'type of inbox')
        const numbers = messages.map(({ body }: { body: { n: number } }) => body.n)
        equal(
          numbers.sort((a: number, b: number) => a - b),
          Array.from({ length: 50 }, (_, i) => i + 2),
          'messages',
        )
      },
    ],
    list: [
      'GET /api/webhook answers items (id, token, url, label, messageCount, expiresAt) and total, with limit and offset',
      'edge 2, edge 4, edge 8',
      async (t) => {
        const caller = await callerOf(t, await t.newTenant())
        for (let i = 0; i < 3; i++) succeeded(await caller.post('/api/webhook', { label: `n-${i}` }), 201)
        const all = succeeded(await caller.get('/api/webhook'), 200)
        equal([all.items.length, all.total], [3, 3], 'items and total')
        for (const one of all.items) {
          for (const name of ['id', 'token', 'url', 'label', 'expiresAt'])
            equal(typeof one[name], 'string', `type of ${name}`)
          equal(one.messageCount, 0, 'messageCount')
        }
        const rest = succeeded(await caller.get('/api/webhook?limit=1&offset=2'), 200)
        equal(
          [rest.items.length, rest.items[0].id, rest.total],
          [1, all.items[2].id, 3],
          'the third of three',
        )
      },
    ],
    delete: [
      'DELETE /api/webhook/{inbox_id} answers deleted: true, and the inbox is gone',
      'edge 4',
      async (t) => {
        const caller = await callerOf(t)
        const { id, token } = succeeded(await caller.post('/api/webhook', {}), 201)
        equal(succeeded(await caller.delete(`/api/webhook/${id}`), 200).deleted, true, 'deleted')
        isRefused(await caller.get(`/api/webhook/${id}`))
        isRefused(await t.anyone.post(`/hook/${token}`, {}))
      },
    ],
    forwards: [
      'With forwardUrl a message is forwarded, and the sender does not wait for its answer',
      'edge 1, edge 6',
      async (t) => {
        const hook = await t.hook()
        let release = () => {}
        hook.answer = () => new Promise((resolve) => (release = () => resolve({ status: 200 })))
        const { token } = succeeded(
          await (await callerOf(t)).post('/api/webhook', { forwardUrl: hook.url }),
          201,
        )
        const body = { id: unique() }
        holds((await t.anyone.post(`/hook/${token}`, body)).status < 300, 'the message is not taken')
        await t.until(() => hook.received.length > 0, 'the forward')
        release()
        equal(JSON.parse(hook.received[0]!.body), body, 'body of the forward')
      },
    ],
    'free-inboxes': [
      'A tenant on the plan free has three inboxes at most',
      'edge 8',
      async (t) => {
        const caller = await callerOf(t, await t.newTenant('free'))
        for (let i = 0; i < 3; i++) succeeded(await caller.post('/api/webhook', {}), 201)
        isRefused(await caller.post('/api/webhook', {}))
      },
    ],
    'rate-check': [
      'A check counts up to limit with 200; above it is 429 with allowed false, remaining 0, resetAt and retryAfter',
      'edge 1, edge 2, edge 3, edge 4, edge 7',
      async (t) => {
        const { caller, key } = await counter(t)
        for (const [form, again] of Object.entries(checks(caller, key))) {
          for (const count of [1, 2]) {
            const data = succeeded(await again(), 200)
            equal([data.allowed, data.count, data.remaining], [true, count, 2 - count], `a check by ${form}`)
            holds(Date.parse(data.resetAt) > 0, `resetAt is ${data.resetAt}`)
          }
          const blocked = await again()
          equal(blocked.status, 429, 'status')
          const { data } = blocked.json
          equal([data.allowed, data.count, data.remaining], [false, 3, 0], `a blocked check by ${form}`)
          holds(
            typeof data.retryAfter === 'number' && Date.parse(data.resetAt) > 0,
            'retryAfter or resetAt is missing',
          )
          succeeded(await caller.post('/api/rate-limit/reset', { key }), 200)
        }
      },
    ],
    'rate-forms': [
      'Both forms of the check use the same counter',
      'edge 4',
      async (t) => {
        const { caller, key } = await counter(t)
        const { post, get } = checks(caller, key)
        equal([succeeded(await post(), 200).count, succeeded(await get(), 200).count], [1, 2], 'counts')
      },
    ],
    'rate-exact': [
      'A counter is incremented atomically: of checks at the same time as many are allowed as limit says',
      'edge 1',
      async (t) => {
        const { caller, key } = await counter(t)
        const body = { key, limit: 5, windowSeconds: 600 }
        const answers = await Promise.all(Array.from({ length: 15 }, () => caller.post(check_path, body)))
        equal(answers.filter(({ status }) => status === 200).length, 5, 'allowed checks')
      },
    ],
    'rate-status': [
      'GET /api/rate-limit/{key} answers key, count, remaining, resetAt and windowExpired; reset removes the counter',
      'edge 2, edge 3, edge 4',
      async (t) => {
        const { caller, key: plain } = await counter(t)
        const key = `${plain}/ü ?`
        succeeded(await caller.post(check_path, { key, limit: 3, windowSeconds: 600 }), 200)
        const shown = succeeded(await caller.get(`/api/rate-limit/${encodeURIComponent(key)}`), 200)
        equal(
          [shown.key, shown.count, shown.remaining, shown.windowExpired],
          [key, 1, 2, false],
          'the status',
        )
        const { key: named, reset } = succeeded(await caller.post('/api/rate-limit/reset', { key }), 200)
        equal([named, reset], [key, true], 'key and reset')
        equal(
          succeeded(await caller.post(check_path, { key, limit: 3, windowSeconds: 600 }), 200).count,
          1,
          'count',
        )
      },
    ],
    'rate-rules': [
      'limit and windowSeconds are at least 1',
      'edge 2, edge 8',
      async (t) => {
        const { caller, key } = await counter(t)
        for (const rest of [{ limit: 0 }, { windowSeconds: 0 }, { limit: 'x' }, { limit: undefined }])
          isRefused(await caller.post(check_path, { key, limit: 1, windowSeconds: 60, ...rest }))
      },
    ],
  },
  'documents',
)

/** An agent who sends its key alone, as the second document says. */
async function callerOf(t: Trial, tenant?: Awaited<ReturnType<Trial['tenant']>>): Promise<Actor> {
  const agent = await agentIn(t, tenant ?? (await t.tenant()))
  return agent.asApiKey()
}

async function counter(t: Trial) {
  return { caller: await callerOf(t), key: `rl-${unique()}` }
}

function checks(caller: Actor, key: string) {
  return {
    post: () => caller.post(check_path, { key, limit: 2, windowSeconds: 600 }),
    get: () => caller.get(`${check_path}?key=${key}&limit=2&window=600`),
  }
}
