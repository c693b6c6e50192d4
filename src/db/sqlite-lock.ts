// The lock of a SQLite file: one server at a time has it open.

import { Database } from 'bun:sqlite'
import { closeSync, constants, existsSync, openSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { flushFolder } from '../base/folder.ts'
import { type DiskOptions, releaseReserve } from './disk.ts'
import { explained, isForLackOfRoom, sizeOf } from './space.ts'

/**
 * Makes the file unless it is there, also where the path is a link that leads to nothing yet. Returns the file's own name:
 * its lock, its log and its reserve lie beside it, whatever name it is opened by. Throws for a log without its file: SQLite would
 * remove it, and with it what was acknowledged and is not in the file that was moved away.
 */
export function fileAt(path: string): string {
  const found = existsSync(path)
  if (!found && sizeOf(`${path}-wal`) > 0)
    throw new Error(
      `${path} was removed or moved, and its log ${path}-wal is still there: put the database back, or move the log away to begin with an empty one`,
    )
  if (!found) closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT, 0o644))
  const file = ownName(path)
  if (!found) flushFolder(dirname(file))
  return file
}

/** Past links, also past one to a file that is not there yet. */
export function ownName(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  try {
    const target = resolve(realpathSync(dirname(path)), readlinkSync(path))
    return join(realpathSync(dirname(target)), basename(target)) // its folder is not made: it may lie on a disk that is not mounted
  } catch {
    return path // no link, or one that leads nowhere
  }
}

/** On a full disk the reserve makes the room that even the lock needs. A lock that is held needs none. */
export function lockInRoom(file: string, space: DiskOptions['space']): Database {
  try {
    return lockFile(`${file}.lock`)
  } catch (error) {
    if (!isForLackOfRoom(error, file, space)) throw explained(error, file, space)
    releaseReserve(file)
    return lockFile(`${file}.lock`)
  }
}

/**
 * One server per file. The lock is an exclusive transaction on a small database beside it, so the kernel releases
 * it when the process dies, however it dies.
 */
function lockFile(path: string): Database {
  const lock = takeLock(path)
  if (lock !== null) return lock
  const next = 'stop it, or choose another database with DATA_DIR or DATABASE_URL'
  throw new Error(`another process has this database open (${path}); ${next}`)
}

/** Null when another process, or another call in this one, holds it. The lock ends when it is closed. */
export function takeLock(path: string): Database | null {
  const lock = new Database(path, { create: true })
  try {
    lock.run('pragma busy_timeout = 0')
    lock.run('pragma journal_mode = delete')
    lock.run('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    const held = String((error as { code?: string }).code).startsWith('SQLITE_BUSY')
    if (!held) throw error
    return null
  }
}
