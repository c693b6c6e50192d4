// Signals between nodes as text: what changed, as short names, and where a node has requests that wait. It holds ids and
// hashes alone, and fits into one NOTIFY of PostgreSQL.

import { limit } from './limit.ts'

/** PostgreSQL takes 7,999 bytes. */
export const text_bytes_max = limit(
  'nodes.text_bytes',
  7_900,
  'bytes',
  'Bounds one signal between nodes, which is one NOTIFY of PostgreSQL; what does not fit goes with the next.',
)

/** Topics fall into this many groups: a node says of each group whether a request of its own waits for a topic in it. */
export const groups_count = 4_096

/** A short name of what a request may wait for: a hash, which names no tenant. */
export function topicOf(key: string): string {
  return Bun.hash.xxHash64(key).toString(16).padStart(16, '0')
}

export function groupOf(topic: string): number {
  return Number.parseInt(topic.slice(0, 3), 16)
}

/** A set of groups. */
export class Groups {
  readonly #bits: Uint8Array

  constructor(bits = new Uint8Array(groups_count / 8)) {
    this.#bits = bits
  }

  /** False when it was there already. */
  add(group: number): boolean {
    if (this.has(group)) return false
    this.#bits[group >> 3]! |= 1 << (group & 7)
    return true
  }

  has(group: number): boolean {
    return (this.#bits[group >> 3]! & (1 << (group & 7))) !== 0
  }

  get isEmpty(): boolean {
    return this.#bits.every((bits) => bits === 0)
  }

  /** Those that are here and not in the other set. */
  *without(other: Groups): Generator<number> {
    for (let at = 0; at < this.#bits.length; at++) {
      if (this.#bits[at] === 0) continue
      for (let group = at * 8; group < at * 8 + 8; group++) {
        if (this.has(group) && !other.has(group)) yield group
      }
    }
  }

  toText(): string {
    return this.#bits.toBase64()
  }

  /** Null for a text that is none. */
  static fromText(text: string): Groups | null {
    try {
      const bits = Uint8Array.fromBase64(text)
      return bits.length === groups_count / 8 ? new Groups(bits) : null
    } catch {
      return null
    }
  }
}

export interface Signal {
  /** The node that sends it. */
  from: string
  /** The groups of topics that its requests wait for; replaces what it said before. */
  waits: Groups | null
  /** Topics that have changed. */
  topics: string[]
  /** Something in these groups changed shortly before this node learned that a request waits for it. */
  groups: number[]
  /** More topics changed than are named. */
  all_topics: boolean
  /** Keys, plan or status of these tenants changed. */
  tenant_ids: string[]
  /** More tenants changed than are named. */
  all_tenants: boolean
  /** Jobs are due that the node has no permits for. */
  due: boolean
}

/** The signal of a process that is not a node: keys, plan or status of this tenant changed. */
export function tenantSignal(tenant_id: string): string {
  return JSON.stringify({ from: '', tenant_ids: [tenant_id] })
}

/** A part of a signal that is absent has changed nothing. */
export function signalText(signal: Signal): string {
  const { from, waits, topics, groups, all_topics, tenant_ids, all_tenants, due } = signal
  return JSON.stringify({
    from,
    ...(waits ? { waits: waits.toText() } : {}),
    ...(topics.length > 0 ? { topics } : {}),
    ...(groups.length > 0 ? { groups } : {}),
    ...(all_topics ? { all_topics } : {}),
    ...(tenant_ids.length > 0 ? { tenant_ids } : {}),
    ...(all_tenants ? { all_tenants } : {}),
    ...(due ? { due } : {}),
  })
}

/** Null for a text that is none. Members that another version of the service added are ignored. */
export function signalOf(text: string): Signal | null {
  const given = parsed(text)
  if (typeof given?.from !== 'string') return null
  return {
    from: given.from,
    waits: typeof given.waits === 'string' ? Groups.fromText(given.waits) : null,
    topics: listOf(given.topics, (topic) => typeof topic === 'string'),
    groups: listOf(given.groups, (group) => Number.isInteger(group) && group >= 0 && group < groups_count),
    all_topics: given.all_topics === true,
    tenant_ids: listOf(given.tenant_ids, (tenant_id) => typeof tenant_id === 'string'),
    all_tenants: given.all_tenants === true,
    due: given.due === true,
  }
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

function listOf<T>(value: unknown, fits: (one: T) => boolean): T[] {
  return Array.isArray(value) ? (value as T[]).filter(fits) : []
}
