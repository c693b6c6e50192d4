import { expect, test } from 'bun:test'
import {
  createHmac,
  createSign,
  createVerify,
  generateKeyPairSync,
  sign as signEdDsa,
  verify as verifyEdDsa,
} from 'node:crypto'
import { sign, verify } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { messagesIn, newInbox } from '../../test/support/inbox.ts'
import { forEachService } from '../../test/support/service.ts'

/** White space, escapes and numbers that would not survive being parsed. */
const payload = '{\n  "id": "evt_1", "object": "event", "n": 1.0, "text": "gr\\u00fc\u00dfe \u{1f600}"\n}\n'

interface Stored {
  headers: Record<string, string>
  bodyBase64: string
}

type Sender = [
  name: string,
  sign: () => Promise<Record<string, string>> | Record<string, string>,
  verify: (stored: Stored, bytes: string) => unknown,
]

const github_secret = "it's a secret to everybody"
const stripe_secret = 'whsec_of_the_tests'
const stripe = new Stripe('sk_test_none')
const standard = new Webhook('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')

const shared_secret = 'of the tests'
const now_seconds = String(Math.floor(Date.now() / 1_000))
const discord = generateKeyPairSync('ed25519')
const hmac = (text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', shared_secret).update(text).digest(encoding)

/** A sender whose signature is one header, made of the bytes and perhaps the time. */
function oneHeader(name: string, header: string, made: (bytes: string) => string): Sender {
  return [
    name,
    () => ({ [header]: made(payload) }),
    ({ headers }, bytes) => {
      if (headers[header] !== made(bytes)) throw new Error('refused')
    },
  ]
}

const senders: Sender[] = [
  oneHeader('Slack', 'x-slack-signature', (bytes) => `v0=${hmac(`v0:${now_seconds}:${bytes}`)}`),
  oneHeader('Zoom', 'x-zm-signature', (bytes) => `v0=${hmac(`v0:${now_seconds}:${bytes}`)}`),
  oneHeader('Shopify', 'x-shopify-hmac-sha256', (bytes) => hmac(bytes, 'base64')),
  oneHeader('Dropbox', 'x-dropbox-signature', hmac),
  [
    'Discord',
    () => ({
      'x-signature-timestamp': now_seconds,
      'x-signature-ed25519': signEdDsa(null, Buffer.from(now_seconds + payload), discord.privateKey).toString(
        'hex',
      ),
    }),
    ({ headers }, bytes) => {
      const signature = Buffer.from(headers['x-signature-ed25519']!, 'hex')
      const signed = Buffer.from(headers['x-signature-timestamp']! + bytes)
      if (!verifyEdDsa(null, signed, discord.publicKey, signature)) throw new Error('refused')
    },
  ],
  [
    'GitHub',
    async () => ({ 'x-hub-signature-256': await sign(github_secret, payload), 'x-github-event': 'push' }),
    async ({ headers }, bytes) => {
      if (!(await verify(github_secret, bytes, headers['x-hub-signature-256']!))) throw new Error('refused')
    },
  ],
  [
    'Stripe',
    async () => ({
      'stripe-signature': await stripe.webhooks.generateTestHeaderStringAsync({
        payload,
        secret: stripe_secret,
      }),
    }),
    ({ headers }, bytes) =>
      stripe.webhooks.constructEventAsync(bytes, headers['stripe-signature']!, stripe_secret),
  ],
  [
    'Standard Webhooks',
    () => {
      const now = new Date()
      return {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
        'webhook-signature': standard.sign('msg_1', now, payload),
      }
    },
    ({ headers }, bytes) => standard.verify(bytes, headers),
  ],
]

forEachService('Real senders', (service) => {
  test.each(senders)('%s: what the inbox stored verifies, and a changed copy does not', async (...sender) => {
    const [, signed, verified] = sender
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const headers = { ...(await signed()), 'content-type': 'application/json' }
    expect((await service.ask('POST', inbox.path, { body: payload, headers })).status).toBe(200)
    const [stored] = await messagesIn(service, tenant, inbox)
    const bytes = Buffer.from(stored.bodyBase64, 'base64').toString()
    expect(bytes).toBe(payload)
    await verified(stored, bytes)
    const changed = async () => verified(stored, bytes.replace('evt_1', 'evt_2'))
    await expect(changed()).rejects.toThrow()
  })

  test('Twilio: its signature is of the URL of the inbox and the fields of the form, which a read has', async () => {
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const body = 'From=%2B14155550100&Body=gr%C3%BC%C3%9Fe+%F0%9F%98%80&AccountSid=AC1'
    const made = (form: string) => {
      const fields = [...new URLSearchParams(form)].toSorted(([a], [b]) => (a < b ? -1 : 1))
      const text = `https://api.example.com${inbox.path}${fields.flat().join('')}`
      return createHmac('sha1', shared_secret).update(text).digest('base64')
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': made(body) }
    expect((await service.ask('POST', inbox.path, { body, headers })).status).toBe(200)
    const [stored] = await messagesIn(service, tenant, inbox)
    const bytes = Buffer.from(stored.bodyBase64, 'base64').toString()
    expect(made(bytes)).toBe(stored.headers['x-twilio-signature'])
    expect(made(bytes.replace('AC1', 'AC2'))).not.toBe(stored.headers['x-twilio-signature'])
  })

  test('Amazon SNS: the URL that confirms the subscription, and a signature, are in its text/plain', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const tenant = await service.signUp()
    const inbox = await newInbox(service, tenant)
    const fields = {
      Message: 'confirm\nthis',
      SubscribeURL: 'https://sns.example.com/?Token=1',
      Type: 'SubscriptionConfirmation',
    }
    const text = Object.entries(fields).flat().join('\n')
    const Signature = createSign('sha256').update(text).sign(privateKey, 'base64')
    const headers = { 'content-type': 'text/plain; charset=UTF-8', 'x-amz-sns-message-type': fields.Type }
    const body = JSON.stringify({ ...fields, Signature }, null, 2)
    expect((await service.ask('POST', inbox.path, { body, headers })).status).toBe(200)
    const [stored] = await messagesIn(service, tenant, inbox)
    const { Signature: signed, ...received } = JSON.parse(Buffer.from(stored.bodyBase64, 'base64').toString())
    expect(stored.body).toEqual({ ...fields, Signature })
    const said = Object.entries(received).flat().join('\n')
    expect(createVerify('sha256').update(said).verify(publicKey, signed, 'base64')).toBe(true)
  })

  /** Senders that ask before they send: docs/inbox.md lists them. */
  const asked: [sender: string, method: string, end: string, headers: Record<string, string>][] = [
    ['Meta', 'GET', '?hub.mode=subscribe&hub.challenge=the-challenge&hub.verify_token=t', {}],
    ['Dropbox', 'GET', '?challenge=the-challenge', {}],
    ['Okta', 'GET', '', { 'x-okta-verification-challenge': 'the-challenge' }],
    ['Microsoft Graph', 'POST', '?validationToken=the-challenge', { 'content-type': 'text/plain' }],
    ['CloudEvents', 'OPTIONS', '', { 'webhook-request-origin': 'the-challenge' }],
  ]
  test.each(asked)(
    '%s asks the endpoint first, by %s, and gets no challenge back',
    async (_, method, end, headers) => {
      const tenant = await service.signUp()
      const inbox = await newInbox(service, tenant)
      const answer = await service.ask(method, `${inbox.path}${end}`, { headers })
      expect([answer.status, answer.headers.get('webhook-allowed-origin')]).toEqual([
        method === 'OPTIONS' ? 204 : 200,
        null,
      ])
      expect(JSON.stringify(answer.body ?? '')).not.toContain('the-challenge')
      expect(await messagesIn(service, tenant, inbox)).toHaveLength(method === 'OPTIONS' ? 0 : 1)
    },
  )
})
