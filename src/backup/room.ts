// Room for a backup: a full disk stops the service, so a backup that does not fit is refused before it is written.

import { readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Millis, systemClock } from '../base/clock.ts'
import { reserveLeft } from '../db/disk.ts'
import { type Space, sizeOf, spaceOf } from '../db/space.ts'
import { besideOf, newestFirst } from './kept.ts'
import { verifyBackup } from './verify.ts'

export interface RoomOptions {
  /** DISK_RESERVE of the service. */
  disk_reserve_bytes?: number | null
  /** Called when room is short: backups that the service has written by itself are removed then, and named to it. */
  onRemoved?: ((file: string) => void) | undefined
  space?: (folder: string) => Space
}

/** Throws when the folder has no room for so many bytes. `database`: of SQLite, whose reserve stays free on the same disk. */
export function requireRoom(
  folder: string,
  bytes: number,
  database: string | null,
  options: RoomOptions = {},
): void {
  const { disk_reserve_bytes = null, onRemoved, space = spaceOf } = options
  const reserve_bytes =
    database !== null && shareDisk(folder, dirname(database))
      ? reserveLeft(database, { reserve_bytes: disk_reserve_bytes, space })
      : 0
  const needed = bytes + reserve_bytes
  if (space(folder).free >= needed) return
  if (onRemoved) makeRoom({ folder, needed, space, onRemoved, now: systemClock.now() })
  const { free } = space(folder)
  if (free >= needed) return
  const reserve = reserve_bytes === 0 ? '' : ` beside the ${reserve_bytes} of DISK_RESERVE`
  throw new Error(`the backup may need ${bytes} bytes${reserve}, and ${folder} has ${free} free`)
}

function shareDisk(one: string, other: string): boolean {
  return statSync(one).dev === statSync(other).dev
}

interface Wanted {
  folder: string
  needed: number
  space: (folder: string) => Space
  onRemoved: (file: string) => void
  now: Millis
}

/** Removes the oldest backups; the newest one that is whole stays, and all of them when that is not enough. */
function makeRoom({ folder, needed, space, onRemoved, now }: Wanted): void {
  const names = readdirSync(folder)
  const backups = newestFirst(names, now)
  const enough = (old: readonly string[]) =>
    space(folder).free + old.reduce((sum, name) => sum + sizeOf(join(folder, name)), 0) >= needed
  if (!enough(backups.slice(1))) return
  const old = backups.slice(1 + backups.findIndex((name) => isWhole(join(folder, name))))
  if (old.length === backups.length || !enough(old)) return
  for (const name of old.toReversed()) {
    for (const each of besideOf(names, name)) rmSync(join(folder, each), { force: true })
    onRemoved(join(folder, name))
    if (space(folder).free >= needed) return
  }
}

function isWhole(file: string): boolean {
  try {
    verifyBackup(file)
    return true
  } catch {
    return false
  }
}
