// An agent's working day with the SDK: it remembers where it was, keeps to a rate limit, asks a human before it pays,
// plans a reminder, and dead-letters what fails so that a worker mends it.
//
//   bun examples/agent.ts [address]      address: where the service is, default http://127.0.0.1:8420
//
// A stand-in approves in place of the human. Keys are not printed.

import { type Checkpoint, GiveUp, Waystation } from '../sdk/src/index.ts'

const url = process.argv[2] ?? 'http://127.0.0.1:8420'

interface Invoice {
  id: string
  amount: number
}
const invoices: Invoice[] = [
  { id: 'inv-1', amount: 20 },
  { id: 'inv-2', amount: 900 },
  { id: 'inv-3', amount: 35 },
]
/** From here on a human has to agree. */
const amount_alone_max = 100
const bank_rule = { limit: 10, windowSeconds: 60 }
/** The third payment fails, to have something to mend. */
let tries = 0

try {
  await main()
} catch (error) {
  console.error(`agent: ${(error as Error).message}`)
  process.exitCode = 1
}

async function main(): Promise<void> {
  const owner = { name: `agent-${crypto.randomUUID().slice(0, 13)}`, owner_email: 'owner@example.com' }
  const { tenant_id, admin_key } = await new Waystation({ url }).tenants.create(owner)
  const admin = new Waystation({ url, key: admin_key })
  const { agent_id, api_key } = await admin.agents.create({ name: 'payer' })
  const agent = new Waystation({ url, key: api_key, agent_id })
  say('a tenant with one agent')

  for (const invoice of invoices) await settle(agent, admin, invoice)
  await remind(agent)
  await mend(agent)

  const paid = await agent.kv.get<string[]>('payer', 'paid')
  say(`paid in the end: ${paid.value.join(', ')}`)
  const actions: string[] = []
  for await (const { action } of agent.audit.list({ workflow_id: 'invoices' })) actions.unshift(action)
  say(`the audit log says: ${actions.join(', ')}`)
  await admin.tenants.delete(tenant_id, { confirm: 'DELETE ALL DATA' })
  say('done; the tenant is scheduled for deletion')
}

async function settle(agent: Waystation, admin: Waystation, invoice: Invoice): Promise<void> {
  if (invoice.amount > amount_alone_max && (await ask(agent, admin, invoice)).status !== 'approved') return
  try {
    await pay(agent, invoice)
    say(`${invoice.id} is paid`)
  } catch (error) {
    const { message } = error as Error
    await agent.dlq.create({ payload: invoice, error: message, workflow_id: 'invoices' })
    say(`${invoice.id} failed (${message}) and is dead-lettered`)
  }
}

async function ask(agent: Waystation, admin: Waystation, { id, amount }: Invoice): Promise<Checkpoint> {
  const { id: checkpoint_id } = await agent.checkpoints.create({
    title: `Pay ${amount} for ${id}?`,
    callback_url: null, // the agent waits for the answer, nobody has to call it
  })
  const waiting = agent.checkpoints.waitFor(checkpoint_id, { signal: AbortSignal.timeout(60_000) })
  await admin.checkpoints.approve(checkpoint_id, { reason: 'expected' })
  const answer = await waiting
  say(`${id} was ${answer.status}: ${answer.reason}`)
  return answer
}

async function pay(agent: Waystation, { id }: Invoice): Promise<void> {
  await agent.rateLimit.wait('bank', bank_rule, { max_wait_ms: 120_000 })
  tries += 1
  if (tries === 3) throw new Error('the bank is away')
  await agent.kv.update<string[]>('payer', 'paid', (paid = []) =>
    paid.includes(id) ? undefined : [...paid, id],
  )
  await agent.audit.append(
    { action: `${id}.paid`, workflow_id: 'invoices' },
    { idempotency_key: `${id}-paid` },
  )
}

async function remind(agent: Waystation): Promise<void> {
  const reminder = await agent.schedules.create({
    callback_url: 'http://127.0.0.1:9/reminders',
    callback_payload: { remember: 'next invoices' },
    fire_at: '2099-01-01T09:00:00Z',
    dlq_on_failure: true,
  })
  say(`a reminder is ${reminder.status} for ${reminder.fire_at}`)
}

async function mend(agent: Waystation): Promise<void> {
  const summary = await agent.dlq.work(
    async (item) => {
      const invoice = item.payload as Invoice
      if (!invoices.some(({ id }) => id === invoice.id)) throw new GiveUp('not one of ours')
      await pay(agent, invoice)
      say(`${invoice.id} is paid at the second try`)
    },
    { stop_when_empty: true },
  )
  say(`the worker resolved ${summary.resolved}`)
}

function say(what: string): void {
  console.log(`- ${what}`)
}
