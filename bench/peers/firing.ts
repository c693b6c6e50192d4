// The parts of a run about due work: schedules of the service and jobs of queues, each one signed POST to a receiver.

import { join } from 'node:path'
import { root } from '../checkout.ts'
import { cpuMicros, end, temporaryFolder } from '../processes.ts'
import type { Figures } from '../receiver.ts'
import { insertFarFuture } from '../schedule-rows.ts'
import { type Receiver, type Setup, startReceiver, startSetup } from '../schedule-setup.ts'
import { median } from '../table.ts'
import { own } from './aims.ts'
import type { Plan } from './parts.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { type Order, type Queue, queues, type RunningQueue } from './queue.ts'
import { Collector } from './result.ts'

const burst_count = 5_000
const trickle_a_second = 200
const trickle_seconds = 10
const received_seconds_max = 60
const pending_count = 100_000
const pending_tenants = 11
const due_count = 1_000
const due_times = 3

/** Each in processes of its own: two bursts, and then jobs that fall due one after the other. */
export async function measureSchedules(plan: Plan): Promise<Collector> {
  const collector = new Collector()
  let postgres: Postgres | undefined
  const startedPostgres = async () => (postgres ??= await startPostgres())
  const subjects: Queue[] = [service, ...queues.filter(({ name }) => !plan.missing.has(name))]
  try {
    for (let round = 1; round <= plan.rounds; round++) {
      for (const queue of round % 2 === 1 ? subjects : subjects.toReversed()) {
        if (collector.failed[queue.name]) continue
        plan.progress(`schedules, round ${round} of ${plan.rounds}: ${queue.name}`)
        await attempt(queue, startedPostgres, collector)
      }
    }
  } finally {
    await postgres?.stop()
  }
  return collector
}

/** A queue that fails is named and left out; the service must not. */
async function attempt(queue: Queue, postgres: () => Promise<Postgres>, collector: Collector): Promise<void> {
  try {
    collector.add(queue.name, await fire(queue, postgres))
  } catch (error) {
    if (queue === service) throw error
    collector.fail(queue.name, error)
  }
}

async function fire(queue: Queue, postgres: () => Promise<Postgres>): Promise<Record<string, number>> {
  const receiver = await startReceiver()
  let running: RunningQueue | undefined
  try {
    running = await queue.start(postgres)
    const first = await burst(running, receiver, burst_count)
    const next = await burst(running, receiver, burst_count)
    const trickle = await fired(running, receiver, trickleFrom(secondFromNow(2)))
    return {
      burst_per_second: next.per_second,
      burst_cpu_micros: next.cpu_micros,
      burst_first_ms: next.first_ms,
      burst_all_ms: Math.max(...next.lateness_ms),
      burst_just_started_per_second: first.per_second,
      trickle_p50_ms: percentile(trickle.lateness_ms, 50),
      trickle_p99_ms: percentile(trickle.lateness_ms, 99),
      trickle_cpu_micros: trickle.cpu_micros,
    }
  } finally {
    await running?.stop()
    await end(receiver.child)
  }
}

function trickleFrom(from: number): Omit<Order, 'url'> {
  return { from, step_ms: 1_000 / trickle_a_second, count: trickle_a_second * trickle_seconds }
}

type Burst = Figures & { cpu_micros: number; first_ms: number; per_second: number }

/** From the first call to the last, so that a queue which looks every half second loses nothing by it. */
async function burst(running: RunningQueue, receiver: Receiver, count: number): Promise<Burst> {
  const figures = await fired(running, receiver, {
    from: secondFromNow(1 + count / 1_500),
    step_ms: 0,
    count,
  })
  const first_ms = Math.min(...figures.lateness_ms)
  const took_ms = Math.max(...figures.lateness_ms) - first_ms
  return { ...figures, first_ms, per_second: (count / took_ms) * 1_000 }
}

async function fired(
  running: RunningQueue,
  receiver: Receiver,
  order: Omit<Order, 'url'>,
): Promise<Figures & { cpu_micros: number }> {
  await receiver.forget()
  await running.schedule({ ...order, url: receiver.url(1) })
  if (Date.now() > order.from) throw new Error('it was due before all of it was scheduled')
  await until(order.from)
  const cpu = running.cpuMicros()
  await until(order.from + order.step_ms * order.count)
  const figures = await receiver.received(order.count, received_seconds_max)
  const cpu_micros = (running.cpuMicros() - cpu) / order.count
  if (figures.distinct !== order.count || figures.received !== order.count)
    throw new Error(`of ${order.count} jobs: ${lostAndTwice(figures, order.count)}`)
  return { ...figures, cpu_micros }
}

/** The service as a queue. Its schedules have a receiver of their own that is not used. */
const service: Queue = {
  name: own,
  how: '',
  available: async () => ({ version: '' }),
  start: async () => asQueue(await startSetup(root)),
}

function asQueue(setup: Setup): RunningQueue {
  return {
    schedule: ({ url, from, step_ms, count }) =>
      setup.schedule(count, (i) => ({ url, at: from + Math.floor(i * step_ms) })),
    cpuMicros: () => cpuMicros(setup.service.pid),
    stop: () => setup.stop(),
  }
}

/** The CPU of a schedule among 1,000 due at once, alone and on top of 100,000 that are due later, and how long all took. */
export async function measurePending(plan: Plan): Promise<Collector> {
  const collector = new Collector()
  for (let round = 1; round <= plan.rounds; round++) {
    const kinds = ['alone', 'on_top'] as const
    for (const kind of round % 2 === 1 ? kinds : kinds.toReversed()) {
      plan.progress(`1,000 due, ${kind.replace('_', ' ')}, round ${round} of ${plan.rounds}`)
      const { cpu_micros, seconds } = await dueAtOnce(kind === 'on_top')
      collector.add(own, { [`${kind}_cpu_micros`]: cpu_micros, [`${kind}_seconds`]: seconds })
    }
  }
  return collector
}

/** Medians of some bursts, without the first: a process that has just started compiles its code. */
async function dueAtOnce(with_pending: boolean): Promise<{ cpu_micros: number; seconds: number }> {
  const { folder, remove } = temporaryFolder()
  const empty = await startSetup(root, folder)
  await empty.stop()
  const later = { count: pending_count, tenants: pending_tenants - 1, own: true }
  if (with_pending) insertFarFuture(join(folder, 'waystation.db'), later)
  const setup = await startSetup(root, folder, empty.agent)
  const queue = asQueue(setup)
  const bursts: (Burst & { seconds: number })[] = []
  for (let time = 0; time <= due_times; time++) {
    const figures = await burst(queue, setup.receiver, due_count)
    bursts.push({ ...figures, seconds: Math.max(...figures.lateness_ms) / 1_000 })
  }
  await setup.stop()
  remove()
  const counted = bursts.slice(1)
  return {
    cpu_micros: median(counted.map(({ cpu_micros }) => cpu_micros)),
    seconds: median(counted.map(({ seconds }) => seconds)),
  }
}

function lostAndTwice({ received, distinct }: Figures, count: number): string {
  return `${count - distinct} lost, ${received - distinct} twice`
}

function percentile(values: number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)]!
}

/** A whole second, at least so many from now. */
function secondFromNow(seconds: number): number {
  return Math.ceil(Date.now() / 1_000 + seconds) * 1_000
}

function until(at: number): Promise<void> {
  return Bun.sleep(Math.max(0, at - Date.now()))
}
