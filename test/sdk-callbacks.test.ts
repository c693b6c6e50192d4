// verifyCallback against the official library, against forgeries, and against what the service sends.

import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { CallbackVerificationError, type VerificationFailure, verifyCallback } from '../sdk/src/index.ts'
import { startReceiver } from './support/receiver.ts'
import { clientsOf, failureOf } from './support/sdk.ts'
import { forEachService } from './support/service.ts'

const now = Date.UTC(2026, 0, 1)
const seconds = now / 1_000
const secret = `whsec_${btoa('a secret of twenty-four b')}`
const other_secret = `whsec_${btoa('another one, also longish')}`
const body = '{"n": 1.0, "text": "Grüße 😀"}'

/** As the official library signs it. */
function signed(options: { secrets?: string[]; at?: number; body?: string } = {}) {
  const { secrets = [secret], at = seconds, body: text = body } = options
  const signatures = secrets.map((one) => new Webhook(one).sign('msg_1', new Date(at * 1_000), text))
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(at),
    'webhook-signature': signatures.join(' '),
  }
}

function request(headers: Record<string, string>, text = body) {
  return new Request('http://receiver.test/', { method: 'POST', headers, body: text })
}

describe('A callback', () => {
  test('that the official library signed is verified, with what it says', async () => {
    const headers = { ...signed(), 'x-waystation-event': 'schedule.fired', 'x-waystation-attempt': '2' }
    expect(await verifyCallback(request(headers), secret, { now })).toEqual({
      id: 'msg_1',
      event: 'schedule.fired',
      attempt: 2,
      timestamp_seconds: seconds,
      text: body,
      body: { n: 1, text: 'Grüße 😀' },
    })
  })

  test.each([
    ['as Node gives it', { headers: { ...signed(), other: ['a', 'b'] }, body }],
    ['with headers in capitals', { headers: upper(signed()), body }],
    ['as bytes', { headers: new Headers(signed()), body: new TextEncoder().encode(body) }],
  ])('is verified %s', async (_, given) => {
    expect(await verifyCallback(given, secret, { now })).toMatchObject({
      id: 'msg_1',
      event: null,
      attempt: null,
    })
  })

  test.each([
    ['both secrets, both signatures', [secret, other_secret], [other_secret, secret], 'verified'],
    ['the old secret alone', [secret, other_secret], [secret], 'verified'],
    ['the new secret alone', [secret, other_secret], [other_secret], 'verified'],
    ['one of two secrets', [other_secret], [secret, other_secret], 'verified'],
    ['a secret without its prefix', [secret], [secret.slice(6)], 'verified'],
    ['another secret', [secret], [other_secret], 'no_match'],
    ['no secret', [secret], [] as string[], 'no_match'],
  ])('is verified while a secret rotates: %s', async (_, signing, verifying, expected) => {
    const outcome = await verifyCallback(request(signed({ secrets: signing })), verifying, { now }).then(
      () => 'verified',
      ({ reason }) => reason,
    )
    expect(outcome).toBe(expected)
  })

  const good = signed()
  const signature = good['webhook-signature']
  const forged: [string, Record<string, string>, string, VerificationFailure][] = [
    ['another body', good, body.replace('1.0', '1.1'), 'no_match'],
    ['another id', { ...good, 'webhook-id': 'msg_2' }, body, 'no_match'],
    ['another time', { ...good, 'webhook-timestamp': String(seconds - 1) }, body, 'no_match'],
    ['a signature cut short', { ...good, 'webhook-signature': signature.slice(0, -1) }, body, 'no_match'],
    ['a signature with more', { ...good, 'webhook-signature': `${signature}=` }, body, 'no_match'],
    ['an empty signature', { ...good, 'webhook-signature': 'v1,' }, body, 'no_match'],
    [
      'a signature of another version',
      { ...good, 'webhook-signature': signature.replace('v1', 'v1a') },
      body,
      'malformed',
    ],
    [
      'seventeen signatures',
      { ...good, 'webhook-signature': `${'v1,x '.repeat(16)}${signature}` },
      body,
      'no_match',
    ],
    ['no id', without('webhook-id'), body, 'malformed'],
    ['no time', without('webhook-timestamp'), body, 'malformed'],
    ['no signature', without('webhook-signature'), body, 'malformed'],
    ['a time in words', { ...good, 'webhook-timestamp': 'now' }, body, 'malformed'],
    ['a time with a fraction', { ...good, 'webhook-timestamp': `${seconds}.0` }, body, 'malformed'],
  ]
  test.each(forged)('with %s is refused', async (_, headers, text, reason) => {
    const error = await failureOf(verifyCallback(request(headers, text), secret, { now }))
    expect(error).toBeInstanceOf(CallbackVerificationError)
    expect(error).toMatchObject({ reason })
  })

  test('may have sixteen signatures', async () => {
    const headers = { ...good, 'webhook-signature': `${'v1,x '.repeat(15)}${signature}` }
    expect(await verifyCallback(request(headers), secret, { now })).toMatchObject({ id: 'msg_1' })
  })

  test.each([
    [-301, undefined, 'too_old'],
    [-300, undefined, 'verified'],
    [300, undefined, 'verified'],
    [301, undefined, 'too_new'],
    [-11, 10, 'too_old'],
    [-10, 10, 'verified'],
  ])('of %d s from now, tolerance %p, is %s', async (offset, tolerance_seconds, outcome) => {
    const asking = verifyCallback(request(signed({ at: seconds + offset })), secret, {
      now,
      tolerance_seconds,
    })
    const found = await asking.then(
      () => 'verified',
      ({ reason }) => reason,
    )
    expect(found).toBe(outcome)
  })

  test.each([
    [body.length + 20, 'verified'],
    [10, 'too_large'],
  ])('of more than body_bytes_max is refused: %d', async (body_bytes_max, outcome) => {
    for (const given of [request(good), { headers: good, body }]) {
      const found = await verifyCallback(given, secret, { now, body_bytes_max }).then(
        () => 'verified',
        ({ reason }) => reason,
      )
      expect(found).toBe(outcome)
    }
  })

  test.each([
    [{ tolerance_seconds: Number.NaN }, 'too_old'],
    [{ now: Number.NaN }, 'too_old'],
    [{ now, body_bytes_max: Number.NaN }, 'too_large'],
  ])('is not to be trusted when nobody knows how much is too much: %p', async (options, reason) => {
    for (const given of [request(good), { headers: good, body }]) {
      expect(await failureOf(verifyCallback(given, secret, { now, ...options }))).toMatchObject({ reason })
    }
  })

  test('cannot be judged once its body was read', async () => {
    const given = request(good)
    await given.text()
    const error = await failureOf(verifyCallback(given, secret, { now }))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain('was read before')
  })

  test.each([
    ['a parsed body', JSON.parse(body)],
    ['no body', undefined],
    ['null', null],
  ])('cannot be judged by %s', async (_, parsed_body) => {
    const error = await failureOf(verifyCallback({ headers: good, body: parsed_body }, secret, { now }))
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain('exact body')
  })

  test('is verified from a Request and Headers of another make', async () => {
    const real = request(good)
    const headers = { get: (name: string) => real.headers.get(name) } as Headers
    const foreign = { headers, body: real.body, bodyUsed: false, method: 'POST' } as unknown as Request
    expect(foreign).not.toBeInstanceOf(Request)
    expect(await verifyCallback(foreign, secret, { now })).toMatchObject({ id: 'msg_1', text: body })
  })

  test('with an empty body is judged like any other', async () => {
    const headers = signed({ body: '' })
    const given = new Request('http://receiver.test/', { method: 'POST', headers })
    expect(await failureOf(verifyCallback(given, secret, { now }))).toBeInstanceOf(SyntaxError)
    expect(await failureOf(verifyCallback(given, other_secret, { now }))).toMatchObject({
      reason: 'no_match',
    })
  })

  test.each(['', 'whsec_', 'whsec_not base64', 'x', 'xxxxx', 'whsec_xxxx='])(
    'cannot be judged with the secret %j',
    async (wrong) => {
      expect(await failureOf(verifyCallback(request(good), wrong, { now }))).toBeInstanceOf(TypeError)
    },
  )

  function without(name: string): Record<string, string> {
    return Object.fromEntries(Object.entries(good).filter(([known]) => known !== name))
  }
})

function upper(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
}

forEachService('A callback of the service', (service) => {
  test('is verified with the secret of its tenant, and while that rotates with both', async () => {
    const tenant = await service.signUp()
    const { admin, agent } = await clientsOf(service, tenant)
    const receiver = await startReceiver()
    try {
      const { signing_secret } = await admin.tenants.rotateSigningSecret(tenant.tenant_id)
      const asked = await agent.checkpoints.create({ title: 'Refund?', callback_url: `${receiver.url}/` })
      await admin.checkpoints.approve(asked.id, { reason: 'fine' })
      await receiver.received(1)
      const given = receiver.requests[0]!
      for (const one of [tenant.signing_secret, signing_secret]) {
        const verified = await verifyCallback<{ data: object }>(given, one, { now: service.clock.now() })
        expect(verified).toMatchObject({ event: 'checkpoint.approved', attempt: 1 })
        expect(verified.body.data).toMatchObject({
          checkpoint_id: asked.id,
          status: 'approved',
          reason: 'fine',
        })
      }
    } finally {
      await receiver.stop()
    }
  })
})
