// A schedule and an approval, from the request to the signed callback, with a receiver that verifies what it gets.
//
//   bun examples/callbacks.ts [address]      address: where the service is, default http://127.0.0.1:8420
//
// The receiver listens on a free port of 127.0.0.1, so the service has to run on this machine with its default
// CALLBACK_ALLOW, and with TICK=internal. Needs Bun and nothing else, which is why the signature is verified by hand;
// in a service of your own take a library for Standard Webhooks. Keys and secrets are not printed.

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'

const base = (process.argv[2] ?? 'http://127.0.0.1:8420').replace(/\/$/, '')
const arrival_ms_max = 20_000
const timestamp_tolerance_seconds = 300

interface Callback {
  path: string
  headers: Headers
  /** As it came: a signature is over bytes, not over what a parser makes of them. */
  body: Buffer
}

// biome-ignore lint/suspicious/noExplicitAny: an example reaches into answers as their pages show them
type Answer = any

const arrived: Callback[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const body = Buffer.from(await request.arrayBuffer())
    arrived.push({ path: new URL(request.url).pathname, headers: request.headers, body })
    return new Response(null, { status: 204 }) // answer first, work later
  },
})

try {
  await main()
} catch (error) {
  console.error(`callbacks: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  await receiver.stop(true)
}

async function main(): Promise<void> {
  const { admin_key, signing_secret, tenant_id } = await call('POST', '/v1/tenants', null, {
    name: `callbacks-${randomUUID().slice(0, 13)}`,
    owner_email: 'owner@example.com',
  })
  const { api_key } = await call('POST', '/v1/agents', admin_key, {
    name: 'worker-1',
    callback_base_url: receiver.url.href,
  })
  say('a tenant with one agent, whose callbacks come to this process')

  await schedule(api_key, signing_secret)
  await approval(api_key, admin_key, signing_secret)

  await call('DELETE', `/v1/tenants/${tenant_id}`, admin_key, { confirm: 'DELETE ALL DATA' })
  say('done; the tenant is scheduled for deletion')
}

async function schedule(api_key: string, secret: string): Promise<void> {
  const { id } = await call('POST', '/v1/schedules', api_key, {
    callback_url: '/reminder',
    callback_payload: { order: 7 },
    fire_at: new Date(Date.now() + 1_000).toISOString(),
  })
  say('a schedule, due in one second')

  const callback = await arrival('/reminder')
  assert(isGenuine(secret, callback), 'its signature is not genuine')
  assert(callback.headers.get('x-waystation-event') === 'schedule.fired', 'it is another event')
  assert(callback.body.toString() === '{"order":7}', 'it is not the payload that was given')
  say('it fired: the payload came byte for byte, and its signature is genuine')

  const tampered = { ...callback, body: Buffer.from('{"order":8}') }
  assert(!isGenuine(secret, tampered), 'a tampered copy was taken for genuine')
  const much_later = Date.now() + (timestamp_tolerance_seconds + 60) * 1_000
  assert(!isGenuine(secret, callback, much_later), 'an old copy was taken for genuine')
  say('a tampered copy and one that comes much later are refused')

  await settled(async () => (await call('GET', `/v1/schedules/${id}`, api_key)).status === 'fired')
  const { items } = await call('GET', `/v1/schedules/${id}/attempts`, api_key)
  assert(items[0].webhook_id === callback.headers.get('webhook-id'), 'the attempt is noted under another id')
  say(`the service knows that it arrived: attempt ${items[0].attempt}, status ${items[0].status_code}`)
}

async function approval(api_key: string, admin_key: string, secret: string): Promise<void> {
  const { id } = await call('POST', '/v1/checkpoints', api_key, {
    title: 'Refund order 7?',
    prompt: 'The customer asks for 30 EUR back.',
    callback_url: '/decision',
    callback_payload: { order: 7 },
    timeout_seconds: 3_600,
  })
  say('the agent asks for an approval')

  // The human gets a key that can decide this one question and nothing else.
  const { approval_key } = await call('POST', '/v1/approval-keys', admin_key, { checkpoint_id: id })
  const answer = call('GET', `/v1/checkpoints/${id}?wait=55`, api_key) // an agent without a URL waits like this
  await call('POST', `/v1/checkpoints/${id}/approve`, approval_key, { reason: 'within policy' })
  say('the human approves, with an approval key bound to it')
  assert((await answer).status === 'approved', 'the agent that waited was told something else')
  say('the agent that waited for the answer has it')

  const callback = await arrival('/decision')
  assert(isGenuine(secret, callback), 'its signature is not genuine')
  const { type, data }: Answer = JSON.parse(callback.body.toString())
  assert(type === 'checkpoint.approved' && data.checkpoint_id === id, 'it is another decision')
  assert(
    data.resolved_by.startsWith('approval_key:') && data.callback_payload.order === 7,
    'it says other things',
  )
  say('the signed decision came as well, and its signature is genuine')

  const refused = data.reason.replace('within', 'against')
  const tampered = { ...callback, body: Buffer.from(callback.body.toString().replace(data.reason, refused)) }
  assert(!isGenuine(secret, tampered), 'a tampered copy was taken for genuine')
  say('a tampered copy of it is refused')
}

/** Standard Webhooks 1.0.0: any of the signatures may fit, for there are two while a secret rotates. */
function isGenuine(secret: string, { headers, body }: Callback, now = Date.now()): boolean {
  const timestamp = headers.get('webhook-timestamp') ?? ''
  const age_seconds = Math.abs(now / 1_000 - Number(timestamp))
  if (!(age_seconds <= timestamp_tolerance_seconds)) return false
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = Buffer.concat([Buffer.from(`${headers.get('webhook-id')}.${timestamp}.`), body])
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  return (headers.get('webhook-signature') ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** The first callback to this path, once it is here. */
async function arrival(path: string): Promise<Callback> {
  await settled(async () => arrived.some((callback) => callback.path === path))
  return arrived.find((callback) => callback.path === path)!
}

async function settled(isSo: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + arrival_ms_max
  while (!(await isSo())) {
    assert(
      Date.now() < until,
      `nothing came within ${arrival_ms_max / 1_000} s; does the service run with TICK=internal?`,
    )
    await Bun.sleep(50)
  }
}

/** One call of the API. An error ends the walk with its code. */
async function call(method: string, path: string, key: string | null, body?: object): Promise<Answer> {
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch(() => {
    throw new Error(`no service answers at ${base}`)
  })
  const answer: Answer = await response.json().catch(() => null)
  if (response.ok) return answer
  const why = answer?.error?.details?.issues?.[0]?.message ?? answer?.error?.message ?? 'without a reason'
  throw new Error(`${method} ${path} answered ${response.status}: ${why}`)
}

function assert(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

function say(line: string): void {
  console.log(`- ${line}`)
}
