import { describe, expect, setSystemTime, test } from 'bun:test'
import { createHmac, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { signatureHeaders } from './sign.ts'

// The example of the specification's reference libraries.
const published = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp_seconds: 1614265330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const now_seconds = published.timestamp_seconds
const seed = 20_260_101

interface Tampered {
  body: string
  headers: Record<string, string>
  secret: string
}

function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** True when a receiver with the official library accepts the signature at that time. */
function verifies(secret: string, body: string, headers: Record<string, string>): boolean {
  setSystemTime(now_seconds * 1_000)
  try {
    new Webhook(secret).verify(body, headers)
    return true
  } catch (error) {
    // A genuine body need not be JSON; the library parses it after it has verified it.
    return error instanceof SyntaxError
  } finally {
    setSystemTime()
  }
}

const payloads = fc.record({
  id: fc.stringMatching(/^evt_[0-9a-z]{26}$/),
  body: fc.oneof(fc.json(), fc.string({ unit: 'binary' }), fc.constant('')),
  key: fc.uint8Array({ minLength: 24, maxLength: 64 }),
})

function eachPayload(count: number, check: (payload: { id: string; body: string; secret: string }) => void) {
  for (const { id, body, key } of fc.sample(payloads, { numRuns: count, seed })) {
    check({ id, body, secret: `whsec_${Buffer.from(key).toString('base64')}` })
  }
}

describe('signatures', () => {
  test('the published vector is reproduced', () => {
    const { secret, id, timestamp_seconds, body, signature } = published
    expect(signatureHeaders({ id, timestamp_seconds, body, secrets: [secret] })).toEqual({
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': signature,
    })
  })

  test('bytes are signed as they are, and text as its UTF-8', () => {
    const { secret, id, timestamp_seconds } = published
    const text = '{"größe": "§"}'
    const of = (body: string | Uint8Array) =>
      signatureHeaders({ id, timestamp_seconds, body, secrets: [secret] })
    expect(of(Buffer.from(text))).toEqual(of(text))
    const bytes = Buffer.from([0xff, 0x00, 0xfe])
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const mac = createHmac('sha256', key).update(`${id}.${timestamp_seconds}.`).update(bytes).digest('base64')
    expect(of(bytes)['webhook-signature']).toBe(`v1,${mac}`)
  })

  test('1,000 payloads verify with the official library', () => {
    let verified = 0
    eachPayload(1_000, ({ id, body, secret }) => {
      const headers = signatureHeaders({ id, timestamp_seconds: now_seconds, body, secrets: [secret] })
      if (verifies(secret, body, headers)) verified += 1
    })
    expect(verified).toBe(1_000)
  })

  const tamperings: ((signed: Tampered) => void)[] = [
    (signed) => {
      signed.body += ' '
    },
    (signed) => {
      signed.headers['webhook-id'] += 'x'
    },
    (signed) => {
      signed.headers['webhook-timestamp'] = String(now_seconds + 1)
    },
    (signed) => {
      const [version, base64 = ''] = (signed.headers['webhook-signature'] ?? '').split(',')
      const flipped = Buffer.from(base64, 'base64')
      flipped[7] = flipped[7]! ^ 1
      signed.headers['webhook-signature'] = `${version},${flipped.toString('base64')}`
    },
    (signed) => {
      signed.secret = newSecret()
    },
  ]
  test('1,000 tampered ones do not: body, id, time, signature, secret', () => {
    let refused = 0
    let index = 0
    eachPayload(1_000, ({ id, body, secret }) => {
      const headers = signatureHeaders({ id, timestamp_seconds: now_seconds, body, secrets: [secret] })
      const signed = { body, headers, secret }
      tamperings[index++ % tamperings.length]!(signed)
      if (!verifies(signed.secret, signed.body, signed.headers)) refused += 1
    })
    expect(refused).toBe(1_000)
  })

  test.each([
    [-301, false],
    [-299, true],
    [299, true],
    [301, false],
  ])('a request signed %i s from the receiver’s clock verifies: %p', (offset, expected) => {
    const { secret, id, body } = published
    const headers = signatureHeaders({ id, timestamp_seconds: now_seconds + offset, body, secrets: [secret] })
    expect(verifies(secret, body, headers)).toBe(expected)
  })

  test('while a secret rotates there is one signature for each, and either verifies', () => {
    const [fresh, old, other] = [newSecret(), newSecret(), newSecret()]
    const { id, body } = published
    const headers = signatureHeaders({ id, timestamp_seconds: now_seconds, body, secrets: [fresh, old] })
    expect(headers['webhook-signature']).toMatch(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/)
    expect([fresh, old, other].map((secret) => verifies(secret, body, headers))).toEqual([true, true, false])
  })
})
