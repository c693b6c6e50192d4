// `bun bench/waiters.ts`: what requests cost that wait for events, in CPU of the service, and how soon after a change its
// event reaches one that waits for it.

import { parseArgs } from 'node:util'
import { command, cpuMicros, memoryMib, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { table } from './table.ts'

const usage = `Usage: bun bench/waiters.ts [options]

  --waiters <n>    requests that wait, 1,000 of each tenant (default: 1000)
  --seconds <n>    of each turn, 45 at most (default: 20)
  --rate <n>       events a second that none of them waits for (default: 10)
  --changes <n>    changes whose event is waited for (default: 1000)
  --help           this text`

const wait_seconds = 55
const turn_seconds_max = 45
const of_tenant_max = 1_000

await command(async () => {
  const { values } = parseArgs({
    options: {
      waiters: { type: 'string', default: '1000' },
      seconds: { type: 'string', default: '20' },
      rate: { type: 'string', default: '10' },
      changes: { type: 'string', default: '1000' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  for (const line of pinThisProcess()) console.log(line)
  const waiters = wholeNumber(values.waiters)
  const seconds = Math.min(wholeNumber(values.seconds), turn_seconds_max)
  const rate = wholeNumber(values.rate)
  const service = await startService(new URL('..', import.meta.url).pathname)
  try {
    const clients: Client[] = []
    for (let from = 0; from < waiters; from += of_tenant_max)
      clients.push(await Client.signUp(service.url, 'unlimited'))
    const other = await Client.signUp(service.url, 'unlimited')
    const turns: [what: string, waiters: number, rate: number][] = [
      ['nobody waits', 0, 0],
      [`${waiters} wait`, waiters, 0],
      [`nobody waits, ${rate} events a second`, 0, rate],
      [`${waiters} wait, ${rate} events a second`, waiters, rate],
    ]
    const rows: string[][] = []
    for (const [what, count, of_turn] of turns) {
      const held = await waitAll(service.url, clients, count)
      const percent = await cpuOf(service.pid, seconds, clients, of_turn)
      held.end()
      rows.push([what, percent.toFixed(2), memoryMib(service.pid).now.toFixed(0)])
      await Bun.sleep(1_000)
    }
    console.log(table(['', '% of a core', 'RSS MiB'], rows))
    const held = await waitAll(service.url, clients, waiters - 1)
    const reached = await latencies(
      waiters < of_tenant_max ? clients[0]! : other,
      wholeNumber(values.changes),
    )
    held.end()
    console.log(table(['ms from the change to its waiter', 'p50', 'p99', 'max'], reached))
  } finally {
    await service.stop()
  }
})

/** So many requests wait, each for something else; those of a tenant one after the other. */
async function waitAll(url: string, clients: readonly Client[], count: number): Promise<{ end(): void }> {
  const { hostname, port } = new URL(url)
  let answered = 0
  const open = async (i: number) => {
    const client = clients[Math.floor(i / of_tenant_max)]!
    const body = JSON.stringify({ any: [{ subject: `audit_entry:${i}` }], wait_seconds })
    const head = `POST /v1/wait HTTP/1.1\r\nhost: ${hostname}\r\nx-agent-id: ${client.agent_id}\r\nx-api-key: ${client.api_key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    return Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (socket) => void socket.write(head + body),
        data: () => {
          answered++
        },
      },
    })
  }
  const sockets: Awaited<ReturnType<typeof open>>[] = []
  for (let i = 0; i < count; i++) sockets.push(await open(i))
  await Bun.sleep(2_000)
  if (answered > 0) throw new Error(`${answered} of ${count} were answered instead of waiting`)
  return {
    end() {
      if (answered > 0) throw new Error(`${answered} of ${count} were answered instead of waiting`)
      for (const socket of sockets) socket.terminate()
    },
  }
}

async function cpuOf(
  pid: number,
  seconds: number,
  clients: readonly Client[],
  rate: number,
): Promise<number> {
  const [began, before] = [performance.now(), cpuMicros(pid)]
  for (let n = 1; performance.now() - began < seconds * 1_000; n++) {
    if (rate > 0) await append(clients[n % clients.length]!)
    await Bun.sleep(Math.max(0, began + (n * 1_000) / (rate || 1) - performance.now()))
  }
  return (cpuMicros(pid) - before) / ((performance.now() - began) * 1_000) / 0.01
}

function append(client: Client): Promise<{ id: string }> {
  return client.send<{ id: string }>({
    method: 'POST',
    path: '/v1/audit',
    body: JSON.stringify({ action: 'bench.ran' }),
  })
}

/** From the sending of a change, and from its answer, to the answer of the request that waited for its event. */
async function latencies(client: Client, changes: number): Promise<string[][]> {
  const from_sent: number[] = []
  const from_answer: number[] = []
  let after = (await wait(client, {})).after
  for (let n = 0; n < changes; n++) {
    const waiting = wait(client, { after, wait_seconds }).then((answer) => ({
      answer,
      at: performance.now(),
    }))
    await Bun.sleep(5) // so that it waits by then
    const sent_at = performance.now()
    const { id } = await append(client)
    const answered_at = performance.now()
    const { answer, at } = await waiting
    if (answer.event?.subject.id !== id) throw new Error(`waited for ${id}, got ${JSON.stringify(answer)}`)
    after = answer.after
    from_sent.push(at - sent_at)
    from_answer.push(Math.max(0, at - answered_at))
  }
  return [
    ['from its request', ...quantiles(from_sent)],
    ['from its answer', ...quantiles(from_answer)],
  ]
}

interface WaitAnswer {
  event: { subject: { id: string } } | null
  after: number
}

function wait(client: Client, asked: object): Promise<WaitAnswer> {
  return client.send<WaitAnswer>({
    method: 'POST',
    path: '/v1/wait',
    body: JSON.stringify({ any: [{ type: 'audit.appended' }], ...asked }),
  })
}

function quantiles(values: number[]): string[] {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
  return [at(0.5), at(0.99), at(1)].map((ms) => ms.toFixed(2))
}
