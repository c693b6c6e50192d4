// Due work that was seen and not started, by tenant and lane, so that a pick passes over a full lane at one look.

import type { Seeker, Slots } from './slots.ts'

interface Ranked<T> {
  item: T
  /** Its place in the order that the window was filled in. */
  rank: number
}

type Lanes<T> = Map<string, Ranked<T>[]>

export class Window<T extends Seeker> {
  readonly #tenants = new Map<string, Lanes<T>>()
  #size = 0

  /** What has waited longest comes first. */
  constructor(items: readonly T[] = []) {
    for (const [rank, item] of items.entries()) this.#add(item, rank)
  }

  get size(): number {
    return this.#size
  }

  get tenant_ids(): string[] {
    return [...this.#tenants.keys()]
  }

  /**
   * Takes one item of each of these tenants in turn, and a place for it, until there is no room or nothing left.
   */
  pick(tenant_ids: readonly string[], slots: Slots, wanted: (item: T) => boolean): T[] {
    const picked: T[] = []
    let turns = tenant_ids.map((tenant_id) => openLanes(this.#tenants.get(tenant_id)!, slots, wanted))
    while (turns.length > 0 && slots.free > 0) {
      turns = turns.filter((open) => {
        const item = slots.free > 0 ? next(open, slots, wanted) : null
        if (item) picked.push(item)
        return item !== null
      })
    }
    this.#size -= picked.length
    for (const tenant_id of tenant_ids) this.#forgetEmpty(tenant_id)
    return picked
  }

  #add(item: T, rank: number): void {
    const lanes: Lanes<T> = this.#tenants.get(item.tenant_id) ?? new Map()
    if (lanes.size === 0) this.#tenants.set(item.tenant_id, lanes)
    const queue = lanes.get(item.destination)
    if (queue) queue.push({ item, rank })
    else lanes.set(item.destination, [{ item, rank }])
    this.#size += 1
  }

  #forgetEmpty(tenant_id: string): void {
    const lanes = this.#tenants.get(tenant_id)!
    for (const [destination, queue] of lanes) if (queue.length === 0) lanes.delete(destination)
    if (lanes.size === 0) this.#tenants.delete(tenant_id)
  }
}

/** A lane of which something may be started, at the first such item. */
interface Open<T> {
  queue: Ranked<T>[]
  at: number
}

/** In the order of their first items. */
function openLanes<T extends Seeker>(lanes: Lanes<T>, slots: Slots, wanted: (item: T) => boolean): Open<T>[] {
  const open: Open<T>[] = []
  for (const queue of lanes.values()) {
    if (!slots.isFree(queue[0]!.item)) continue
    const at = queue.findIndex(({ item }) => wanted(item))
    if (at !== -1) open.push({ queue, at })
  }
  return open.sort((one, other) => rankOf(one) - rankOf(other))
}

function rankOf<T>({ queue, at }: Open<T>): number {
  return queue[at]!.rank
}

/** Takes the tenant's first item for which there is a place; null when there is none. */
function next<T extends Seeker>(open: Open<T>[], slots: Slots, wanted: (item: T) => boolean): T | null {
  while (open.length > 0) {
    const lane = open[0]!
    const { item } = lane.queue[lane.at]!
    if (!slots.isFree(item)) {
      open.shift()
      continue
    }
    slots.take(item)
    lane.queue.splice(lane.at, 1)
    while (lane.at < lane.queue.length && !wanted(lane.queue[lane.at]!.item)) lane.at++
    open.shift()
    if (lane.at < lane.queue.length) insert(open, lane)
    return item
  }
  return null
}

/** Keeps the order of first items. */
function insert<T>(open: Open<T>[], lane: Open<T>): void {
  const rank = rankOf(lane)
  const at = open.findIndex((other) => rankOf(other) > rank)
  open.splice(at === -1 ? open.length : at, 0, lane)
}
