// `bun bench/effects.ts`: what an effect costs, in CPU of the service: claimed and reported, against a kv put, and
// asked for again once it has been done, against a kv get.

import { parseArgs } from 'node:util'
import { command, cpuMicros, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { median, spread, table } from './table.ts'

const usage = `Usage: bun bench/effects.ts [options]

  --rounds <n>        turns of each request, of which the median counts (default: 7)
  --requests <n>      requests of a turn (default: 24000)
  --connections <n>   requests under way at once (default: 64)
  --help              this text`

const keys = 1_000
const value = JSON.stringify({ value: 'x'.repeat(100) })

await command(async () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '7' },
      // CPU time is counted in ticks of 10 ms: 2 % of what these cost at least.
      requests: { type: 'string', default: '24000' },
      connections: { type: 'string', default: '64' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  for (const line of pinThisProcess()) console.log(line)
  const [rounds, requests] = [wholeNumber(values.rounds), wholeNumber(values.requests)]
  const connections = wholeNumber(values.connections)
  const service = await startService(new URL('..', import.meta.url).pathname)
  try {
    const client = await Client.signUp(service.url, 'unlimited')
    const turns = turnsOf(client)
    await turns.prepare()
    const measured = Object.entries(turns.requests).map(([what, send]) => ({
      what,
      send,
      micros: [] as number[],
    }))
    for (let round = -1; round < rounds; round++) {
      for (const { send, micros } of measured) {
        const before = cpuMicros(service.pid)
        await drive(connections, requests, (n) => send((round + 1) * requests + n))
        if (round >= 0) micros.push((cpuMicros(service.pid) - before) / requests) // the first round warms up
      }
    }
    console.log(table(['', 'CPU µs', 'times'], rowsOf(measured)))
  } finally {
    await service.stop()
  }
})

type Send = (n: number) => Promise<unknown>

function turnsOf(client: Client): { prepare(): Promise<void>; requests: Record<string, Send> } {
  const put: Send = (n) => client.send({ method: 'PUT', path: `/v1/kv/bench/key-${n % keys}`, body: value })
  const claim = (key: string) =>
    client.send<{ id: string; status: string; lease_token: string }>({
      method: 'POST',
      path: '/v1/effects',
      body: JSON.stringify({ type: 'bench', key, payload: { text: 'x'.repeat(80) } }),
    })
  const once = async (key: string) => {
    const { id, lease_token } = await claim(key)
    const body = JSON.stringify({ lease_token, result: { text: 'x'.repeat(80) } })
    await client.send({ method: 'POST', path: `/v1/effects/${id}/succeed`, body })
  }
  return {
    async prepare() {
      for (let n = 0; n < keys; n++) await Promise.all([put(n), once(`done-${n}`)])
    },
    requests: {
      'kv put': put,
      'effect, claimed and reported': (n) => once(`key-${n}`),
      'kv get': (n) => client.read(`/v1/kv/bench/key-${n % keys}`),
      'effect that is done, claimed again': async (n) => {
        const { status } = await claim(`done-${n % keys}`)
        if (status !== 'succeeded') throw new Error(`an effect that is done is ${status}`)
      },
    },
  }
}

/** Sends so many, at most `connections` at once. */
async function drive(connections: number, requests: number, send: Send): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < requests) await send(next++)
    }),
  )
}

/** Each with how many times it costs what the one before it does, round by round. */
function rowsOf(measured: { what: string; micros: number[] }[]): string[][] {
  return measured.map(({ what, micros }, i) => {
    const row = [what, median(micros).toFixed(0)]
    if (i % 2 === 0) return [...row, '']
    return [
      ...row,
      spread(
        micros.map((each, round) => each / measured[i - 1]!.micros[round]!),
        2,
      ),
    ]
  })
}
