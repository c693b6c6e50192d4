// A refund that happens once: an agent proposes it, a person changes it on the phone and approves, and although the agent
// is killed three times the bank pays once.
//
//   bun examples/refund.ts [address]     address: where the service is, default http://127.0.0.1:8420
//
// The service has to run with TICK=internal. The agent is a process of its own, which this one starts and kills; this one
// stands in for the bank and for the person. Takes about 15 seconds. Keys are not printed.

import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NotDone, Waystation } from '../sdk/src/index.ts'

interface Refund {
  order: number
  amount: number
}

const proposed: Refund = { order: 8, amount: 900 }
const approved: Refund = { order: 8, amount: 600 }

const is_agent = process.argv[2] === '--agent'
try {
  await (is_agent ? agent() : story(process.argv[2] ?? 'http://127.0.0.1:8420'))
} catch (error) {
  console.error(`refund: ${(error as Error).message}`)
  process.exit(1) // the bank is still open
}

/** All that an author writes: it can be run again after whatever has happened to it. */
async function agent(): Promise<void> {
  const { SERVICE_URL, AGENT_KEY, BANK_URL } = process.env as Record<string, string>
  const client = new Waystation({ url: SERVICE_URL!, key: AGENT_KEY })
  const receipt = await client.effects.once(
    {
      type: 'refund',
      key: `order-${proposed.order}`,
      payload: proposed,
      approval: { title: 'Refund 900 EUR for order 8?', editable: true },
      lease_seconds: 5,
      on_unknown: 'ask',
      if_unknown: 'wait',
      on_waiting: () => console.log('waiting'),
    },
    async ({ payload, id, signal }) => {
      const headers = { 'idempotency-key': id } // this bank ignores it, as many targets do
      const body = JSON.stringify(payload)
      const answer = await fetch(BANK_URL!, { method: 'POST', headers, body, signal })
      // Refused: surely not paid. After any other failure nobody knows, and a person is asked.
      if (answer.status >= 400 && answer.status < 500) throw new NotDone(`the bank refused: ${answer.status}`)
      if (!answer.ok) throw new Error(`the bank answered ${answer.status}`)
      return ((await answer.json()) as { receipt: string }).receipt
    },
  )
  console.log(`receipt ${receipt}`)
}

async function story(url: string): Promise<void> {
  const owner = { name: `refund-${crypto.randomUUID().slice(0, 13)}`, owner_email: 'owner@example.com' }
  const { tenant_id, admin_key } = await new Waystation({ url }).tenants.create(owner)
  const admin = new Waystation({ url, key: admin_key })
  const { api_key } = await admin.agents.create({ name: 'refunder' })
  const { approval_key } = await admin.approvalKeys.create({ label: 'Kim' })
  const kim = new Waystation({ url, key: approval_key })
  const bank = await openBank()
  const start = () => startAgent({ SERVICE_URL: url, AGENT_KEY: api_key, BANK_URL: bank.url })
  say('a tenant with one agent, a person with an approval key, and a bank')

  const first = start()
  await first.says('waiting')
  first.kill()
  say('the agent proposed to refund 900 EUR and waited: killed, the first time')

  const { items } = await admin.effects.list({ type: 'refund' }).page()
  const { id, checkpoint_id } = items[0]!
  const shown = (await kim.approvals.get(checkpoint_id!)).effect_payload
  assert(JSON.stringify(shown) === JSON.stringify(proposed), 'the person was shown something else')
  await kim.checkpoints.approve(checkpoint_id!, { effective_payload: approved })
  say('the person saw exactly that, made it 600 EUR on the phone, and approved')

  const second = start()
  const lost = await second.until(bank.request())
  second.kill()
  lost.answer.destroy()
  say('the agent went to the bank: killed on its way, the second time')

  await decide(admin, kim, id, { outcome: 'retry' })
  say('nobody knew: the person looked, the bank had not paid, so it may be done')

  const third = start()
  const paid = await third.until(bank.request())
  const receipt = bank.pay(paid.refund)
  third.kill()
  say(`the bank paid ${paid.refund.amount} EUR: killed before it heard of it, the third time`)

  await decide(admin, kim, id, { outcome: 'succeeded', result: receipt })
  say('nobody knew: the person looked, the bank had paid, and so it is recorded')

  const last = start()
  await last.says(`receipt ${receipt}`)
  say(`started once more, the agent was answered ${receipt} and did nothing`)

  assert(JSON.stringify(bank.paid) === JSON.stringify([approved]), 'the bank has paid something else')
  const { payload, effective_payload, fence } = await admin.effects.get(id)
  assert(JSON.stringify([payload, effective_payload]) === JSON.stringify([proposed, approved]), 'it forgot')
  say(`the bank has paid once, in ${fence} tries; what was proposed and what was approved are both kept`)
  bank.close()
  await admin.tenants.delete(tenant_id, { confirm: 'DELETE ALL DATA' })
  say('done; the tenant is scheduled for deletion')
}

/** The lease of a killed agent runs out, a person is asked what became of the effect, and answers. */
async function decide(
  admin: Waystation,
  person: Waystation,
  id: string,
  answer: { outcome: string; result?: string },
): Promise<void> {
  const { status, question_id } = await admin.effects.waitFor(id)
  assert(status === 'unknown' && question_id !== null, `the effect is ${status}`)
  await person.checkpoints.approve(question_id!, { answer })
}

/** The agent as a process that can be killed. */
function startAgent(environment: Record<string, string>) {
  const run = spawn(process.execPath, [process.argv[1]!, '--agent'], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed = linesOf(run)
  const ended = new Promise<never>((_, reject) =>
    run.once('close', () => reject(new Error('the agent ended by itself'))),
  )
  ended.catch(() => {})
  const until = <T>(happens: Promise<T>): Promise<T> => Promise.race([happens, ended])
  return {
    until,
    says: (line: string) => until(printed(line)),
    kill: () => run.kill('SIGKILL'),
  }
}

/** Resolves when the process has printed this line. */
function linesOf({ stdout }: ChildProcess): (line: string) => Promise<void> {
  let text = ''
  return (line) =>
    new Promise((resolve) => {
      const look = () => text.split('\n').includes(line) && resolve()
      stdout!.on('data', (chunk) => {
        text += chunk
        look()
      })
      look()
    })
}

interface Visit {
  refund: Refund
  answer: ServerResponse
}

/** A bank that pays as often as it is told to. Its door does nothing until the story says so. */
async function openBank() {
  const paid: Refund[] = []
  let onVisit = (_: Visit) => {}
  const server = createServer(async (request, answer) => {
    let text = ''
    for await (const chunk of request) text += chunk
    onVisit({ refund: JSON.parse(text), answer })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paid,
    request: () =>
      new Promise<Visit>((resolve) => {
        onVisit = resolve
      }),
    /** Returns the receipt. */
    pay: (refund: Refund) => `receipt-${paid.push(refund)}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function assert(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise)
}

function say(line: string): void {
  console.log(`- ${line}`)
}
