// Asks a person before it deploys. The person gets a link that decides this
// one question, and opens it on a phone.

import { Waystation } from 'waystation'

const url = process.env.WAYSTATION_URL ?? 'http://127.0.0.1:8420'
const agent = new Waystation({ url, key: process.env.AGENT_KEY })
const admin = new Waystation({ url, key: process.env.ADMIN_KEY })

const question = await agent.checkpoints.create({
  title: 'Deploy version 42?',
  prompt: 'All tests pass. The database changes, so there is no way back.',
  callback_url: null, // this program waits, nobody has to be called
  timeout_seconds: 900,
})

const key = await admin.approvalKeys.create({ checkpoint_id: question.id, label: 'phone of Ada' })
await notify(`${question.title} ${key.approval_url}`)

const answer = await agent.checkpoints.waitFor(question.id)
console.log(`${answer.status} by ${answer.resolved_by}: ${answer.reason}`)
await admin.approvalKeys.delete(key.approval_key_id)

/** To a chat that takes {"text": "…"} at a URL, as most do; without NOTIFY_URL to the screen. */
async function notify(text: string): Promise<void> {
  const chat = process.env.NOTIFY_URL
  if (!chat) return console.log(text)
  const headers = { 'content-type': 'application/json' }
  const { ok, status } = await fetch(chat, { method: 'POST', headers, body: JSON.stringify({ text }) })
  if (!ok) throw new Error(`the chat answered ${status}`)
}
