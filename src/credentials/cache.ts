// Keys that were valid a moment ago, so that a hot path looks a key up in the database once a second at most.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { Caller } from '../contract/caller.ts'
import type { KeyCache } from '../contract/dependencies.ts'

/** Another node may have ended a key: no entry is trusted for longer than this. */
const fresh_ms = 1_000
const entries_max = limit(
  'credentials.cache',
  10_000,
  'entries',
  'Keys that a node remembers as valid. Past it all are forgotten and looked up again.',
)

interface Entry {
  caller: Caller
  expires_at: number | null
  until: number
}

export function keyCache(clock: Clock): KeyCache {
  const entries = new Map<string, Entry>()
  let generation = 0
  return {
    get(key) {
      const entry = entries.get(key)
      if (entry && entry.until > clock.monotonic()) return entry
      if (entry) entries.delete(key)
      return null
    },
    generation: () => generation,
    put(key, asked_in, caller, expires_at) {
      if (asked_in !== generation) return
      if (entries.size >= entries_max) entries.clear()
      entries.set(key, { caller, expires_at, until: clock.monotonic() + fresh_ms })
    },
    clear() {
      generation += 1
      entries.clear()
    },
  }
}
