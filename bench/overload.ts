// `bun bench/overload.ts`: several times as many requests as the service can answer, for a minute: how many it still
// answers, how fast, whether it says that it lives, what memory it takes; and what a tenant that sends far more than its
// share does to one that keeps to it.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { LoadReport, LoadTask, Sent } from './overload-load.ts'
import { command, cores, memoryMib, output, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, startService } from './service.ts'
import { table } from './table.ts'

const usage = `Usage: bun bench/overload.ts [options]

  --times <n>        how many times the peak is offered (default: 5)
  --seconds <n>      of the overload (default: 60)
  --connections <n>  of the overload, over which it is offered (default: 1024)
  --tenants <n>      that share the service: the peak divided by this is a share (default: 50)
  --part <part>      overload or shares; without it both
  --help             this text`

const peak_connections = 64
const peak_seconds = 8
const settle_ms = 1_500
const livez_every_ms = 50
const quiet_every_ms = 20
const shares_seconds = 3
const shares_rounds = 4
const shares_settle_ms = 500
const columns = ['answered/s', 'refused/s', 'failed/s', 'unsent/s', 'p50 ms', 'p99 ms']
const quietGet = { method: 'GET', path: '/v1/kv/quiet/k' } as const
const quietPut = { method: 'PUT', path: '/v1/kv/quiet/k', body: '{"value":1}' } as const

await command(async () => {
  const { values } = parseArgs({
    options: {
      times: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '60' },
      connections: { type: 'string', default: '1024' },
      tenants: { type: 'string', default: '50' },
      part: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  for (const line of pinThisProcess()) console.log(line)
  const [times, seconds] = [wholeNumber(values.times), wholeNumber(values.seconds)]
  const connections = wholeNumber(values.connections)
  const tenants = wholeNumber(values.tenants)
  const service = await startService(new URL('..', import.meta.url).pathname)
  try {
    const crowd: Client[] = []
    for (let i = 0; i < tenants; i++) crowd.push(await Client.signUp(service.url, 'unlimited'))
    await load(crowd, { connections: peak_connections, seconds: 2 }) // warms up
    const per_second = await peakOf(crowd)
    if (values.part !== 'shares') {
      const offered = { connections, seconds, per_second: times * per_second }
      await overload(service, crowd, offered, per_second)
    }
    if (values.part !== 'overload') await shares(crowd, per_second / tenants, connections)
  } finally {
    await service.stop()
  }
})

async function peakOf(crowd: readonly Client[]): Promise<number> {
  const peak = await load(crowd, { connections: peak_connections, seconds: peak_seconds })
  console.log(
    `peak: ${row(peak, peak_seconds).join(', ')} (answered, refused, failed, unsent a second; p50, p99 ms)`,
  )
  return peak.accepted.count / peak_seconds
}

/** The peak is measured again afterwards: the machine may have grown slower or faster meanwhile. */
async function overload(
  { url, pid }: { url: string; pid: number },
  crowd: readonly Client[],
  offered: Offered & { per_second: number },
  peak_before: number,
): Promise<void> {
  await Bun.sleep(settle_ms)
  const livez = probe(() => fetch(`${url}/livez`), livez_every_ms)
  const memory: number[] = []
  const watch = setInterval(() => memory.push(memoryMib(pid).now), 1_000)
  const report = await load(crowd, offered)
  clearInterval(watch)
  const alive = await livez.end()
  await Bun.sleep(settle_ms)
  const peak = (peak_before + (await peakOf(crowd))) / 2
  const goodput = report.accepted.count / offered.seconds
  console.log(
    table(
      [`${offered.per_second.toFixed(0)}/s`, ...columns],
      [[`${offered.seconds} s, ${offered.connections} connections`, ...row(report, offered.seconds)]],
    ),
  )
  const [early, late] = [Math.max(...memory.slice(0, memory.length / 2)), Math.max(...memory)]
  console.log(
    table(
      ['', 'is', 'should be'],
      [
        ['goodput, % of the mean of both peaks', ((100 * goodput) / peak).toFixed(0), '>= 80'],
        ['p99 of what is accepted, ms', report.accepted.p99_ms.toFixed(0), '<= 1000'],
        ['/livez p99 ms', quantile(alive.latencies_ms, 0.99).toFixed(1), ''],
        ['/livez slowest ms', Math.max(...alive.latencies_ms).toFixed(1), '<= 100'],
        ['/livez not 200', String(alive.failed), '0'],
        ['RSS MiB, first half and all', `${early.toFixed(0)}, ${late.toFixed(0)}`, 'no growth'],
      ],
    ),
  )
}

/**
 * A tenant that keeps to its share, alone, beside others that do, and beside one that sends 1 and 50 times its share: in
 * turns, so that a machine that grows slower or faster favours none of them.
 */
async function shares(crowd: readonly Client[], share: number, connections: number): Promise<void> {
  const [quiet, noisy, ...others] = crowd as [Client, Client, ...Client[]]
  const beside: Beside[] = [
    { what: 'alone', clients: [], offered: 0 },
    { what: 'beside one at its share', clients: [noisy], offered: share },
    {
      ...{ what: `beside ${others.length} at 80 % of their shares`, clients: others },
      offered: 0.8 * share * others.length,
    },
    { what: 'beside one at 50 times its share', clients: [noisy], offered: 50 * share },
    { what: 'beside one that sends all it can', clients: [noisy], offered: Number.POSITIVE_INFINITY },
  ]
  await quiet.send(quietPut)
  const seen = beside.map(() => ({ latencies_ms: [] as number[], failed: 0, reports: [] as LoadReport[] }))
  for (let round = 0; round < shares_rounds; round++) {
    for (const [i, one] of round % 2 === 0 ? [...beside.entries()] : [...beside.entries()].reverse()) {
      await Bun.sleep(shares_settle_ms)
      const asked = probe((n) => quiet.send(n % 2 === 0 ? quietGet : quietPut), quiet_every_ms)
      const report = await loadBeside(one, connections)
      const { latencies_ms, failed } = await asked.end()
      seen[i]!.latencies_ms.push(...latencies_ms)
      seen[i]!.failed += failed
      if (report) seen[i]!.reports.push(report)
    }
  }
  const rows = beside.map(({ what }, i) => {
    const { latencies_ms, failed, reports } = seen[i]!
    const times = [0.5, 0.95, 0.99].map((part) => quantile(latencies_ms, part).toFixed(2))
    const rate = (of: (report: LoadReport) => number) =>
      (reports.reduce((sum, report) => sum + of(report), 0) / shares_rounds / shares_seconds).toFixed(0)
    const rates = [rate(({ accepted }) => accepted.count), rate(({ refused }) => refused.count)]
    return [what, ...times, String(failed), ...rates]
  })
  console.log(table(['the quiet tenant', 'p50 ms', 'p95', 'p99', 'failed', 'others/s', 'refused/s'], rows))
}

interface Beside {
  what: string
  clients: readonly Client[]
  /** Requests a second; infinite: as many as are answered. */
  offered: number
}

async function loadBeside({ clients, offered }: Beside, connections: number): Promise<LoadReport | null> {
  if (clients.length === 0) return Bun.sleep(shares_seconds * 1_000).then(() => null)
  const of_one = Number.isFinite(offered) ? connections : peak_connections * 4
  return load(clients, { connections: of_one, seconds: shares_seconds, per_second: offered })
}

interface Offered {
  connections: number
  seconds: number
  /** Absent: as many as are answered. */
  per_second?: number
}

async function load(clients: readonly Client[], { connections, seconds, per_second }: Offered) {
  const task: LoadTask = {
    port: Number(new URL(clients[0]!.url).port),
    ...{ connections, seconds },
    per_second: per_second !== undefined && Number.isFinite(per_second) ? per_second : null,
    keys: clients.map(({ agent_id, api_key }) => ({ agent_id, api_key })),
  }
  const program = [process.execPath, join(import.meta.dir, 'overload-load.ts'), JSON.stringify(task)]
  return JSON.parse(await output(['nice', '-n', '5', ...program], cores.load)) as LoadReport
}

function row({ accepted, refused, failed, unsent }: LoadReport, seconds: number): string[] {
  const rates = [accepted.count, refused.count, failed, unsent].map((count) => (count / seconds).toFixed(0))
  return [...rates, ...timesOf(accepted)]
}

function timesOf({ p50_ms, p99_ms }: Sent): string[] {
  return [p50_ms.toFixed(1), p99_ms.toFixed(1)]
}

/** Asks at an interval, however long the answers take. */
function probe(ask: (n: number) => Promise<unknown>, every_ms: number) {
  const latencies_ms: number[] = []
  const asked: Promise<void>[] = []
  let failed = 0
  const once = async (n: number) => {
    const began = performance.now()
    try {
      const answer = await ask(n)
      if (answer instanceof Response && answer.status !== 200) failed += 1
      if (answer instanceof Response) await answer.arrayBuffer()
      latencies_ms.push(performance.now() - began)
    } catch {
      failed += 1
    }
  }
  const timer = setInterval(() => asked.push(once(asked.length)), every_ms)
  return {
    async end() {
      clearInterval(timer)
      await Promise.all(asked)
      return { latencies_ms, failed }
    },
  }
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}
