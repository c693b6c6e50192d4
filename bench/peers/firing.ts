// The parts of a run about due work: schedules of the service and jobs of queues, each one signed POST to a receiver.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { cpuMicros, end, temporaryFolder } from '../processes.ts'
import type { Figures } from '../receiver.ts'
import {
  insertsOf,
  lostAndTwice,
  percentile,
  type Receiver,
  secondFromNow,
  startAll,
  startReceiver,
  until,
} from '../schedules.ts'
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
const day_ms = 86_400_000

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

/** From the first call to the last, so that a queue which looks every half second loses nothing by it. */
async function burst(running: RunningQueue, receiver: Receiver, count: number) {
  const figures = await fired(running, receiver, { from: secondFromNow(4), step_ms: 0, count })
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
  async start() {
    const setup = await startAll()
    return {
      schedule: ({ url, from, step_ms, count }) =>
        setup.schedule(count, (i) => ({ url, at: from + Math.floor(i * step_ms) })),
      cpuMicros: () => cpuMicros(setup.service.pid),
      stop: () => setup.stop(),
    }
  },
}

/** 1,000 due at once, alone and on top of 100,000 that are due later. Seconds from the due time to the last call. */
export async function measurePending(plan: Plan): Promise<Collector> {
  const collector = new Collector()
  for (let round = 1; round <= plan.rounds; round++) {
    const kinds = ['alone', 'on_top'] as const
    for (const kind of round % 2 === 1 ? kinds : kinds.toReversed()) {
      plan.progress(`1,000 due, ${kind.replace('_', ' ')}, round ${round} of ${plan.rounds}`)
      const { folder, remove } = temporaryFolder()
      const seconds = await dueAtOnce(folder, kind === 'on_top')
      collector.add(own, { [`${kind}_seconds`]: seconds })
      remove()
    }
  }
  return collector
}

/** The first burst is not counted: a process that has just started compiles its code. */
async function dueAtOnce(folder: string, with_pending: boolean): Promise<number> {
  const share = Math.floor(pending_count / pending_tenants)
  if (with_pending) {
    const empty = await startAll(folder)
    await empty.stop()
    insertPending(join(folder, 'waystation.db'), pending_count - share)
  }
  const setup = await startAll(folder)
  const { receiver } = setup
  if (with_pending) {
    const later = Date.now() + day_ms
    await setup.schedule(share, (i) => ({ url: receiver.url(1), at: later + i * 1_000 }))
  }
  const seconds: number[] = []
  for (let time = 0; time <= due_times; time++) {
    await receiver.forget()
    const at = secondFromNow(1.5)
    await setup.schedule(due_count, () => ({ url: receiver.url(1), at }))
    await until(at)
    const figures = await receiver.received(due_count, received_seconds_max)
    if (figures.distinct !== due_count) throw new Error(lostAndTwice(figures, due_count))
    if (time > 0) seconds.push((figures.last_at - at) / 1_000)
  }
  await setup.stop()
  return median(seconds)
}

/** Of the other tenants, due from tomorrow on, as the service would have left them. */
function insertPending(path: string, count: number): void {
  const db = new Database(path)
  db.run('pragma synchronous = off')
  const { schedule, job } = insertsOf(db)
  const tomorrow = Date.now() + day_ms
  db.run('begin')
  for (let i = 0; i < count; i++) {
    const tenant_id = `ten_far${String(i % (pending_tenants - 1)).padStart(23, '0')}`
    const number = String(i).padStart(26, '0')
    const destination = `https://hooks-${i % 100}.example.com`
    const at = tomorrow + ((i * 7_919) % count) * 1_000
    schedule.run(tenant_id, `sch_${number}`, `${destination}/hook`, at, tomorrow)
    job.run(tenant_id, `sch_${number}`, `evt_${number}`, destination, at)
  }
  db.run('commit')
  db.run('pragma wal_checkpoint(truncate)')
  db.close()
}
