// Three workers call one API, which allows five calls a second to all of them
// together.

import { Waystation } from 'waystation'

const url = process.env.WAYSTATION_URL ?? 'http://127.0.0.1:8420'
const agent = new Waystation({ url, key: process.env.AGENT_KEY })
const rule = { limit: 5, windowSeconds: 1 }

await Promise.all(['one', 'two', 'three'].map(worker))

async function worker(name: string): Promise<void> {
  for (const customer of ['ada', 'grace', 'edsger']) {
    await agent.rateLimit.wait('crm.example.com', rule, { max_wait_ms: 60_000 })
    console.log(`worker ${name} calls the API for ${customer}`)
  }
}
