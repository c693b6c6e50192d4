// `bun bench/schedules.ts`: how late schedules are fired by one node on one core, SQLite on disk, each a real signed
// POST to a receiver on the other core.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Child,
  command,
  coreMicros,
  cores,
  cpuMicros,
  end,
  memoryMib,
  pinThisProcess,
  start,
  temporaryFolder,
  wholeNumber,
} from './processes.ts'
import type { Figures } from './receiver.ts'
import { spread, table } from './table.ts'

const usage = `Usage: bun bench/schedules.ts [options]

  --part <name>     only this part; may be given several times (burst, trickle, million, dead)
  --rounds <n>      how often each part is measured; figures are medians (default: 3)
  --root <folder>   measure the service of another checkout
  --profile <dir>   leave a CPU profile of the service in this folder, one for each of its starts
  --help            this text`

const parts = { burst, trickle, million, dead, backlog }
type Part = keyof typeof parts

const burst_count = 10_000
const trickle_a_second = 200
const trickle_seconds = 20
const million_count = 1_000_000
const million_tenants = 100
const idle_seconds = 10
const dead_destinations = 200
const dead_schedules_each = 5
const healthy_destinations = 50
const healthy_seconds = 10
const backlog_count = 50_000
const other_count = 100
const clients = 64
const second_ms = 1_000

const rows: string[][] = []
let root = join(import.meta.dir, '..')
let profile_folder: string | undefined
/** Medians of the parts so far, for those that are told in multiples. */
const bursts: number[] = []

await command(async () => {
  const { values } = parseArgs({
    options: {
      part: { type: 'string', multiple: true },
      rounds: { type: 'string', default: '3' },
      root: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const chosen = (values.part ?? Object.keys(parts)) as Part[]
  const unknown = chosen.find((name) => !Object.hasOwn(parts, name))
  if (unknown) throw new Error(`there is no part ${unknown}: ${Object.keys(parts).join(', ')}`)
  root = values.root ?? root
  profile_folder = values.profile
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  console.log(`Bun ${Bun.version}, service on core ${cores.server}, receiver and load on core ${cores.load}`)
  for (const part of chosen) await parts[part](wholeNumber(values.rounds))
  console.log(`\n${table(['part', 'figure', 'median (least..most)', 'target'], rows)}`)
})

async function burst(rounds: number): Promise<void> {
  for (const destinations of [1, 16]) {
    const [first, next]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      const setup = await startAll()
      // In the first four seconds of a process a quarter of the core compiles its code.
      for (const took of [first, next]) {
        await setup.receiver.forget()
        took.push(await measureBurst(setup, destinations))
      }
      await setup.stop()
    }
    if (destinations === 1) bursts.push(...first)
    const what = `${burst_count} due at once, ${destinations} destination(s), s`
    report('burst', `${what}, just started`, first, 2, '≤ 3.4')
    report('burst', `${what}, once more`, next, 2, '≤ 3.4')
  }
}

/** Seconds from the due time to the arrival of the last POST. */
async function measureBurst(setup: Setup, destinations: number): Promise<number> {
  const { receiver, service } = setup
  const at = secondFromNow(12)
  await setup.schedule(burst_count, (i) => ({ url: receiver.url(1 + (i % destinations)), at }))
  if (Date.now() > at) throw new Error('the machine is too slow: it was due before all were created')
  await until(at)
  const core_before = coreMicros(cores.server)
  const cpu_before = cpuMicros(service.pid)
  const figures = await receiver.received(burst_count, 60)
  const seconds = (figures.last_at - at) / 1_000
  const cpu = (cpuMicros(service.pid) - cpu_before) / 1e6
  const others = (coreMicros(cores.server) - core_before) / 1e6 - cpu
  note(
    `burst, ${destinations} destination(s): ${seconds.toFixed(2)} s, CPU ${cpu.toFixed(2)} s, others ${others.toFixed(2)} s, ` +
      `${memoryMib(service.pid).peak.toFixed(0)} MiB at most, ${lostAndTwice(figures, burst_count)}`,
  )
  return seconds
}

async function trickle(rounds: number): Promise<void> {
  const [p50, p99]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const setup = await startAll()
    const count = trickle_a_second * trickle_seconds
    const from = secondFromNow(8)
    const at = (i: number) => from + Math.floor((i * second_ms) / trickle_a_second)
    await setup.schedule(count, (i) => ({ url: setup.receiver.url(1), at: at(i) }))
    await until(at(count))
    const figures = await setup.receiver.received(count, 30)
    p50.push(percentile(figures.lateness_ms, 50))
    p99.push(percentile(figures.lateness_ms, 99))
    note(
      `trickle: p50 ${p50.at(-1)!.toFixed(1)} ms, p99 ${p99.at(-1)!.toFixed(1)} ms, ${lostAndTwice(figures, count)}`,
    )
    await setup.stop()
  }
  report('trickle', `${trickle_a_second}/s for ${trickle_seconds} s: lateness p50, ms`, p50, 1, '')
  report('trickle', `${trickle_a_second}/s for ${trickle_seconds} s: lateness p99, ms`, p99, 1, '≤ 250')
}

async function million(rounds: number): Promise<void> {
  const { folder, remove } = temporaryFolder()
  const empty = await startAll(folder)
  await empty.stop()
  note(`inserting ${million_count} schedules`)
  insertFarFuture(join(folder, 'waystation.db'))
  const took: number[] = []
  const idle: number[] = []
  for (let round = 0; round < rounds; round++) {
    const setup = await startAll(folder)
    await Bun.sleep(3 * second_ms)
    const before = cpuMicros(setup.service.pid)
    await Bun.sleep(idle_seconds * second_ms)
    idle.push((cpuMicros(setup.service.pid) - before) / 1e4 / idle_seconds)
    note(`idle: ${idle.at(-1)!.toFixed(2)} % of a core`)
    took.push(await measureBurst(setup, 1))
    await setup.stop()
  }
  remove()
  report('million', `idle with ${million_count} pending, % of a core`, idle, 2, '< 1')
  const alone = bursts.length > 0 ? bursts.toSorted((a, b) => a - b)[bursts.length >> 1]! : null
  const target = alone === null ? '≤ 1.2 × burst' : `≤ ${(1.2 * alone).toFixed(2)}`
  report('million', `${burst_count} due at once on top of them, 1 destination, s`, took, 2, target)
}

async function dead(rounds: number): Promise<void> {
  const p95: number[] = []
  for (let round = 0; round < rounds; round++) {
    const setup = await startAll()
    const { receiver } = setup
    const at = secondFromNow(6)
    const dead_count = dead_destinations * dead_schedules_each
    const healthy_count = healthy_destinations * healthy_seconds
    await setup.schedule(dead_count, (i) => ({ url: receiver.silentUrl(i % dead_destinations), at }))
    await setup.schedule(healthy_count, (i) => ({
      url: receiver.url(1 + (i % healthy_destinations)),
      at: at + Math.floor(i / healthy_destinations) * second_ms,
    }))
    await until(at + healthy_seconds * second_ms)
    const figures = await receiver.received(healthy_count, 60)
    p95.push(percentile(figures.lateness_ms, 95))
    const most = Math.max(...figures.lateness_ms)
    note(
      `dead: healthy p95 ${p95.at(-1)!.toFixed(0)} ms, most ${most.toFixed(0)} ms, ${lostAndTwice(figures, healthy_count)}`,
    )
    await setup.stop()
  }
  const what = `${dead_destinations} silent and ${healthy_destinations} healthy destinations: healthy p95, ms`
  report('dead', what, p95, 0, '≤ 1000')
}

/** Half of the backlog is for one quick receiver, half for silent ones. */
async function backlog(rounds: number): Promise<void> {
  const most: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { folder, remove } = temporaryFolder()
    const empty = await startAll(folder)
    await empty.stop()
    const quick = await startReceiver()
    const urlOf = (i: number) => (i % 2 === 0 ? quick.url(1) : quick.silentUrl((i >> 1) % dead_destinations))
    insertBacklog(join(folder, 'waystation.db'), urlOf)
    const setup = await startAll(folder)
    const from = secondFromNow(2)
    const at = (i: number) => from + i * 50
    await setup.schedule(other_count, (i) => ({ url: setup.receiver.url(1), at: at(i) }))
    await until(at(other_count))
    const figures = await setup.receiver.received(other_count, 30)
    const served = (await quick.received(0, 0)).received
    most.push(Math.max(...figures.lateness_ms))
    note(
      `backlog: p95 ${percentile(figures.lateness_ms, 95).toFixed(0)} ms, most ${most.at(-1)!.toFixed(0)} ms, ` +
        `${lostAndTwice(figures, other_count)}; of the backlog ${served} were delivered meanwhile`,
    )
    await setup.stop()
    await end(quick.child)
    remove()
  }
  const what = `another tenant beside ${backlog_count} due of one: most, ms`
  report('backlog', what, most, 0, '≤ 1000')
}

/** Due schedules of the tenant that is there, as the service would have left them. */
function insertBacklog(path: string, urlOf: (i: number) => string): void {
  const db = new Database(path)
  db.run('pragma synchronous = off')
  const { tenant_id } = db.query('select tenant_id from tenants').get() as { tenant_id: string }
  const at = Date.now() - second_ms
  const { schedule, job } = insertsOf(db)
  db.run('begin')
  for (let i = 0; i < backlog_count; i++) {
    const number = String(i).padStart(26, '0')
    schedule.run(tenant_id, `sch_${number}`, urlOf(i), at, at)
    job.run(tenant_id, `sch_${number}`, `evt_${number}`, new URL(urlOf(i)).origin, at)
  }
  db.run(
    `insert into quota_usage (tenant_id, quota, used, version_floor) values (?1, 'active_schedules', ?2, 0)
       on conflict (tenant_id, quota) do update set used = ?2`,
    [tenant_id, backlog_count],
  )
  db.run('commit')
  db.close()
}

function report(part: string, figure: string, values: number[], digits: number, target: string): void {
  rows.push([part, figure, spread(values, digits), target])
}

function lostAndTwice({ received, distinct }: Figures, count: number): string {
  return `${count - distinct} lost, ${received - distinct} twice`
}

function note(text: string): void {
  console.error(`… ${text}`)
}

function percentile(values: number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)]!
}

/** A whole second, at least so many from now. */
function secondFromNow(seconds: number): number {
  return Math.ceil(Date.now() / second_ms + seconds) * second_ms
}

function until(at: number): Promise<void> {
  return Bun.sleep(Math.max(0, at - Date.now()))
}

interface Setup {
  service: { pid: number }
  receiver: Receiver
  /** Creates schedules of one tenant over HTTP. */
  schedule(count: number, of: (i: number) => { url: string; at: number }): Promise<void>
  stop(): Promise<void>
}

/** A service and a receiver. `data` is a folder to keep; without it there is a new database. */
async function startAll(data?: string): Promise<Setup> {
  const temporary = data === undefined ? temporaryFolder() : null
  const folder = data ?? temporary!.folder
  const receiver = await startReceiver()
  const profiling = profile_folder ? ['--cpu-prof', `--cpu-prof-dir=${profile_folder}`] : []
  const service = start([process.execPath, ...profiling, join(root, 'src/main.ts')], {
    core: cores.server,
    cwd: folder, // so that no .env of the checkout is read
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DATABASE_URL: `sqlite:${join(folder, 'waystation.db')}`,
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
    },
  })
  const url = await printed(service, /address +(\S+)/)
  const agent = await signUp(url)
  return {
    service,
    receiver,
    async schedule(count, of) {
      let next = 0
      const client = async () => {
        for (let i = next++; i < count; i = next++) {
          const { url: callback_url, at } = of(i)
          await post(`${url}/v1/schedules`, agent, {
            ...{ callback_url, callback_payload: { at }, fire_at: new Date(at).toISOString() },
          })
        }
      }
      await Promise.all(Array.from({ length: clients }, client))
    },
    async stop() {
      await end(service)
      await end(receiver.child)
      const told = (await new Response(service.stderr).text()).trim()
      if (told !== '') console.error(`the service said:\n${told}`)
      temporary?.remove()
    },
  }
}

interface Receiver {
  child: Child
  /** The n-th destination, which answers. */
  url(n: number): string
  /** The n-th destination that takes connections and is silent. */
  silentUrl(n: number): string
  /** The figures once so many came, and a moment later, in case some come twice. */
  received(count: number, seconds_max: number): Promise<Figures>
  /** Begins to count again. */
  forget(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  const child = start([process.execPath, join(import.meta.dir, 'receiver.ts')], { core: cores.load })
  const [answering, silent] = (await printed(child, /(\d+ \d+)/)).split(' ')
  const read = async () => (await (await fetch(`http://127.0.0.1:${answering}/`)).json()) as Figures
  return {
    child,
    url: (n) => `http://127.0.1.${n}:${answering}/hook`,
    silentUrl: (n) => `http://127.1.0.${1 + n}:${silent}/hook`,
    async forget() {
      await fetch(`http://127.0.0.1:${answering}/`, { method: 'DELETE' })
    },
    async received(count, seconds_max) {
      const give_up_at = Date.now() + seconds_max * second_ms
      while ((await read()).received < count && Date.now() < give_up_at) await Bun.sleep(250)
      await Bun.sleep(500)
      return read()
    },
  }
}

/** What a child prints on its first lines; it must go on being read. */
async function printed(child: Child, pattern: RegExp): Promise<string> {
  const reader = child.stdout.getReader()
  let text = ''
  while (!pattern.test(text)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`it ended: ${text}${await new Response(child.stderr).text()}`)
    text += new TextDecoder().decode(value)
  }
  return pattern.exec(text)![1]!
}

async function signUp(url: string): Promise<Record<string, string>> {
  const tenant = await post<{ admin_key: string }>(
    `${url}/v1/tenants`,
    {},
    {
      ...{ name: `bench-${crypto.randomUUID().slice(0, 8)}`, owner_email: 'bench@example.com', plan: 'pro' },
    },
  )
  const agent = await post<{ agent_id: string; api_key: string }>(
    `${url}/v1/agents`,
    { 'x-admin-key': tenant.admin_key },
    { name: 'bench-agent' },
  )
  return { 'x-agent-id': agent.agent_id, 'x-api-key': agent.api_key }
}

async function post<T>(url: string, headers: Record<string, string>, body: object): Promise<T> {
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
  return JSON.parse(text) as T
}

/** Pending schedules of other tenants, due from tomorrow on, as the service would have left them. */
function insertFarFuture(path: string): void {
  const db = new Database(path)
  db.run('pragma synchronous = off')
  const tomorrow = Date.now() + 86_400_000
  const { schedule, job } = insertsOf(db)
  db.run('begin')
  for (let i = 0; i < million_count; i++) {
    const tenant_id = `ten_far${String(i % million_tenants).padStart(23, '0')}`
    const number = String(i).padStart(26, '0')
    const destination = `https://hooks-${i % 1_000}.example.com`
    const at = tomorrow + ((i * 7_919) % million_count) * 1_000
    schedule.run(tenant_id, `sch_${number}`, `${destination}/hook`, at, tomorrow)
    job.run(tenant_id, `sch_${number}`, `evt_${number}`, destination, at)
  }
  db.run('commit')
  db.run('pragma wal_checkpoint(truncate)')
  db.close()
}

function insertsOf(db: Database) {
  const schedule = db.prepare(
    `insert into schedules (tenant_id, id, status, callback_url, callback_payload, fire_at, dlq_on_failure, agent_id,
       attempts, name, created_at, updated_at)
     values (?1, ?2, 'pending', ?3, '{"at": 0}', ?4, 0, 'bench-agent', 0, '', ?5, ?5)`,
  )
  const job = db.prepare(
    `insert into jobs (tenant_id, kind, source_id, event_id, destination, next_at, lease_until, fence, attempts,
       paused)
     values (?1, 'schedule', ?2, ?3, ?4, ?5, 0, 0, 0, 0)`,
  )
  return { schedule, job }
}
