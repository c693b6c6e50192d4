// Receives webhooks on a machine without a public address: the service keeps
// them, and this program fetches them.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Message, Waystation } from 'waystation'

const url = process.env.WAYSTATION_URL ?? 'http://127.0.0.1:8420'
const agent = new Waystation({ url, key: process.env.AGENT_KEY })
const secret = process.env.WEBHOOK_SECRET ?? ''
if (secret === '') throw new Error('WEBHOOK_SECRET is missing: without it anybody could sign')

interface State {
  inbox_id: string
  /** The last message that was handled. */
  after?: string
}
const found = await agent.kv.find<State>('webhooks', 'orders')
const state = found?.value ?? { inbox_id: await newInbox() }
const { inbox } = await agent.inboxes.get(state.inbox_id)
console.log(`give this URL to the sender: ${inbox.url}`)

for await (const message of agent.inboxes.messages(inbox.id, { follow: true, after: state.after })) {
  if (isGenuine(message)) console.log(`an order: ${JSON.stringify(message.body)}`)
  else console.log('refused: the signature is not that of the sender')
  await agent.kv.put('webhooks', 'orders', { ...state, after: message.id })
}

async function newInbox(): Promise<string> {
  const { id } = await agent.inboxes.create({ label: 'orders', ttl: 7 * 86_400 })
  await agent.kv.put('webhooks', 'orders', { inbox_id: id })
  return id
}

/** Over the bytes as they came, in the form that this sender uses. */
function isGenuine({ headers, bodyBase64 }: Message): boolean {
  const expected = createHmac('sha256', secret).update(Buffer.from(bodyBase64, 'base64')).digest()
  const given = Buffer.from(headers['x-signature'] ?? '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
