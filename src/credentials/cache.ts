// Keys that were valid a moment ago, so that a hot path seldom looks a key up in the database.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { KeyHolder } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'

/**
 * Another node may have ended a key, and its signal may be lost: no entry is used for longer than this after it was
 * asked for. Less than the second within which a key that has ended is refused everywhere.
 */
const fresh_ms = 900
const entries_max = limit(
  'credentials.cache',
  10_000,
  'entries',
  'Keys that a node remembers as valid. Past it all are forgotten and looked up again.',
)

interface Entry {
  caller: KeyHolder
  expires_at: number | null
  until: number
}

/** A little longer than an entry is used. */
const forgotten_ms = 1_000

interface Others {
  /** Hears of tenants whose keys, plan, status or settings changed on this node. */
  onCleared?(tenant_id: string): void
  /** True where other nodes may remember keys, too. */
  exist?(): boolean
}

export function keyCache(clock: Clock, others: Others = {}): KeyCache {
  const entries = new Map<string, Entry>()
  /** The keys of each tenant in `entries`. */
  const of_tenants = new Map<string, Set<string>>()
  const changes = new Changes()
  /** By tenant. */
  const listeners = new Map<string, Set<() => void>>()

  function remove(key: string, tenant_id: string): void {
    entries.delete(key)
    const keys = of_tenants.get(tenant_id)
    keys?.delete(key)
    if (keys?.size === 0) of_tenants.delete(tenant_id)
  }

  function forget(tenant_id: string | null): void {
    changes.add(tenant_id)
    if (tenant_id === null) {
      entries.clear()
      of_tenants.clear()
    } else {
      for (const key of of_tenants.get(tenant_id) ?? []) entries.delete(key)
      of_tenants.delete(tenant_id)
    }
    const heard = tenant_id === null ? [...listeners.values()] : [listeners.get(tenant_id) ?? []]
    for (const some of heard) for (const listener of [...some]) listener()
  }

  return {
    get(key) {
      const entry = entries.get(key)
      if (entry && entry.until > clock.monotonic()) return entry
      if (entry) remove(key, entry.caller.tenant_id)
      return null
    },
    size: () => entries.size,
    ask: () => ({ at: clock.monotonic(), changes: changes.count }),
    put(key, asked, caller, expires_at) {
      const { tenant_id } = caller
      if (changes.hasChanged(tenant_id, asked.changes)) return
      if (entries.size >= entries_max) {
        entries.clear()
        of_tenants.clear()
      }
      entries.set(key, { caller, expires_at, until: asked.at + fresh_ms })
      const keys = of_tenants.get(tenant_id)
      if (keys) keys.add(key)
      else of_tenants.set(tenant_id, new Set([key]))
    },
    forget,
    onForgotten(tenant_id, listener) {
      const others = listeners.get(tenant_id) ?? new Set()
      listeners.set(tenant_id, others.add(listener))
      return () => {
        if (others.delete(listener) && others.size === 0) listeners.delete(tenant_id)
      }
    },
    clear(tenant_id) {
      forget(tenant_id)
      others.onCleared?.(tenant_id)
    },
    // A signal may be lost, so it is the time that makes it certain.
    forgottenEverywhere: async () => {
      if (others.exist?.()) await Bun.sleep(forgotten_ms)
    },
  }
}

const changes_max = limit(
  'credentials.changes',
  1_000,
  'entries',
  'Tenants for which a node remembers when their keys last changed. Past it no key that is being looked up is remembered.',
)

/** Numbers each change, so that a look-up that began before it is not remembered. */
class Changes {
  count = 0
  /** The number of the last change that concerned all tenants. */
  #of_all = 0
  readonly #of_tenants = new Map<string, number>()

  /** Null: a change of all tenants. */
  add(tenant_id: string | null): void {
    this.count += 1
    const is_known = tenant_id !== null && this.#of_tenants.has(tenant_id)
    if (tenant_id === null || (!is_known && this.#of_tenants.size >= changes_max)) {
      this.#of_all = this.count
      this.#of_tenants.clear()
    }
    if (tenant_id !== null) this.#of_tenants.set(tenant_id, this.count)
  }

  hasChanged(tenant_id: string, after: number): boolean {
    return this.#of_all > after || (this.#of_tenants.get(tenant_id) ?? 0) > after
  }
}
