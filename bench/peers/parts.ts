// The parts of a run over HTTP: an operation of several peers, in turns, on the disk as it is or on a slower one.

import { before, own, type PartName } from './aims.ts'
import { type Prepared, prepare, run, type Sample, sample } from './drive.ts'
import { etcd } from './etcd.ts'
import { fastify, fastify_memory } from './fastify.ts'
import { nginx } from './nginx.ts'
import type { Operation, Peer, RunningPeer } from './peer.ts'
import { Collector } from './result.ts'
import { serviceOf, waystation } from './waystation.ts'
import { webdis, webdis_bare } from './webdis.ts'

export interface Plan {
  rounds: number
  seconds: number
  /** How many requests the part mixed makes at least. */
  mixed_requests: number
  /** Subjects that cannot be measured here. */
  missing: ReadonlySet<string>
  /** A checkout of the version before, if it is to be measured too. */
  before: string | null
  progress(text: string): void
}

const warm_up_seconds = 2
const writers = 8
const disturbed_max = 0.15
const tries_max = 2

/** The programs that each part measures. */
export const paths: Partial<Record<PartName, readonly Peer[]>> = {
  'kv-get': [waystation, webdis, etcd],
  'kv-put': [waystation, webdis, etcd],
  'rate-check': [waystation, webdis, webdis_bare, fastify, fastify_memory],
  hook: [waystation, webdis, webdis_bare],
  'audit-append': [waystation, nginx],
}

export const peers: readonly Peer[] = [waystation, webdis, webdis_bare, etcd, fastify, fastify_memory, nginx]

interface Started {
  peer: Peer
  running: RunningPeer
  prepared: Partial<Record<Operation, Prepared>>
}

/** All of them run all the while, and idle while they are not asked. */
export async function measurePath(operation: Operation & PartName, plan: Plan): Promise<Collector> {
  const collector = new Collector()
  const started = await startAll(paths[operation]!, [operation], 0, plan, collector)
  for (let round = 1; round <= plan.rounds; round++) {
    for (const one of inTurn(started, round)) {
      plan.progress(`${operation}, round ${round} of ${plan.rounds}: ${one.peer.name}`)
      await attempt(one, started, collector, async () => {
        const { requests, ...figures } = await undisturbed(one, one.prepared[operation]!, plan.seconds)
        collector.add(one.peer.name, figures)
      })
    }
  }
  await stopAll(started)
  return collector
}

/** Gets alone, gets beside writers, and puts, while every flush takes so much longer. */
export async function measureSlowDisk(flush_delay_ms: number, plan: Plan): Promise<Collector> {
  const collector = new Collector()
  const subjects = [waystation, ...(plan.before ? [serviceOf(before, plan.before)] : []), webdis]
  const started = await startAll(subjects, ['kv-get', 'kv-put'], flush_delay_ms, plan, collector)
  for (let round = 1; round <= plan.rounds; round++) {
    for (const one of inTurn(started, round)) {
      plan.progress(`flush + ${flush_delay_ms} ms, round ${round} of ${plan.rounds}: ${one.peer.name}`)
      await attempt(one, started, collector, async () =>
        collector.add(one.peer.name, await slowSamples(one, plan.seconds)),
      )
    }
  }
  await stopAll(started)
  return collector
}

async function slowSamples({ running, prepared }: Started, seconds: number): Promise<Record<string, number>> {
  const [gets, puts] = [prepared['kv-get']!, prepared['kv-put']!]
  const alone = await sample(running, gets, seconds)
  const kept = await puts.load.kept?.()
  // The writers begin before the readers and end after them.
  const writing = run(puts, seconds + 1, writers)
  await Bun.sleep(400)
  const beside = await run(gets, seconds)
  const written = await writing
  if (kept !== undefined && (await puts.load.kept!()) - kept < written.requests)
    throw new Error(`${puts.name}: writes beside the gets were acknowledged and not kept`)
  const all = await sample(running, puts, seconds)
  return {
    gets_alone: alone.requests_per_second,
    gets_alone_p99_ms: alone.p99_ms,
    gets_beside: beside.requests_per_second,
    gets_beside_p99_ms: beside.p99_ms,
    writes_beside: written.requests_per_second,
    puts: all.requests_per_second,
    puts_p99_ms: all.p99_ms,
    puts_cpu_micros: all.cpu_micros,
  }
}

/** Once more when others took more than 15 % of the core; the less disturbed run counts. */
async function undisturbed({ running }: Started, prepared: Prepared, seconds: number): Promise<Sample> {
  let best = await sample(running, prepared, seconds)
  for (let tries = 1; best.others > disturbed_max && tries < tries_max; tries++) {
    const again = await sample(running, prepared, seconds)
    if (again.others < best.others) best = again
  }
  return best
}

/** Forwards and backwards: a machine that gets slower or faster favours nobody. */
function inTurn<T>(started: readonly T[], round: number): T[] {
  return round % 2 === 1 ? [...started] : started.toReversed()
}

/** A peer that fails is named and left out; the service must not. */
async function attempt(one: Started, started: Started[], collector: Collector, work: () => Promise<void>) {
  try {
    await work()
  } catch (error) {
    if (one.peer.name === own) throw error
    collector.fail(one.peer.name, error)
    started.splice(started.indexOf(one), 1)
    await one.running.stop()
  }
}

async function startAll(
  subjects: readonly Peer[],
  operations: readonly Operation[],
  flush_delay_ms: number,
  plan: Plan,
  collector: Collector,
): Promise<Started[]> {
  const started: Started[] = []
  for (const peer of subjects.filter(({ name }) => !plan.missing.has(name))) {
    plan.progress(`${operations.join(' and ')}: starting ${peer.name}`)
    let running: RunningPeer | undefined
    try {
      running = await peer.start({ flush_delay_ms })
      const prepared: Started['prepared'] = {}
      for (const operation of operations) {
        const load = await running.load(operation)
        if (!load) throw new Error(`it has no ${operation}`)
        prepared[operation] = prepare(`${peer.name}, ${operation}`, load)
        await run(prepared[operation], warm_up_seconds)
      }
      started.push({ peer, running, prepared })
    } catch (error) {
      await running?.stop()
      if (peer.name === own) throw error
      collector.fail(peer.name, error)
    }
  }
  return started
}

async function stopAll(started: readonly Started[]): Promise<void> {
  for (const { running } of started) await running.stop()
}
