// Room on the disk of a SQLite database, and the failures of a start without it.

import { randomBytes } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { randomStep } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { log_bytes } from './connection-settings.ts'

export const start_bytes_min = limit(
  'db.start_bytes',
  8 * 1_048_576,
  'bytes',
  'With less than this free on the disk, the file of the reserve is released before the database is opened.',
)

export interface Space {
  /** Bytes that this process may still take. */
  free: number
  /** Of the whole file system. */
  total: number
}

/** The file system that holds this folder. */
export function spaceOf(folder: string): Space {
  const { bavail, blocks, bsize } = statfsSync(folder)
  return { free: bavail * bsize, total: blocks * bsize }
}

/** True when a file beside the database could not be made or written because the disk is full. */
export function isForLackOfRoom(error: unknown, database: string, space: (folder: string) => Space): boolean {
  const code = String((error as { code?: string }).code ?? '')
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL') return true
  if (!/^SQLITE_(IOERR|CANTOPEN)/.test(code)) return false
  return space(dirname(database)).free < start_bytes_min || isOverQuota(database)
}

/** Of the files of a database and their folder the first that cannot be written: SQLite does not say which. Null when all can. */
function unwritable(path: string): string | null {
  const file = existsSync(path) ? realpathSync(path) : path
  const files = ['', '-wal', '-shm', '.lock', '.lock-journal'].map((end) => file + end)
  const found = files.find((name) => existsSync(name) && !(isWritable(name) && statSync(name).isFile()))
  if (found) return found
  return isWritable(dirname(file)) ? null : dirname(file)
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** More than is left of a quota that has refused a write of SQLite. */
const probe_bytes = 1_048_576

/** True when a quota refuses a file beside the database: of its user, group, project or subvolume. Never throws. */
export function isOverQuota(database: string): boolean {
  let probe: number | null = null
  try {
    probe = newUnnamed(`${database}.${randomStep()}.probe`)
    const bytes = noise(probe_bytes)
    for (let at = 0; at < bytes.length; ) at += writeSync(probe, bytes, at)
    return false
  } catch (error) {
    return (error as { code?: string }).code === 'EDQUOT'
  } finally {
    if (probe !== null) closeSync(probe)
  }
}

/** A file that is there until it is closed, also when the process is killed. */
function newUnnamed(name: string): number {
  const file = openSync(name, 'wx', 0o600)
  removed(name)
  return file
}

/** 0 when there is none. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/**
 * The free room within the files of a database, less what they will still take of the disk: a checkpoint makes the file as
 * large as its pages, and the log grows to the size at which it is checkpointed.
 */
export function reusableIn(path: string, reader: { value(text: string): string | number }): number {
  const page = Number(reader.value('pragma page_size'))
  const free = Number(reader.value('pragma freelist_count')) * page
  const pages = Number(reader.value('pragma page_count')) * page
  const file_grows = Math.max(0, pages - sizeOf(path))
  const log_grows = Math.max(0, log_bytes - sizeOf(`${path}-wal`))
  return free - file_grows - log_grows
}

/** The reason that the database at this path cannot be opened: one line that names the file and says what to do. */
export function explained(error: unknown, path: string, space = spaceOf): unknown {
  const code = String((error as { code?: string }).code ?? '')
  const message = (error as Error).message
  const is_unwritable = /^SQLITE_(READONLY|CANTOPEN|PERM)|^E(ACCES|ROFS|PERM|ISDIR|NOENT|LOOP)$/.test(code)
  const file = is_unwritable ? unwritable(path) : null // before the room: a disk that takes no writes may be full as well
  if (file === null && isForLackOfRoom(error, path, space))
    return new Error(`the disk of ${path} is full: make room and start again (${message})`)
  if (is_unwritable) return new Error(`cannot write to ${file ?? path}: ${message}`)
  if (code.startsWith('SQLITE_CORRUPT'))
    return new Error(`${path} is damaged, or cut short: restore a backup (${message})`)
  if (code === 'SQLITE_NOTADB')
    return new Error(`${path} is not a SQLite database, or its first page is damaged`)
  return code.startsWith('SQLITE_') ? new Error(`cannot open ${path}: ${message} (${code})`) : error
}

/** Bytes that no file system stores in fewer. */
export function noise(bytes: number): Uint8Array {
  return randomBytes(bytes)
}

/** True when there is no such file any more. */
export function removed(file: string): boolean {
  try {
    rmSync(file, { force: true })
    return true
  } catch {
    return false
  }
}
