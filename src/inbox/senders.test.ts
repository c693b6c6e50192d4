import { expect, test } from 'bun:test'
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

const senders: Sender[] = [
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
})
