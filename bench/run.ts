// `npm run bench`: what a request costs on each hot path, in multiples of nginx, and how fast the service starts.

import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type HotPath, hot_paths, hotPath } from './hot-path.ts'
import {
  connections,
  drive,
  type Figures,
  measured,
  type Target,
  undisturbed,
  warm_up_seconds,
  wrk_binary,
} from './load.ts'
import { nginx_binary, Yardstick } from './nginx.ts'
import { measurePeers } from './peers/run.ts'
import {
  command,
  cores,
  memoryMib,
  pinThisProcess,
  temporaryFolder,
  wholeNumber,
  withoutSignals,
} from './processes.ts'
import { Client, type Service, startService } from './service.ts'
import { median, spread, table } from './table.ts'

const usage = `Usage: npm run bench -- [options]

  --path <name>     only this hot path; may be given several times (${hot_paths.map(({ name }) => name).join(', ')})
  --rounds <n>      how often everything is measured; figures are medians (default: 3)
  --seconds <n>     length of a measured run (default: 8)
  --postgres        on PostgreSQL, started for this on the same machine, instead of SQLite
  --million         instead: memory after a million requests of kv-get, kv-put and audit-append in turn
  --peers           instead: beside other programs, with options of its own; --peers --help lists them
  --help            this text`

const root = join(import.meta.dir, '..')
const starts_count = 7
const rss_mib_max = 120
const ready_ms_max = 300
const million = 1_000_000
const turn_seconds = 5
/** With --postgres: where each row gets a database of its own. */
let databases: string | null = null

await command(async () => {
  if (process.argv.includes('--peers')) return measurePeers(process.argv.slice(2))
  const { values } = parseArgs({
    options: {
      path: { type: 'string', multiple: true },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '8' },
      postgres: { type: 'boolean', default: false },
      million: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const paths = values.path?.map(hotPath) ?? hot_paths
  const [rounds, seconds] = [values.rounds, values.seconds].map(wholeNumber) as [number, number]
  introduce(seconds)
  if (values.million) return aMillionRequests()
  if (values.postgres) return onPostgres(() => hotPaths(paths, rounds, seconds))
  await hotPaths(paths, rounds, seconds)
  await starts()
})

/** Its processes go where the system puts them: the service's core is not theirs alone, nor is the other. */
async function onPostgres(work: () => Promise<void>): Promise<void> {
  const { startCluster } = await postgresOfTests()
  const cluster = await startCluster()
  databases = cluster.base_url
  try {
    await work()
  } finally {
    await cluster.stop()
  }
}

function introduce(seconds: number): void {
  const commit = textOf(['git', '-C', root, 'rev-parse', '--short', 'HEAD']) || 'no git'
  const changed = textOf(['git', '-C', root, 'status', '--porcelain', '--', 'src', ':!*.test.ts'])
    ? ', src/ changed since'
    : ''
  const wrk = wrk_binary ? textOf([wrk_binary, '-v']).split(' ').slice(0, 2).join(' ') : 'no wrk'
  const nginx = nginx_binary ? textOf([nginx_binary, '-v']).replace(/.*\//, 'nginx ') : 'no nginx'
  console.log(`commit ${commit}${changed} · ${new Date().toISOString().slice(0, 10)}`)
  console.log(`${cpus().length} cores, ${cpus()[0]?.model.trim()} · Bun ${Bun.version} · ${nginx} · ${wrk}`)
  console.log(
    `server on core ${cores.server}, load on core ${cores.load}, ${connections} connections, ${warm_up_seconds} s warm-up, ${seconds} s measured`,
  )
  const warnings = pinThisProcess()
  if (!nginx_binary) warnings.push('nginx not found: no multiples')
  if (!wrk_binary) {
    warnings.push(
      'wrk not found: requests/s, p50 and p99 are limits of the generator in Bun, not of the service',
    )
  }
  for (const warning of warnings) console.log(`\n*** ${warning} ***`)
  console.log('')
}

/** The version that a program tells, wherever it prints it. */
function textOf(cmd: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(cmd)
  return `${stdout}${stderr}`.trim()
}

/** Each path gets a service and a database of its own, so that the order of the rows changes nothing. */
async function hotPaths(paths: readonly HotPath[], rounds: number, seconds: number): Promise<void> {
  if (nginx_binary) progress('nginx')
  const yardstick = nginx_binary ? await Yardstick.start() : null
  const results = paths.map((path) => ({ path, figures: [] as Figures[], multiples: [] as number[] }))
  for (let round = 1; round <= rounds; round++) {
    for (const { path, figures, multiples } of results) {
      progress(`round ${round} of ${rounds}: ${path.name}`)
      const one = await undisturbed(() => measurePath(path, seconds))
      figures.push(one)
      if (yardstick) multiples.push(one.cpu_micros / (await yardstick.cpuMicrosAround()))
    }
  }
  await yardstick?.stop()
  const rows = results.map(({ path, figures, multiples }) => {
    const target = path.nginx_multiple_max
    return row(path.name, figures, multiples, target === null ? '' : `≤ ${target} ×`)
  })
  if (yardstick) rows.unshift(row('nginx', yardstick.figures, [], ''))
  const head = [
    'path',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs',
    '× nginx',
    'target',
    'RSS MiB',
    'others %',
  ]
  console.log(`${table(head, rows)}\n`)
}

function row(name: string, figures: Figures[], multiples: number[], target: string): string[] {
  const of = (read: (one: Figures) => number, digits: number) => median(figures.map(read)).toFixed(digits)
  return [
    name,
    of((one) => one.requests_per_second, 0),
    of((one) => one.p50_ms, 2),
    of((one) => one.p99_ms, 2),
    spread(
      figures.map((one) => one.cpu_micros),
      1,
    ),
    multiples.length > 0 ? spread(multiples, 2) : '',
    target,
    of((one) => one.rss_mib, 0),
    of((one) => one.others * 100, 0),
  ]
}

async function measurePath(hot_path: HotPath, seconds: number): Promise<Figures> {
  const service = await startService(root, undefined, await newDatabase())
  const target = await targetOf(service, hot_path)
  const figures = await measured(target, seconds)
  await service.stop()
  return figures
}

function postgresOfTests() {
  return withoutSignals(() => import('../test/support/postgres.ts'))
}

async function newDatabase(): Promise<string | undefined> {
  if (!databases) return
  const name = `bench_${crypto.randomUUID().replaceAll('-', '')}`
  const { administer } = await postgresOfTests()
  await administer(databases, `create database ${name}`)
  return `${databases}/${name}`
}

async function targetOf(service: Service, hot_path: HotPath): Promise<Target> {
  const client = await Client.signUp(service.url, hot_path.plan)
  await hot_path.preload(client)
  return { ...service, path: { hot_path, client } }
}

/** From the start of the process to the first 200 of /readyz, on a database that holds something. */
async function starts(): Promise<void> {
  progress('start to ready')
  const { folder, remove } = temporaryFolder()
  const first = await startService(root, folder)
  await targetOf(first, hotPath('kv-put'))
  await first.stop()
  const ready_ms: number[] = []
  for (let i = 0; i < starts_count; i++) {
    const service = await startService(root, folder)
    ready_ms.push(service.ready_ms)
    await service.stop()
  }
  remove()
  console.log(`start to ready on an existing database: ${spread(ready_ms, 0)} ms (target ≤ ${ready_ms_max})`)
}

async function aMillionRequests(): Promise<void> {
  const service = await startService(root)
  const at_start = memoryMib(service.pid).now
  const targets: Target[] = []
  for (const name of ['kv-get', 'kv-put', 'audit-append'])
    targets.push(await targetOf(service, hotPath(name)))
  let requests = 0
  for (let turn = 0; requests < million; turn++) {
    requests += (await drive(targets[turn % targets.length]!, turn_seconds)).requests
    progress(`${requests} requests, ${memoryMib(service.pid).now.toFixed(0)} MiB`)
  }
  const { now, peak } = memoryMib(service.pid)
  await service.stop()
  console.log(
    `RSS after ${requests} requests: ${now.toFixed(0)} MiB (target ≤ ${rss_mib_max}), at the start ${at_start.toFixed(0)}, peak ${peak.toFixed(0)}`,
  )
}

function progress(text: string): void {
  console.error(`… ${text}`)
}
