// Pays invoices at a bank that is sometimes away. What fails becomes a dead
// letter, and a worker finishes it later.

import { setTimeout as sleep } from 'node:timers/promises'
import { GiveUp, Waystation } from 'waystation'

const url = process.env.WAYSTATION_URL ?? 'http://127.0.0.1:8420'
const agent = new Waystation({ url, key: process.env.AGENT_KEY })

interface Invoice {
  id: string
  cents: number
}
const invoices: Invoice[] = [
  { id: 'inv-1', cents: 2000 },
  { id: 'inv-2', cents: -5 },
]

/** The bank: away for the first four calls. It never takes a negative amount. */
let calls = 0
async function pay({ id, cents }: Invoice): Promise<void> {
  if (cents < 0) throw new GiveUp(`${id} has a negative amount`)
  calls += 1
  if (calls <= 4) throw new Error('the bank is away')
  console.log(`${id} is paid`)
}

async function payWithRetries(invoice: Invoice): Promise<void> {
  for (const pause_ms of [100, 200]) {
    try {
      return await pay(invoice)
    } catch (error) {
      if (error instanceof GiveUp) throw error
      await sleep(pause_ms)
    }
  }
  await pay(invoice)
}

for (const invoice of invoices) {
  try {
    await payWithRetries(invoice)
  } catch (error) {
    await agent.dlq.create({ payload: invoice, error: String(error), workflow_id: 'invoices' })
    console.log(`${invoice.id} is a dead letter: ${error}`)
  }
}

// A program of its own in real life. It runs until it is stopped, without stop_when_empty.
const ended = await agent.dlq.work((item) => pay(item.payload as Invoice), {
  stop_when_empty: true,
  on_error: (error) => console.log(`the worker: ${error}`),
})
console.log(`resolved ${ended.resolved}, archived ${ended.failed}`)
