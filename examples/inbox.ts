// An agent without a URL of its own: it makes an inbox, waits for what a stranger sends there, verifies it, and then has
// its own schedule come to the same inbox.
//
//   bun examples/inbox.ts [address]      address: where the service is, default http://127.0.0.1:8420
//
// The service has to run with TICK=internal, and its PUBLIC_URL has to lead to it. Needs Bun and nothing else. Keys,
// tokens and secrets are not printed.

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'

const base = (process.argv[2] ?? 'http://127.0.0.1:8420').replace(/\/$/, '')
const wait_seconds = 20
/** Between the stranger and the agent, who verifies with it. */
const shared_secret = randomUUID()

interface Message {
  method: string
  path: string
  headers: Record<string, string>
  query: Record<string, string | string[]>
  body: unknown
  bodyBase64: string
}

// biome-ignore lint/suspicious/noExplicitAny: an example reaches into answers as their pages show them
type Answer = any

try {
  await main()
} catch (error) {
  console.error(`inbox: ${(error as Error).message}`)
  process.exitCode = 1
}

async function main(): Promise<void> {
  const { admin_key, tenant_id } = await call('POST', '/v1/tenants', null, {
    name: `inbox-${randomUUID().slice(0, 13)}`,
    owner_email: 'owner@example.com',
  })
  const { api_key } = await call('POST', '/v1/agents', admin_key, { name: 'worker-1' })
  const { data: inbox } = await call('POST', '/api/webhook', api_key, { label: 'deliveries', ttl: 3_600 })
  say('a tenant with one agent, and an inbox')

  const read = messagesOf(api_key, inbox.id)
  const [first] = await Promise.all([read(), deliver(inbox.url)])
  assert(first.method === 'POST' && first.path === '/github', 'it is another message')
  assert(first.query.from === 'shop', 'the query is another one')
  say('the agent waited, and has what the stranger sent')
  assert(isGenuine(first), 'the signature is not genuine')
  assert(!isGenuine({ ...first, bodyBase64: 'e30=' }), 'a changed copy was taken for genuine')
  say("its bytes are exact: the sender's signature is genuine, and that of a changed copy is not")

  await call('POST', '/v1/schedules', api_key, {
    callback_url: inbox.url,
    callback_payload: { remember: 'the report' },
    fire_at: new Date(Date.now() + 1_000).toISOString(),
  })
  const second = await read()
  assert(second.headers['x-waystation-event'] === 'schedule.fired', 'it is another event')
  assert(JSON.stringify(second.body) === '{"remember":"the report"}', 'it is not the payload that was given')
  say('a schedule of its own came to the same inbox')

  await call('DELETE', `/api/webhook/${inbox.id}`, api_key)
  await call('DELETE', `/v1/tenants/${tenant_id}`, admin_key, { confirm: 'DELETE ALL DATA' })
  say('done; the inbox is gone, and the tenant is scheduled for deletion')
}

/** The next message each time: `after` is what was seen, and `wait` holds the request until there is more. */
function messagesOf(api_key: string, id: string): () => Promise<Message> {
  let after = ''
  return async () => {
    const query = `limit=1&wait=${wait_seconds}${after}`
    const { data } = await call('GET', `/api/webhook/${id}/messages?${query}`, api_key)
    assert(data.items.length === 1, `nothing came within ${wait_seconds} s`)
    after = `&after=${data.nextAfter}`
    return data.items[0]
  }
}

/** The stranger: no key, only the URL. It signs as GitHub does. */
async function deliver(url: string): Promise<void> {
  const body = '{ "action": "opened",\n  "number": 7.0 }'
  const response = await fetch(`${url}/github?from=shop`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature(body) },
    body,
  })
  assert(response.ok, `the stranger got ${response.status}`)
}

function signature(bytes: string | Buffer): string {
  return `sha256=${createHmac('sha256', shared_secret).update(bytes).digest('hex')}`
}

/** Over the bytes, not over what a parser made of them. */
function isGenuine({ headers, bodyBase64 }: Message): boolean {
  const expected = Buffer.from(signature(Buffer.from(bodyBase64, 'base64')))
  const given = Buffer.from(headers['x-hub-signature-256'] ?? '')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

async function call(method: string, path: string, key: string | null, body?: object): Promise<Answer> {
  const response = await fetch(base + path, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  const answer: Answer = text === '' ? null : JSON.parse(text)
  if (!response.ok)
    throw new Error(`${method} ${path} answered ${response.status}: ${answer?.error?.message}`)
  return answer
}

function assert(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise)
}

function say(line: string): void {
  console.log(`- ${line}`)
}
