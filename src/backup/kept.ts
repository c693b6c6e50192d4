// The backups that the service writes by itself: their names say when, and which of them are kept.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { iso, type Millis, parseTime } from '../base/clock.ts'
import { sizeOf } from '../db/space.ts'
import { keptChecksum } from './file.ts'

/** `waystation-2026-11-22T20-41-27.000Z.db`, which sorts by time. */
export function nameOf(at: Millis): string {
  return `waystation-${iso(at).replaceAll(':', '-')}.db`
}

/** Empty when the folder cannot be read: it is made for the first backup. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** The backups that hold something and have their checksum beside them: the others are what is left of one. */
export function completeIn(folder: string): string[] {
  return namesIn(folder).filter((name) => timeOf(name) !== null && isComplete(join(folder, name)))
}

/** A look at the two files, not through them: `admin verify` does that. */
function isComplete(path: string): boolean {
  try {
    return sizeOf(path) > 0 && keptChecksum(path) !== null
  } catch {
    return false
  }
}

/** Null for a file of another kind. */
export function timeOf(name: string): Millis | null {
  const [, day, hour, minute, second] =
    /^waystation-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d(?:\.\d+)?Z)\.db$/.exec(name) ?? []
  return day === undefined ? null : parseTime(`${day}T${hour}:${minute}:${second}`)
}

/**
 * The backups among these files. A file dated ahead of now, by a clock that was wrong or that was set back since, is not
 * counted: it would put the next backup off, and push out those that are made now.
 */
export function newestFirst(names: readonly string[], now: Millis): string[] {
  const isPast = (at: Millis | null) => at !== null && at <= now
  return names
    .filter((name) => isPast(timeOf(name)))
    .toSorted()
    .toReversed()
}

/** When the newest was begun; null when there is none. */
export function newestAt(names: readonly string[], now: Millis): Millis | null {
  const [newest] = newestFirst(names, now)
  return newest === undefined ? null : timeOf(newest)
}

/** When the next one is due: at once when there is none. */
export function nextAt(names: readonly string[], every_ms: Millis, now: Millis): Millis {
  const newest_at = newestAt(names, now)
  return newest_at === null ? 0 : newest_at + every_ms
}

/** The backup and what was written beside it. */
export function besideOf(names: readonly string[], backup: string): string[] {
  return names.filter((name) => backupOf(name) === backup)
}

/** Those that are not kept, with what was written beside them, and what an interrupted one has left. */
export function removable(names: readonly string[], keep: number, now: Millis): string[] {
  const old = new Set(newestFirst(names, now).slice(keep))
  return names.filter((name) => {
    if (/\.part([-.]|$)/.test(name)) return timeOf(backupOf(name)) !== null
    return old.has(backupOf(name))
  })
}

/** Not of secrets, which only the operator puts there: they may be the only copy of a key. */
function backupOf(name: string): string {
  return name.replace(/\.(sha256|part.*)$/, '')
}
