// `bun bench/metrics.ts`: what metrics cost. A service that counts and is scraped and one that does neither run at the same time,
// in short turns, and their CPU per request is compared; then the CPU of a scrape alone.

import { parseArgs } from 'node:util'
import { startCluster } from '../test/support/postgres.ts'
import { root } from './checkout.ts'
import { type HotPath, hotPath } from './hot-path.ts'
import { drive, keptBy, requireKept, slice, type Target, warm_up_seconds } from './load.ts'
import { postgresMicros, postmasterOf } from './postgres-processes.ts'
import { command, cpuMicros, pinThisProcess, wholeNumber } from './processes.ts'
import { Client, freePort, type Service, startService } from './service.ts'
import { median, spread, table } from './table.ts'

const paired_max = 0.02
const core_max = 0.01
const usual_scrape_seconds = 15

const usage = `Usage: bun bench/metrics.ts [options]

  --path <name>     hot path; may be repeated (default: kv-get and kv-put)
  --rounds <n>      each with new processes and databases (default: 5)
  --seconds <n>     length of a turn; a round has eight, A B B A A B B A (default: 2)
  --every <n>       seconds between two scrapes under load, one at the begin of each turn (default: 1)
  --scrapes <n>     scrapes that are measured alone (default: 200)
  --engine <name>   only sqlite, or only postgres
  --help            this text

Exits with 1 when metrics cost more than ${percent(paired_max)} of a request, or a scrape every ${usual_scrape_seconds} s more than ${percent(core_max)} of a core.`

/** Its own mirror image, so that a machine that grows slower or faster favours neither side. */
const turns = ['plain', 'counted', 'counted', 'plain', 'plain', 'counted', 'counted', 'plain'] as const

interface Options {
  paths: readonly HotPath[]
  rounds: number
  seconds: number
  every_ms: number
  scrapes: number
}

/** A place for databases, and what they cost beside the service. */
interface Engine {
  name: string
  newUrl(): Promise<string | undefined>
  databaseMicros(): number
}

await command(async () => {
  const { values } = parseArgs({
    options: {
      path: { type: 'string', multiple: true, default: ['kv-get', 'kv-put'] },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      every: { type: 'string', default: '1' },
      scrapes: { type: 'string', default: '200' },
      engine: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const options: Options = {
    paths: values.path.map(hotPath),
    rounds: wholeNumber(values.rounds),
    seconds: wholeNumber(values.seconds),
    every_ms: wholeNumber(values.every) * 1_000,
    scrapes: wholeNumber(values.scrapes),
  }
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  const met: boolean[] = []
  if (values.engine !== 'postgres') met.push(await onSqlite(options))
  if (values.engine !== 'sqlite') met.push(await onPostgres(options))
  if (met.includes(false)) process.exitCode = 1
})

function onSqlite(options: Options): Promise<boolean> {
  return measured({ name: 'SQLite', newUrl: async () => undefined, databaseMicros: () => 0 }, options)
}

async function onPostgres(options: Options): Promise<boolean> {
  const cluster = await startCluster()
  try {
    const postmaster = postmasterOf(cluster.data_dir)
    let made = 0
    const newUrl = async () => {
      const name = `metrics_${++made}`
      const sql = new Bun.SQL(`${cluster.base_url}/postgres`)
      await sql.unsafe(`create database ${name}`)
      await sql.close()
      return `${cluster.base_url}/${name}`
    }
    return await measured(
      { name: 'PostgreSQL', newUrl, databaseMicros: () => postgresMicros(postmaster) },
      options,
    )
  } finally {
    await cluster.stop()
  }
}

async function measured(engine: Engine, options: Options): Promise<boolean> {
  const rows: string[][] = []
  const met: boolean[] = []
  for (const path of options.paths) {
    const plain: number[] = []
    const counted: number[] = []
    for (let round = 0; round < options.rounds; round++) {
      const cpu_micros = await oneRound(engine, path, options)
      plain.push(cpu_micros.plain)
      counted.push(cpu_micros.counted)
    }
    const ratios = counted.map((micros, i) => micros / plain[i]!)
    const is_met = median(ratios) <= 1 + paired_max
    met.push(is_met)
    rows.push([
      path.name,
      spread(plain, 1),
      spread(counted, 1),
      spread(ratios, 3),
      is_met ? 'met' : 'not met',
    ])
  }
  console.log(`${engine.name}, scraped every ${options.every_ms / 1_000} s under load\n`)
  console.log(
    table(['path', 'CPU µs without', 'CPU µs with', 'ratio', `at most ${percent(paired_max)} more`], rows),
  )
  const scrape_micros = await scrapeAlone(engine, options.scrapes)
  const share = scrape_micros / (usual_scrape_seconds * 1_000_000)
  met.push(share < core_max)
  console.log(
    `\na scrape: ${scrape_micros.toFixed(0)} µs CPU of service and database; every ${usual_scrape_seconds} s ` +
      `${percent(share, 3)} of a core, every second ${percent(share * usual_scrape_seconds, 2)}\n`,
  )
  return met.every((one) => one)
}

/** CPU per request, microseconds. Both run all the while; one is asked, the other waits. */
async function oneRound(engine: Engine, path: HotPath, { seconds, every_ms }: Options) {
  const sides = { plain: await begin(engine, path, false), counted: await begin(engine, path, true) }
  const cpu_micros = { plain: 0, counted: 0 }
  for (const turn of turns) {
    const side = sides[turn]
    const endScrapes = side.metrics_url === null ? async () => {} : scraping(side.metrics_url, every_ms)
    const figures = await slice(side.target, seconds)
    await endScrapes()
    side.acknowledged += figures.requests
    cpu_micros[turn] += figures.cpu_micros / (turns.length / 2)
  }
  for (const side of Object.values(sides)) {
    await requireKept(side.target, side.acknowledged)
    await side.service.stop()
  }
  return cpu_micros
}

interface Side {
  service: Service
  target: Target
  /** Writes that the service must have kept. */
  acknowledged: number
  metrics_url: string | null
}

async function begin(engine: Engine, hot_path: HotPath, counts: boolean): Promise<Side> {
  const { service, metrics_url } = await started(engine, counts)
  const client = await Client.signUp(service.url, hot_path.plan)
  await hot_path.preload(client)
  const target: Target = { ...service, path: { hot_path, client } }
  if (metrics_url !== null) await firstScrapes(metrics_url)
  const kept = await keptBy(target)
  const acknowledged = kept + (await drive(target, warm_up_seconds)).requests
  return { service, target, acknowledged, metrics_url }
}

async function started(engine: Engine, counts: boolean) {
  const address = `127.0.0.1:${freePort()}`
  const settings: Record<string, string> = counts ? { METRICS: address } : {}
  const service = await startService(root, undefined, await engine.newUrl(), settings)
  return { service, metrics_url: counts ? `http://${address}/metrics` : null }
}

/** Scrapes until the answer is called. */
function scraping(url: string, every_ms: number): () => Promise<void> {
  const ended = new AbortController()
  const scrapes = (async () => {
    while (!ended.signal.aborted) {
      const pause = Bun.sleep(every_ms)
      await scrape(url)
      await Promise.race([pause, aborted(ended.signal)])
    }
  })()
  return () => {
    ended.abort()
    return scrapes
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

async function scrape(url: string): Promise<void> {
  const answer = await fetch(url)
  const text = await answer.text()
  if (!text.includes('\nwaystation_ready 1\n')) throw new Error(`no metrics: ${answer.status} ${text}`)
}

/** The first one loads a library, and some more are slower than the rest. */
async function firstScrapes(url: string): Promise<void> {
  for (let i = 0; i < 20; i++) await scrape(url)
}

/** CPU of one, microseconds, of a service that has been asked for every status of a few routes. */
async function scrapeAlone(engine: Engine, scrapes: number): Promise<number> {
  const { service, metrics_url } = await started(engine, true)
  const client = await Client.signUp(service.url)
  for (const path of ['kv-get', 'kv-put', 'audit-append', 'rate-check'].map(hotPath)) {
    await path.preload(client)
    await client.send(path.request(0, 'probe'))
  }
  const used = () => cpuMicros(service.pid) + engine.databaseMicros()
  await firstScrapes(metrics_url!)
  const [before, began] = [used(), performance.now()]
  for (let i = 0; i < scrapes; i++) await scrape(metrics_url!)
  const [after, took_ms] = [used(), performance.now() - began]
  await Bun.sleep(took_ms)
  const idle = used() - after
  await service.stop()
  return Math.max(0, after - before - idle) / scrapes
}

function percent(share: number, digits = 0): string {
  return `${(share * 100).toFixed(digits)} %`
}
