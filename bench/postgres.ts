// `bun bench/postgres.ts [<git-rev>]`: what a write costs on PostgreSQL, in CPU of the node and of the database together,
// and how many a second one tenant gets from a database at a distance. With a revision, beside that revision in turns.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SQL } from 'bun'
import { administer, type Cluster, startCluster } from '../test/support/postgres.ts'
import { checkOut, root } from './checkout.ts'
import { type HotPath, hotPath } from './hot-path.ts'
import { connections, drive, keptBy, requireKept, type Target, warm_up_seconds } from './load.ts'
import { page_file, pageText } from './peers/page.ts'
import { keptResult } from './peers/result.ts'
import {
  cpuOf,
  inParts,
  type PostgresResult,
  type PostgresRow,
  type PostgresTurn,
  postgres_result_file,
} from './postgres-page.ts'
import { postgresMicros, postmasterOf } from './postgres-processes.ts'
import { command, cores, cpuMicros, end, start, wholeNumber } from './processes.ts'
import { Client, type Service, startService } from './service.ts'
import { median, table } from './table.ts'

const usage = `Usage: bun bench/postgres.ts [<git-rev>] [options]

  --path <name>      only this hot path; may be given several times (default: ${['kv-put', 'kv-put-new', 'audit-append', 'rate-check', 'rate-check-hot', 'hook'].join(', ')})
  --distance <ms>    how long what is sent to the database is under way, each way (default: 0 and 1)
  --rounds <n>       each with new processes and databases (default: 2)
  --seconds <n>      length of a turn; each side has two in a round (default: 3)
  --row-security     beside the same tree with ROW_LEVEL_SECURITY=off, instead of a revision; both by a login that owns
                     its tables and is not a superuser, as rights cost a superuser nothing
  --write            also writes the figures to docs/performance.md
  --help             this text`

const table_owner = { login: 'bench_owner', password: 'of the benchmark' }
const paths_default = ['kv-put', 'kv-put-new', 'audit-append', 'rate-check', 'rate-check-hot', 'hook']
const turns = ['before', 'now', 'now', 'before'] as const

type Sides = Partial<Record<(typeof turns)[number], PostgresTurn[]>>

await command(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      path: { type: 'string', multiple: true, default: paths_default },
      distance: { type: 'string', multiple: true, default: ['0', '1'] },
      rounds: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '3' },
      'row-security': { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const { before, now } = sidesOf(positionals[0], values)
  const cluster = await startCluster()
  if (now.row_security) await loginOfOwner(cluster)
  const rows: PostgresRow[] = []
  try {
    for (const distance of values.distance.map(Number)) {
      for (const path of values.path.map(hotPath)) {
        rows.push(
          await measure(
            { cluster, before, now },
            path,
            distance,
            [values.rounds, values.seconds].map(wholeNumber),
          ),
        )
      }
    }
  } finally {
    await cluster.stop()
  }
  console.log(`commit ${revision('HEAD').slice(0, 7)} · ${connections} connections`)
  console.log(printed(rows))
  if (!values.write) return
  const result: PostgresResult = {
    commit: revision('HEAD'),
    before: positionals[0] === undefined ? '' : revision(positionals[0]),
    date: new Date().toISOString().slice(0, 10),
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    rows,
  }
  writeFileSync(postgres_result_file, `${JSON.stringify(result, null, 2)}\n`)
  const peers = keptResult()
  if (peers) writeFileSync(page_file, pageText(peers))
})

interface Given {
  cluster: Cluster
  now: Checkout
  before: Checkout | null
}

interface Checkout {
  checkout: string
  /** When set, the login owns its tables and is not a superuser. */
  row_security?: 'required' | 'off'
}

function sidesOf(
  revision: string | undefined,
  given: { 'row-security': boolean; write: boolean },
): Pick<Given, 'before' | 'now'> {
  if (!given['row-security'])
    return {
      before: revision === undefined ? null : { checkout: checkOut(revision).folder },
      now: { checkout: root },
    }
  if (revision !== undefined || given.write)
    throw new Error('--row-security compares this tree with itself: without a revision, and without --write')
  return {
    before: { checkout: root, row_security: 'off' },
    now: { checkout: root, row_security: 'required' },
  }
}

/** Prepared as docs/row-level-security.md says for one login. */
async function loginOfOwner({ base_url }: Cluster): Promise<void> {
  await administer(base_url, 'create role waystation_app nologin')
  await administer(base_url, `create role ${table_owner.login} login password '${table_owner.password}'`)
  await administer(base_url, `grant waystation_app to ${table_owner.login}`)
}

async function measure(
  given: Given,
  path: HotPath,
  distance_ms: number,
  [rounds, seconds]: number[],
): Promise<PostgresRow> {
  const sides: Sides = {}
  const round_trips: number[] = []
  for (let round = 1; round <= rounds!; round++) {
    console.error(`… ${path.name}, ${distance_ms} ms away, round ${round} of ${rounds}`)
    round_trips.push(await oneRound(given, path, distance_ms, seconds!, sides))
  }
  const round_trip_ms = median(round_trips)
  return {
    path: path.name,
    distance_ms,
    round_trip_ms,
    before: middle(sides.before),
    now: middle(sides.now)!,
  }
}

/** Returns the round trip to the database. */
async function oneRound(
  { cluster, now, before }: Given,
  path: HotPath,
  distance_ms: number,
  seconds: number,
  sides: Sides,
): Promise<number> {
  const far = await atDistance(cluster.base_url, distance_ms)
  const running: Partial<Record<(typeof turns)[number], Side>> = {
    now: await begin(now, path, cluster, far.url),
  }
  if (before) running.before = await begin(before, path, cluster, far.url)
  const round_trip_ms = await roundTrip(far.url)
  for (const turn of turns) {
    const side = running[turn]
    if (!side) continue
    const figures = await oneTurn(side, cluster, seconds)
    sides[turn] ??= []
    sides[turn].push(figures)
  }
  for (const side of Object.values(running)) {
    await requireKept(side.target, side.acknowledged)
    await side.service.stop()
  }
  await far.stop()
  return round_trip_ms
}

interface Side {
  service: Service
  target: Target
  acknowledged: number
}

async function begin(
  { checkout, row_security }: Checkout,
  path: HotPath,
  cluster: Cluster,
  base_url: string,
): Promise<Side> {
  const name = `bench_${crypto.randomUUID().replaceAll('-', '')}`
  const owner = row_security ? `owner ${table_owner.login}` : ''
  await administer(cluster.base_url, `create database ${name} ${owner}`)
  const url = new URL(`${base_url}/${name}`)
  if (row_security) Object.assign(url, { username: table_owner.login, password: table_owner.password })
  const env = row_security ? { ROW_LEVEL_SECURITY: row_security } : {}
  const service = await startService(checkout, undefined, url.href, env)
  const client = await Client.signUp(service.url, path.plan)
  await path.preload(client)
  const target: Target = { ...service, path: { hot_path: path, client } }
  const kept = await keptBy(target)
  return { service, target, acknowledged: kept + (await drive(target, warm_up_seconds)).requests }
}

async function oneTurn(side: Side, cluster: Cluster, seconds: number): Promise<PostgresTurn> {
  const [node, database] = [cpuMicros(side.service.pid), postgresMicros(postmasterOf(cluster.data_dir))]
  const load = await drive(side.target, seconds)
  side.acknowledged += load.requests
  return {
    requests_per_second: load.requests_per_second,
    p50_ms: load.p50_ms,
    p99_ms: load.p99_ms,
    node_cpu_micros: (cpuMicros(side.service.pid) - node) / load.requests,
    database_cpu_micros: (postgresMicros(postmasterOf(cluster.data_dir)) - database) / load.requests,
  }
}

/** A server URL by way of the proxy; at no distance the one that was given. */
async function atDistance(base_url: string, ms: number): Promise<{ url: string; stop(): Promise<void> }> {
  if (ms === 0) return { url: base_url, stop: async () => {} }
  const url = new URL(base_url)
  const proxy = start([process.execPath, join(import.meta.dir, 'delay-proxy.ts'), url.port, String(ms)], {
    core: cores.load,
  })
  const reader = proxy.stdout.getReader()
  const { value } = await reader.read()
  url.port = new TextDecoder().decode(value).trim()
  return { url: url.href.replace(/\/$/, ''), stop: () => end(proxy) }
}

async function roundTrip(base_url: string): Promise<number> {
  const connection = new SQL({ url: `${base_url}/postgres`, max: 1 })
  const times: number[] = []
  for (let i = 0; i < 21; i++) {
    const began = performance.now()
    await connection.unsafe('select 1')
    times.push(performance.now() - began)
  }
  await connection.close()
  return median(times)
}

function middle(of_turns: PostgresTurn[] | undefined): PostgresTurn | null {
  if (!of_turns) return null
  const names = Object.keys(of_turns[0]!) as (keyof PostgresTurn)[]
  return Object.fromEntries(
    names.map((name) => [name, median(of_turns.map((one) => one[name]))]),
  ) as unknown as PostgresTurn
}

function printed(rows: readonly PostgresRow[]): string {
  const head = [
    'path',
    'ms away',
    'round trip ms',
    'requests/s',
    'before',
    'p50 ms',
    'p99 ms',
    'CPU µs node + database',
    'before',
    'ratio',
  ]
  const lines = rows.map(({ path, distance_ms, round_trip_ms, now, before }) => [
    path,
    String(distance_ms),
    round_trip_ms.toFixed(1),
    now.requests_per_second.toFixed(0),
    before?.requests_per_second.toFixed(0) ?? '',
    now.p50_ms.toFixed(1),
    now.p99_ms.toFixed(1),
    inParts(now),
    before ? inParts(before) : '',
    before ? (cpuOf(now) / cpuOf(before)).toFixed(2) : '',
  ])
  return table(head, lines)
}

function textOf(cmd: string[]): string {
  return Bun.spawnSync(cmd).stdout.toString().trim()
}

function revision(name: string): string {
  return textOf(['git', '-C', root, 'rev-parse', name])
}
