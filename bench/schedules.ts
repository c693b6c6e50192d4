// `bun bench/schedules.ts`: how late schedules are fired by one node on one core, SQLite on disk, each a real signed
// POST to a receiver on the other core, and the CPU that each costs.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkOut, root } from './checkout.ts'
import {
  command,
  coreMicros,
  cores,
  cpuMicros,
  end,
  memoryMib,
  pinThisProcess,
  temporaryFolder,
  wholeNumber,
} from './processes.ts'
import type { Figures } from './receiver.ts'
import { insertBacklog, insertFarFuture } from './schedule-rows.ts'
import { type Setup, startReceiver, startSetup } from './schedule-setup.ts'
import { median, spread, table } from './table.ts'

const usage = `Usage: bun bench/schedules.ts [options]

  --part <name>     only this part; may be given several times (burst, trickle, pending, million, dead, backlog)
  --rounds <n>      how often each part is measured; figures are medians (default: 3)
  --burst <n>       schedules of a burst (default: 10000)
  --seconds <n>     length of the trickle (default: 20)
  --against <rev>   each round also measures this revision, in turns; the ratio of each figure is reported
  --root <folder>   measure the service of another checkout
  --help            this text`

const parts = { burst, trickle, pending, million, dead, backlog }
type Part = keyof typeof parts

const trickle_a_second = 200
const pending_bursts = 5
const pending_burst_count = 1_000
const pending_count = 100_000
const pending_tenants = 10
const million_count = 1_000_000
const million_tenants = 100
const idle_seconds = 10
const dead_destinations = 200
const dead_schedules_each = 5
const healthy_destinations = 50
const healthy_seconds = 10
const backlog_count = 50_000
const other_count = 100
const second_ms = 1_000

/** A figure of one round. */
interface Figure {
  part: string
  name: string
  digits: number
  target: string
  value: number
}

/** The service of one checkout, and its figures so far. */
interface Side {
  root: string
  figures: Figure[]
}

let burst_count = 10_000
let trickle_seconds = 20

await command(async () => {
  const { values } = parseArgs({
    options: {
      part: { type: 'string', multiple: true },
      rounds: { type: 'string', default: '3' },
      burst: { type: 'string', default: '10000' },
      seconds: { type: 'string', default: '20' },
      against: { type: 'string' },
      root: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const chosen = (values.part ?? Object.keys(parts)) as Part[]
  const unknown = chosen.find((name) => !Object.hasOwn(parts, name))
  if (unknown) throw new Error(`there is no part ${unknown}: ${Object.keys(parts).join(', ')}`)
  burst_count = wholeNumber(values.burst)
  trickle_seconds = wholeNumber(values.seconds)
  for (const warning of pinThisProcess()) console.log(`*** ${warning} ***`)
  console.log(`Bun ${Bun.version}, service on core ${cores.server}, receiver and load on core ${cores.load}`)
  const sides: Side[] = [{ root: values.root ?? root, figures: [] }]
  const before = values.against === undefined ? null : checkOut(values.against)
  if (before) sides.unshift({ root: before.folder, figures: [] })
  for (const part of chosen) await measure(part, sides, wholeNumber(values.rounds))
  console.log(`\n${reportOf(sides)}`)
  before?.remove()
})

/** Each round takes the sides in the other order, so that a machine that grows slower favours neither. */
async function measure(part: Part, sides: Side[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await parts[part](side)
  }
}

function reportOf(sides: Side[]): string {
  const [first, second] = sides as [Side, Side?]
  const names = [...new Set(first.figures.map(({ part, name }) => `${part} ${name}`))]
  const rows = names.map((full_name) => {
    const of = ({ figures }: Side) => figures.filter(({ part, name }) => `${part} ${name}` === full_name)
    const { part, name, digits, target } = of(first)[0]!
    const values = of(first).map(({ value }) => value)
    if (!second) return [part, name, spread(values, digits), target]
    const after = of(second).map(({ value }) => value)
    const ratio = (median(after) / median(values)).toFixed(3)
    return [part, name, spread(values, digits), spread(after, digits), ratio, target]
  })
  const figures = second ? ['before', 'after', 'ratio'] : ['median (least..most)']
  return table(['part', 'figure', ...figures, 'target'], rows)
}

async function burst(side: Side): Promise<void> {
  for (const destinations of [1, 16]) {
    const setup = await startSetup(side.root)
    // In the first four seconds of a process a quarter of the core compiles its code.
    for (const when of ['just started', 'once more']) {
      await setup.receiver.forget()
      const { seconds, cpu_micros } = await measureBurst(setup, { count: burst_count, destinations })
      const what = `${burst_count} due at once, ${destinations} destination(s), ${when}`
      report(side, ['burst', `${what}, s`, 2, '≤ 3.4'], seconds)
      report(side, ['burst', `${what}, µs CPU each`, 0, ''], cpu_micros)
    }
    await setup.stop()
  }
}

/** Seconds from the due time to the arrival of the last POST, and the CPU of each until a moment later. */
async function measureBurst(
  setup: Setup,
  { count, destinations }: { count: number; destinations: number },
): Promise<{ seconds: number; cpu_micros: number }> {
  const { receiver, service } = setup
  const at = secondFromNow(2 + count / 1_000)
  await setup.schedule(count, (i) => ({ url: receiver.url(1 + (i % destinations)), at }))
  if (Date.now() > at) throw new Error('the machine is too slow: it was due before all were created')
  await until(at)
  const core_before = coreMicros(cores.server)
  const cpu_before = cpuMicros(service.pid)
  const figures = await receiver.received(count, 60)
  const seconds = (figures.last_at - at) / second_ms
  const cpu = (cpuMicros(service.pid) - cpu_before) / 1e6
  const others = (coreMicros(cores.server) - core_before) / 1e6 - cpu
  note(
    `burst of ${count}, ${destinations} destination(s): ${seconds.toFixed(2)} s, CPU ${cpu.toFixed(2)} s, others ${others.toFixed(2)} s, ` +
      `${memoryMib(service.pid).peak.toFixed(0)} MiB at most, ${lostAndTwice(figures, count)}`,
  )
  return { seconds, cpu_micros: (cpu * 1e6) / count }
}

async function trickle(side: Side): Promise<void> {
  const setup = await startSetup(side.root)
  const count = trickle_a_second * trickle_seconds
  const from = secondFromNow(3 + trickle_seconds / 10)
  const at = (i: number) => from + Math.floor((i * second_ms) / trickle_a_second)
  await setup.schedule(count, (i) => ({ url: setup.receiver.url(1), at: at(i) }))
  await until(from)
  const cpu_before = cpuMicros(setup.service.pid)
  await until(at(count))
  const figures = await setup.receiver.received(count, 30)
  const cpu_micros = (cpuMicros(setup.service.pid) - cpu_before) / count
  const [p50, p99] = [percentile(figures.lateness_ms, 50), percentile(figures.lateness_ms, 99)]
  note(
    `trickle: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, CPU ${cpu_micros.toFixed(0)} µs each, ${lostAndTwice(figures, count)}`,
  )
  await setup.stop()
  const what = `${trickle_a_second}/s for ${trickle_seconds} s`
  report(side, ['trickle', `${what}: lateness p50, ms`, 1, ''], p50)
  report(side, ['trickle', `${what}: lateness p99, ms`, 1, '≤ 20'], p99)
  report(side, ['trickle', `${what}: µs CPU each`, 0, '≤ 500'], cpu_micros)
}

/** The same bursts on a database that is empty otherwise, and on one with schedules of these tenants for later. */
async function pending(side: Side): Promise<void> {
  const alone = await measureBursts(side, 0)
  const beside = await measureBursts(side, pending_count)
  const what = `${pending_burst_count} due at once on top of ${pending_count} pending of ${pending_tenants + 1} tenants`
  report(side, ['pending', `${pending_burst_count} due at once, µs CPU each`, 0, ''], alone)
  report(side, ['pending', `${what}, µs CPU each`, 0, ''], beside)
  report(side, ['pending', 'times the CPU of those alone', 2, '≤ 1.2'], beside / alone)
}

/** The median CPU of some bursts in one process, the first of which warms it up. */
async function measureBursts(side: Side, pending: number): Promise<number> {
  const { folder, remove } = temporaryFolder()
  const empty = await startSetup(side.root, folder)
  await empty.stop()
  const later = { count: pending, tenants: pending_tenants, own: true }
  if (pending > 0) insertFarFuture(join(folder, 'waystation.db'), later)
  const setup = await startSetup(side.root, folder, empty.agent)
  const took: number[] = []
  for (let burst = 0; burst <= pending_bursts; burst++) {
    await setup.receiver.forget()
    const { cpu_micros } = await measureBurst(setup, { count: pending_burst_count, destinations: 1 })
    if (burst > 0) took.push(cpu_micros)
  }
  await setup.stop()
  remove()
  return median(took)
}

async function million(side: Side): Promise<void> {
  const { folder, remove } = temporaryFolder()
  const empty = await startSetup(side.root, folder)
  await empty.stop()
  note(`inserting ${million_count} schedules`)
  insertFarFuture(join(folder, 'waystation.db'), {
    count: million_count,
    tenants: million_tenants,
    own: false,
  })
  const setup = await startSetup(side.root, folder)
  await Bun.sleep(3 * second_ms)
  const before = cpuMicros(setup.service.pid)
  await Bun.sleep(idle_seconds * second_ms)
  const idle = (cpuMicros(setup.service.pid) - before) / 1e4 / idle_seconds
  note(`idle: ${idle.toFixed(2)} % of a core`)
  const took: { seconds: number; cpu_micros: number }[] = []
  for (let burst = 0; burst < 2; burst++) {
    await setup.receiver.forget()
    took.push(await measureBurst(setup, { count: burst_count, destinations: 1 }))
  }
  await setup.stop()
  remove()
  report(side, ['million', `idle with ${million_count} pending, % of a core`, 2, '< 1'], idle)
  const what = `${burst_count} due at once on top of them, 1 destination, once more`
  report(side, ['million', `${what}, s`, 2, '≤ 1.2 × burst'], took[1]!.seconds)
  report(side, ['million', `${what}, µs CPU each`, 0, '≤ 1.2 × burst'], took[1]!.cpu_micros)
}

async function dead(side: Side): Promise<void> {
  const setup = await startSetup(side.root)
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
  const p95 = percentile(figures.lateness_ms, 95)
  const most = Math.max(...figures.lateness_ms)
  note(
    `dead: healthy p95 ${p95.toFixed(0)} ms, most ${most.toFixed(0)} ms, ${lostAndTwice(figures, healthy_count)}`,
  )
  await setup.stop()
  const what = `${dead_destinations} silent and ${healthy_destinations} healthy destinations: healthy p95, ms`
  report(side, ['dead', what, 0, '≤ 1000'], p95)
}

/** Half of the backlog is for one quick receiver, half for silent ones. */
async function backlog(side: Side): Promise<void> {
  const { folder, remove } = temporaryFolder()
  const empty = await startSetup(side.root, folder)
  await empty.stop()
  const quick = await startReceiver()
  const urlOf = (i: number) => (i % 2 === 0 ? quick.url(1) : quick.silentUrl((i >> 1) % dead_destinations))
  insertBacklog(join(folder, 'waystation.db'), backlog_count, urlOf)
  const setup = await startSetup(side.root, folder)
  const from = secondFromNow(2)
  const at = (i: number) => from + i * 50
  await setup.schedule(other_count, (i) => ({ url: setup.receiver.url(1), at: at(i) }))
  await until(at(other_count))
  const figures = await setup.receiver.received(other_count, 30)
  const served = (await quick.received(0, 0)).received
  const most = Math.max(...figures.lateness_ms)
  note(
    `backlog: p95 ${percentile(figures.lateness_ms, 95).toFixed(0)} ms, most ${most.toFixed(0)} ms, ` +
      `${lostAndTwice(figures, other_count)}; of the backlog ${served} were delivered meanwhile`,
  )
  await setup.stop()
  await end(quick.child)
  remove()
  report(side, ['backlog', `another tenant beside ${backlog_count} due of one: most, ms`, 0, '≤ 1000'], most)
}

type FigureName = [part: string, name: string, digits: number, target: string]

function report(side: Side, [part, name, digits, target]: FigureName, value: number): void {
  side.figures.push({ part, name, digits, target, value })
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
