// The agent of the tutorial: asks a person about a refund, waits for the answer,
// records what it did, and schedules a reminder.

import { Waystation } from 'waystation'

const agent = new Waystation({ url: 'http://127.0.0.1:8420', key: process.env.AGENT_KEY })
const refund = { order: 7, cents: 3000 }

const question = await agent.checkpoints.create(
  {
    title: 'Refund order 7?',
    prompt: 'The parcel arrived broken. The customer asks for 30 EUR back.',
    callback_url: 'http://127.0.0.1:8421/decided',
    callback_payload: refund,
  },
  { idempotency_key: 'ask-7' },
)
console.log(`asked: ${question.id}`)

const answer = await agent.checkpoints.waitFor(question.id)
console.log(`${answer.status}: ${answer.reason}`)
if (answer.status !== 'approved') process.exit()

await agent.kv.put('refunds', 'order-7', refund)
const entry = { action: 'refund.paid', workflow_id: 'order-7', metadata: refund }
await agent.audit.append(entry, { idempotency_key: 'paid-7' })
console.log('paid, and recorded')

const reminder = await agent.schedules.create(
  {
    callback_url: 'http://127.0.0.1:8421/reminders',
    callback_payload: { order: 7, ask: 'Did the money arrive?' },
    fire_at: new Date(Date.parse(answer.resolved_at!) + 2_000).toISOString(),
    dlq_on_failure: true,
  },
  { idempotency_key: 'remind-7' },
)
console.log(`scheduled: ${reminder.id}`)
