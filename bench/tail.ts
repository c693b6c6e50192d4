// `bun bench/tail.ts`: the slowest requests of two nodes on one PostgreSQL, and what the machine, the nodes and the
// database did meanwhile. Two nodes, one load; every request above a bound is kept.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SQL } from 'bun'
import { administer, startCluster } from '../test/support/postgres.ts'
import { keys_count, pathOfKey, putAllKeys } from './kv-put.ts'
import { command, temporaryFolder, undoLater, wholeNumber } from './processes.ts'
import { Client, type Service, startService } from './service.ts'
import { table } from './table.ts'

const usage = `Usage: bun bench/tail.ts [options]

Reads random keys through two nodes on one PostgreSQL, over connections that stay open, and keeps every slow request
with what the load, the nodes and the database did at that time.

  --runs <n>         each over new connections (default: 5)
  --seconds <n>      length of a run (default: 30)
  --slow-ms <n>      requests that are kept (default: 100)
  --connections <n>  to each node (default: 32)
  --help             this text`

const root = join(import.meta.dir, '..')
const look_ms = 50
const backend = 'backend'
/** Of one run, the longest first. */
const shown_max = 8

interface Slow {
  node: number
  /** Milliseconds since the epoch. */
  from: number
  took_ms: number
  /** The number of the request on its connection: 0 is the first. */
  nth: number
}

type Probed = Service & { probe: string }

/** One look at a process, by time: how long it ran and waited since the look before, and how late its event loop was. */
interface Look {
  at: number
  who: string
  ran_ms: number
  waited_ms: number
  late_ms: number
}

await command(async () => {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '30' },
      'slow-ms': { type: 'string', default: '100' },
      connections: { type: 'string', default: '32' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const [runs, seconds, slow_ms, connections] = [
    values.runs,
    values.seconds,
    values['slow-ms'],
    values.connections,
  ].map(wholeNumber) as [number, number, number, number]
  const { folder, remove } = temporaryFolder()
  const logged: string[] = []
  const flags = [
    '-c',
    'log_line_prefix=%m ',
    '-c',
    'log_checkpoints=on',
    '-c',
    `log_min_duration_statement=${slow_ms}`,
  ]
  const cluster = await startCluster({ flags, onLog: (text) => logged.push(...text.split('\n')) })
  undoLater(() => void cluster.stop())
  await administer(cluster.base_url, 'create database tail')
  const nodes = await startNodes(folder, `${cluster.base_url}/tail`)
  const client = await Client.signUp(nodes[0]!.url)
  await putAllKeys(client)
  const backends = await backendsOf(`${cluster.base_url}/tail`)
  const rows: string[][] = []
  for (let run = 1; run <= runs; run++) {
    const { requests, slow, most_ms, failed, seen } = await oneRun(nodes, backends, client, {
      seconds,
      slow_ms,
      connections,
    })
    rows.push([
      String(run),
      (requests / seconds).toFixed(0),
      String(slow.length),
      most_ms.toFixed(0),
      String(failed),
    ])
    const worst = episodes(slow).toSorted((x, y) => longest(y) - longest(x))
    for (const episode of worst.slice(0, shown_max)) console.log(explained(run, episode, seen))
  }
  const notable = logged.filter((line) => /duration:|checkpoint (starting|complete)/.test(line))
  for (const line of notable) console.log(`database ${line.slice('2026-01-01 '.length, 160)}`)
  console.log(`\n${table(['run', 'requests/s', `above ${slow_ms} ms`, 'most, ms', 'failed'], rows)}`)
  await Promise.all(nodes.map((node) => node.stop()))
  await cluster.stop()
  remove()
})

async function startNodes(folder: string, database_url: string): Promise<Probed[]> {
  const preload = join(root, 'bench/tail-probe.ts')
  const nodes = []
  for (const name of ['a', 'b']) {
    const probe = join(folder, `probe-${name}`)
    writeFileSync(probe, '')
    const settings = { TAIL_PROBE: probe, BUN_OPTIONS: `--preload=${preload}` }
    const node = await startService(root, folder, database_url, settings)
    onAnyCore(node.pid)
    nodes.push({ ...node, probe })
  }
  return nodes
}

async function backendsOf(database_url: string): Promise<number[]> {
  const sql = new SQL({ url: database_url, max: 1 })
  const rows: { pid: number }[] = await sql`select pid from pg_stat_activity
    where datname = current_database() and application_name = 'waystation'`
  await sql.close()
  return rows.map(({ pid }) => pid)
}

/** The nodes, the database and the load share the cores as the system has it. */
function onAnyCore(pid: number): void {
  Bun.spawnSync(['taskset', '-a', '-c', '-p', `0-${cpus().length - 1}`, String(pid)])
}

interface Load {
  seconds: number
  slow_ms: number
  connections: number
}

async function oneRun(nodes: Probed[], backends: readonly number[], client: Client, load: Load) {
  const watch = new Watch(nodes, backends)
  const tally = { requests: 0, failed: 0, most_ms: 0, slow: [] as Slow[] }
  const until = performance.now() + load.seconds * 1_000
  const loops = nodes.flatMap(({ url }, node) =>
    Array.from({ length: load.connections }, () =>
      connection(url, client, until, (took_ms, nth, ok) => {
        tally.requests += 1
        if (!ok) tally.failed += 1
        tally.most_ms = Math.max(tally.most_ms, took_ms)
        if (took_ms >= load.slow_ms) tally.slow.push({ node, from: Date.now() - took_ms, took_ms, nth })
      }),
    ),
  )
  await Promise.all(loops)
  return { ...tally, seen: watch.stop() }
}

/** One connection that sends a request when the one before was answered. */
function connection(
  url: string,
  { agent_id, api_key }: Client,
  until: number,
  onAnswer: (took_ms: number, nth: number, ok: boolean) => void,
): Promise<void> {
  const { hostname, port, host } = new URL(url)
  return new Promise((resolve, reject) => {
    let sent = performance.now() // the first one includes the connection
    let nth = 0
    let text = ''
    const socket: Socket = connect(Number(port), hostname, send)
    socket.setNoDelay(true)
    socket.on('error', reject)
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < head + 4 + length) return
      const now = performance.now()
      onAnswer(now - sent, nth++, text.startsWith('HTTP/1.1 200'))
      text = ''
      if (now >= until) {
        socket.destroy()
        return resolve()
      }
      sent = now
      send()
    })
    function send(): void {
      const path = pathOfKey(Math.floor(Math.random() * keys_count))
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nx-agent-id: ${agent_id}\r\nx-api-key: ${api_key}\r\n\r\n`,
      )
    }
  })
}

/** Looks at the load and the nodes while a run lasts. */
class Watch {
  readonly #looks: Look[] = []
  readonly #nodes: Probed[]
  readonly #before = new Map<string, [ran_ms: number, waited_ms: number]>()
  readonly #timer: Timer

  /** `backends`: the processes of the database that serve the nodes. */
  constructor(
    nodes: Probed[],
    private readonly backends: readonly number[],
  ) {
    this.#nodes = nodes
    for (const { probe } of nodes) writeFileSync(probe, '')
    this.#timer = setInterval(() => this.#look(), look_ms)
  }

  #look(): void {
    for (const [i, { pid }] of this.#nodes.entries()) this.#threads(`node ${'ab'[i]}`, pid)
    this.#threads('load', process.pid)
    for (const pid of this.backends) this.#threads(`${backend} ${pid}`, pid)
  }

  /** proc(5), /proc/[pid]/schedstat: nanoseconds that the main thread ran, and that it was ready to run and had no core. */
  #threads(who: string, pid: number): void {
    const file = `/proc/${pid}/task/${pid}/schedstat`
    if (!existsSync(file)) return
    const [ran_ms, waited_ms] = readFileSync(file, 'utf8')
      .split(' ')
      .map((ns) => Number(ns) / 1e6) as [number, number]
    const [ran_before, waited_before] = this.#before.get(who) ?? [ran_ms, waited_ms]
    this.#before.set(who, [ran_ms, waited_ms])
    this.#looks.push({
      at: Date.now(),
      who,
      ran_ms: ran_ms - ran_before,
      waited_ms: waited_ms - waited_before,
      late_ms: 0,
    })
  }

  stop(): Look[] {
    clearInterval(this.#timer)
    const late = this.#nodes.flatMap(({ probe }, i) =>
      readFileSync(probe, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { until: number; late_ms: number })
        .map(({ until, late_ms }) => ({
          at: until,
          who: `node ${'ab'[i]}`,
          ran_ms: 0,
          waited_ms: 0,
          late_ms,
        })),
    )
    return [...this.#looks, ...late]
  }
}

function longest(episode: Slow[]): number {
  return Math.max(...episode.map(({ took_ms }) => took_ms))
}

/** Slow requests that overlap in time. */
function episodes(slow: Slow[]): Slow[][] {
  const found: Slow[][] = []
  let until = Number.NEGATIVE_INFINITY
  for (const one of slow.toSorted((a, b) => a.from - b.from)) {
    if (one.from > until) found.push([])
    found.at(-1)!.push(one)
    until = Math.max(until, one.from + one.took_ms)
  }
  return found
}

function explained(run: number, episode: Slow[], looks: Look[]): string {
  const from = Math.min(...episode.map((one) => one.from))
  const until = Math.max(...episode.map((one) => one.from + one.took_ms))
  const firsts = episode.filter(({ nth }) => nth === 0).length
  const of_nodes = [0, 1].map(
    (node) => `${episode.filter((one) => one.node === node).length} at ${'ab'[node]}`,
  )
  const meanwhile = Map.groupBy(
    looks.filter(({ at }) => at >= from && at <= until + look_ms),
    ({ who }) => who,
  )
  const waits = looks.filter(({ who, at }) => who.startsWith(backend) && at >= from && at <= until + look_ms)
  const backend_waited = Math.max(0, ...waits.map(({ waited_ms }) => waited_ms))
  const mains = [...meanwhile].filter(([who]) => !who.startsWith(backend))
  const did = mains.map(([who, its]) => {
    const sum = (of: (look: Look) => number) => its.reduce((all, look) => all + of(look), 0).toFixed(0)
    const late = Math.max(...its.map(({ late_ms }) => late_ms))
    return `${who} ran ${sum(({ ran_ms }) => ran_ms)} and waited ${sum(({ waited_ms }) => waited_ms)} ms for a core${late > 0 ? `, its event loop ${late} ms late` : ''}`
  })
  const at = new Date(from).toISOString().slice(11, 23)
  return (
    `run ${run} ${at} for ${(until - from).toFixed(0)} ms: ${of_nodes.join(', ')}, ${firsts} first of their connection, ` +
    `most ${longest(episode).toFixed(0)} ms; ${did.join('; ')}; a backend waited ${backend_waited.toFixed(0)} ms at once`
  )
}
