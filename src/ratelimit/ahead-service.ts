// A window that begins later than now: the clock was set back, or it was set ahead and this node has not followed yet. Only in
// the first case may it begin now. Until all nodes have followed, one would otherwise end the windows that another begins.

import type { Clock, Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { Remembered } from '../base/remembered.ts'
import type { Db } from '../db/db.ts'
import { DelegatingDb } from '../db/delegating.ts'

/** While this node follows twice, every other one follows at least once. */
const times_followed = 2

const windows_max = limit(
  'rate_limit.windows_ahead',
  10_000,
  'entries',
  'Windows that begin later than now, which a node remembers after a clock was set.',
)

interface Seen {
  expires_at: Millis
  followed: number
}

const seen_ahead = new WeakMap<Db, Remembered<Seen>>()

/** True when a window that begins later than now still does so after this node has asked for the time often enough. */
export function isClockBack(db: Db, name: string, expires_at: Millis): boolean {
  const { followed }: Clock = db.clock
  if (followed === undefined) return true
  const behind = DelegatingDb.behind(db)
  const windows = seen_ahead.get(behind) ?? new Remembered<Seen>(windows_max)
  seen_ahead.set(behind, windows)
  const seen = windows.get(name)
  if (seen?.expires_at !== expires_at) {
    windows.put(name, { expires_at, followed })
    return false
  }
  return followed - seen.followed >= times_followed
}
