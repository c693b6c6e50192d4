// Due jobs that were read and not started, by tenant and lane, so that a full lane is skipped in one step.

import type { Candidate, ConcurrencyLimiter } from './concurrency.ts'

interface Ranked<T> {
  item: T
  /** Its position in the order that the buffer was filled in. */
  rank: number
}

type Lanes<T> = Map<string, Ranked<T>[]>

export class JobBuffer<T extends Candidate> {
  readonly #tenants = new Map<string, Lanes<T>>()
  #size = 0

  /** The longest due comes first. */
  constructor(items: readonly T[] = []) {
    for (const [rank, item] of items.entries()) this.#add(item, rank)
  }

  get size(): number {
    return this.#size
  }

  get tenant_ids(): string[] {
    return [...this.#tenants.keys()]
  }

  /** Round robin: takes one job of each of these tenants, and a permit for it, until there is no room or none left. */
  take(tenant_ids: readonly string[], limiter: ConcurrencyLimiter, wanted: (item: T) => boolean): T[] {
    const taken: T[] = []
    let turns = tenant_ids.map((tenant_id) => openLanes(this.#tenants.get(tenant_id)!, limiter, wanted))
    while (turns.length > 0 && limiter.free > 0) {
      turns = turns.filter((open) => {
        const item = limiter.free > 0 ? takeFirst(open, limiter, wanted) : null
        if (item) taken.push(item)
        return item !== null
      })
    }
    this.#size -= taken.length
    for (const tenant_id of tenant_ids) this.#removeEmpty(tenant_id)
    return taken
  }

  #add(item: T, rank: number): void {
    const lanes: Lanes<T> = this.#tenants.get(item.tenant_id) ?? new Map()
    if (lanes.size === 0) this.#tenants.set(item.tenant_id, lanes)
    const queue = lanes.get(item.destination)
    if (queue) queue.push({ item, rank })
    else lanes.set(item.destination, [{ item, rank }])
    this.#size += 1
  }

  #removeEmpty(tenant_id: string): void {
    const lanes = this.#tenants.get(tenant_id)!
    for (const [destination, queue] of lanes) if (queue.length === 0) lanes.delete(destination)
    if (lanes.size === 0) this.#tenants.delete(tenant_id)
  }
}

/** A lane of which a job may be started, at the first such job. */
interface OpenLane<T> {
  queue: Ranked<T>[]
  at: number
}

/** In the order of their first jobs. */
function openLanes<T extends Candidate>(
  lanes: Lanes<T>,
  limiter: ConcurrencyLimiter,
  wanted: (item: T) => boolean,
): OpenLane<T>[] {
  const open: OpenLane<T>[] = []
  for (const queue of lanes.values()) {
    if (!limiter.mayAcquire(queue[0]!.item)) continue
    const at = queue.findIndex(({ item }) => wanted(item))
    if (at !== -1) open.push({ queue, at })
  }
  return open.sort((one, other) => rankOf(one) - rankOf(other))
}

function rankOf<T>({ queue, at }: OpenLane<T>): number {
  return queue[at]!.rank
}

/** Takes the tenant's first job for which there is a permit; null when there is none. */
function takeFirst<T extends Candidate>(
  open: OpenLane<T>[],
  limiter: ConcurrencyLimiter,
  wanted: (item: T) => boolean,
): T | null {
  while (open.length > 0) {
    const lane = open[0]!
    const { item } = lane.queue[lane.at]!
    if (!limiter.mayAcquire(item)) {
      open.shift()
      continue
    }
    limiter.acquire(item)
    lane.queue.splice(lane.at, 1)
    while (lane.at < lane.queue.length && !wanted(lane.queue[lane.at]!.item)) lane.at++
    open.shift()
    if (lane.at < lane.queue.length) insert(open, lane)
    return item
  }
  return null
}

/** Keeps the order of first jobs. */
function insert<T>(open: OpenLane<T>[], lane: OpenLane<T>): void {
  const rank = rankOf(lane)
  const at = open.findIndex((other) => rankOf(other) > rank)
  open.splice(at === -1 ? open.length : at, 0, lane)
}
