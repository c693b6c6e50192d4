// The figures that the service is held to, each with its aim, computed round by round from what one run measured.

import { median } from '../table.ts'
import { bullmq, graphile_worker, pg_boss } from './queue.ts'
import { figuresOf, medianOf, type Part, type Result } from './result.ts'

export interface Aim {
  id: string
  /** The part of the result that it is read from. */
  part: PartName
  title: string
  /** `≥ 1.1 ×`. */
  at_least?: number
  at_most?: number
  unit: '×' | 'ms' | 'µs' | 'MiB'
  digits: number
  values(part: Part): number[] | undefined
}

export type PartName =
  | 'kv-get'
  | 'kv-put'
  | 'rate-check'
  | 'hook'
  | 'audit-append'
  | 'flush-1ms'
  | 'flush-5ms'
  | 'schedules'
  | 'pending'
  | 'mixed'

export const own = 'Waystation'
export const before = 'Waystation before'
const redis = 'webdis + Redis'
const bare = 'webdis + Redis, bare commands'
const fastify = 'Fastify + rate-limiter-flexible'
const queue_names = [graphile_worker.name, pg_boss.name, bullmq.name]

/** Of the part mixed. A shorter run counts as no measurement. */
export const mixed_requests = 5_000_000

const times = { unit: '×', digits: 2 } as const

export const aims: readonly Aim[] = [
  {
    ...{ id: 'reads-beside-writers', part: 'flush-5ms', at_least: 0.6, ...times },
    title: 'gets beside 8 writers, flush + 5 ms: part of gets alone',
    values: (part) => ratios(part, [own, 'gets_beside'], [own, 'gets_alone']),
  },
  {
    ...{ id: 'reads-beside-writers-redis', part: 'flush-5ms', at_least: 8, ...times },
    title: 'gets beside 8 writers, flush + 5 ms: × webdis + Redis',
    values: (part) => ratios(part, [own, 'gets_beside'], [redis, 'gets_beside']),
  },
  {
    ...{ id: 'puts-slow-redis', part: 'flush-5ms', at_least: 1.3, ...times },
    title: 'puts, flush + 5 ms: × webdis + Redis',
    values: (part) => ratios(part, [own, 'puts'], [redis, 'puts']),
  },
  {
    ...{ id: 'puts-slow-before', part: 'flush-5ms', at_least: 1.5, ...times },
    title: 'puts, flush + 5 ms: × the version before',
    values: (part) => ratios(part, [own, 'puts'], [before, 'puts']),
  },
  {
    ...{ id: 'kv-get', part: 'kv-get', at_least: 1.1, ...times },
    title: 'kv get: × webdis + Redis',
    values: (part) => speed(part, redis),
  },
  {
    ...{ id: 'kv-put', part: 'kv-put', at_least: 1.1, ...times },
    title: 'kv put: × webdis + Redis',
    values: (part) => speed(part, redis),
  },
  {
    ...{ id: 'rate-check', part: 'rate-check', at_least: 0.9, ...times },
    title: 'rate check: × webdis + Redis (a window that ends)',
    values: (part) => speed(part, redis),
  },
  {
    ...{ id: 'rate-check-bare', part: 'rate-check', at_least: 0.9, ...times },
    title: 'rate check: × webdis + Redis (`INCR` alone)',
    values: (part) => speed(part, bare),
  },
  {
    ...{ id: 'rate-check-fastify', part: 'rate-check', at_least: 2, ...times },
    title: 'rate check: × Fastify + rate-limiter-flexible (Redis)',
    values: (part) => speed(part, fastify),
  },
  {
    ...{ id: 'hook', part: 'hook', at_least: 0.7, ...times },
    title: 'hook: × webdis + Redis (`XADD`, 1,000 kept)',
    values: (part) => speed(part, redis),
  },
  {
    ...{ id: 'hook-bare', part: 'hook', at_least: 0.7, ...times },
    title: 'hook: × webdis + Redis (`LPUSH` alone)',
    values: (part) => speed(part, bare),
  },
  {
    ...{ id: 'audit-append', part: 'audit-append', at_most: 6, ...times },
    title: 'audit append with a workflow: × the CPU of nginx',
    values: (part) => ratios(part, [own, 'cpu_micros'], ['nginx', 'cpu_micros']),
  },
  {
    ...{ id: 'burst', part: 'schedules', at_least: 1.2, ...times },
    title: 'schedules fired, 5,000 due at once: × the best queue',
    values: (part) => timesTheBest(part),
  },
  {
    ...{ id: 'trickle-late', part: 'schedules', at_most: 20, unit: 'ms', digits: 1 },
    title: '200 schedules a second: lateness p99',
    values: (part) => figuresOf(part, own, 'trickle_p99_ms'),
  },
  {
    ...{ id: 'trickle-cpu', part: 'schedules', at_most: 500, unit: 'µs', digits: 0 },
    title: '200 schedules a second: CPU of each',
    values: (part) => figuresOf(part, own, 'trickle_cpu_micros'),
  },
  {
    ...{ id: 'pending', part: 'pending', at_most: 1.2, ...times },
    title: '1,000 due on top of 100,000 pending of 11 tenants: × the CPU without them',
    values: (part) => ratios(part, [own, 'on_top_cpu_micros'], [own, 'alone_cpu_micros']),
  },
  {
    ...{ id: 'pending-time', part: 'pending', at_most: 1.2, ...times },
    title: '1,000 due on top of 100,000 pending of 11 tenants: × the time without them',
    values: (part) => ratios(part, [own, 'on_top_seconds'], [own, 'alone_seconds']),
  },
  {
    ...{ id: 'memory', part: 'mixed', at_most: 120, unit: 'MiB', digits: 0 },
    title: 'memory after 5 million mixed requests',
    values: (part) => ofMixed(part, 'end_mib'),
  },
  {
    ...{ id: 'memory-flat', part: 'mixed', at_most: 3, unit: 'MiB', digits: 1 },
    title: 'memory: growth over the second half of them',
    values: (part) => ofMixed(part, 'second_half_growth_mib'),
  },
]

export interface Judged {
  aim: Aim
  part: Part | undefined
  /** Null when it was not measured. */
  values: number[] | null
  met: boolean | null
}

export function judge(result: Result): Judged[] {
  return aims.map((aim) => {
    const part = result.parts[aim.part]
    const values = (part && aim.values(part)) ?? null
    return { aim, part, values, met: values && isMet(aim, median(values)) }
  })
}

function isMet({ at_least, at_most }: Aim, value: number): boolean {
  return (at_least === undefined || value >= at_least) && (at_most === undefined || value <= at_most)
}

function speed(part: Part, peer: string): number[] | undefined {
  return ratios(part, [own, 'requests_per_second'], [peer, 'requests_per_second'])
}

/** Of each round. A round that one of them lacks does not count. */
function ratios(part: Part, one: [string, string], other: [string, string]): number[] | undefined {
  const [a, b] = [figuresOf(part, ...one), figuresOf(part, ...other)]
  if (!a || !b) return
  return a.slice(0, b.length).map((value, round) => value / b[round]!)
}

function ofMixed(part: Part, figure: string): number[] | undefined {
  const requests = medianOf(part, own, 'requests') ?? 0
  return requests >= mixed_requests ? figuresOf(part, own, figure) : undefined
}

function timesTheBest(part: Part): number[] | undefined {
  const best = bestQueue(part)
  return best === undefined ? undefined : ratios(part, [own, 'burst_per_second'], [best, 'burst_per_second'])
}

/** The one with the highest median. */
export function bestQueue(part: Part): string | undefined {
  const speedOf = (name: string) => medianOf(part, name, 'burst_per_second') ?? 0
  const best = queue_names.toSorted((one, other) => speedOf(other) - speedOf(one))[0]!
  return speedOf(best) > 0 ? best : undefined
}
