// The disk of a SQLite database: a reserve is kept free, so that deletes, sweeps and settling continue when it is full.
// Part of the reserve is a file, because other programs fill disks as well: it is released when SQLite finds no room.

import { rmSync } from 'node:fs'
import { open as openFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { limit } from '../base/limit.ts'
import { type Space, sizeOf, start_bytes_min } from './space.ts'

const mib = 1_048_576

const reserve_bytes_max = limit(
  'disk.reserve_bytes',
  256 * mib,
  'bytes',
  'Disk space that is kept for deletes, sweeps and settling (DISK_RESERVE): with less, what grows is answered 507. At most a twentieth of the disk, but at least 36 MiB.',
)
const reserve_share = 1 / 20
/**
 * Enough for a checkpoint to move a whole write-ahead log of 16 MB into the database, which may grow by as much; after
 * that the log's own room is written again.
 */
const reserve_file_bytes_max = limit(
  'disk.reserve_file_bytes',
  32 * mib,
  'bytes',
  'The part of the reserve that is a file beside the database, and is released when the disk is full.',
)
const reserve_bytes_min = limit(
  'db.reserve_bytes',
  reserve_file_bytes_max + 4 * mib,
  'bytes',
  'The least that is kept free on the disk of a SQLite database unless DISK_RESERVE is 0.',
)
/** The file is written in pieces of this size. */
const piece_bytes = mib

export interface DiskOptions {
  /** Null: by the size of the disk. 0: nothing is reserved. */
  reserve_bytes: number | null
  space: (folder: string) => Space
}

export class Disk {
  readonly #folder: string
  readonly #file: string
  readonly #space: DiskOptions['space']
  readonly reserve_bytes: number
  readonly #file_bytes: number
  /** Bytes of the file that is there. */
  #held = 0
  #full = false
  #grown_since_look = 0
  #making = false

  constructor(database: string, { reserve_bytes, space }: DiskOptions) {
    this.#folder = dirname(database)
    this.#file = reserveOf(database)
    this.#space = space
    this.reserve_bytes = reserveBytes(database, { reserve_bytes, space })
    this.#file_bytes = Math.min(reserve_file_bytes_max, this.reserve_bytes)
    removed(this.#unfinished)
    this.#held = sizeOf(this.#file)
    // A start needs some room, too.
    if (this.#file_bytes === 0 || this.free < start_bytes_min) this.release()
  }

  get #unfinished(): string {
    return `${this.#file}.new`
  }

  get full(): boolean {
    return this.#full
  }

  /** Bytes that are free on the disk. */
  get free(): number {
    return this.#space(this.#folder).free
  }

  /** After a commit. */
  grew(bytes: number): void {
    this.#grown_since_look += bytes
  }

  /** True when the database grew enough since the last look that another is due. */
  get look_due(): boolean {
    const enough = Math.max(mib, (this.reserve_bytes - this.#file_bytes) / 4)
    return this.reserve_bytes > 0 && this.#grown_since_look > enough
  }

  /** `reusable`: bytes that the database has free within its files, less what it will still take of the disk. */
  look(reusable: number): void {
    this.#held = sizeOf(this.#file) // it may have been removed
    const left = this.free + this.#held + reusable
    this.#grown_since_look = 0
    this.#full = this.reserve_bytes > 0 && left < this.reserve_bytes
  }

  /** SQLite found no room. What grows is refused from now on; true when there is more room than before. */
  exhausted(): boolean {
    this.#full = true
    return this.release()
  }

  /** Removes the file; false when there is none, or it cannot be removed. Never throws. */
  release(): boolean {
    this.#making = false
    removed(this.#unfinished)
    if (this.#held === 0 || !removed(this.#file)) return false
    this.#held = 0
    return true
  }

  /** Makes the file, unless it is there or the disk has no room for it. Written, because a hole would reserve nothing. */
  async keepReserve(): Promise<void> {
    const missing = this.#held !== this.#file_bytes && this.#file_bytes > 0
    if (!missing || this.#making || this.free < this.reserve_bytes) return
    this.#making = true
    try {
      await this.#write()
      if (!this.#making) return // released meanwhile
      await rename(this.#unfinished, this.#file)
      this.#held = this.#file_bytes
    } catch {
      // There was no room: it is tried again later.
      removed(this.#unfinished)
    } finally {
      this.#making = false
    }
  }

  async #write(): Promise<void> {
    const file = await openFile(this.#unfinished, 'w', 0o600)
    try {
      const piece = noise(piece_bytes)
      for (let at = 0; at < this.#file_bytes && this.#making; at += piece_bytes)
        await file.write(piece, 0, Math.min(piece_bytes, this.#file_bytes - at))
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

function reserveBytes(database: string, { reserve_bytes, space }: DiskOptions): number {
  const share = Math.round(space(dirname(database)).total * reserve_share)
  return reserve_bytes ?? Math.min(reserve_bytes_max, Math.max(reserve_bytes_min, share))
}

/** Bytes that must stay free on the disk of this database, beside the file of the reserve: with less, what grows is refused. */
export function reserveLeft(database: string, options: DiskOptions): number {
  return Math.max(0, reserveBytes(database, options) - sizeOf(reserveOf(database)))
}

function reserveOf(database: string): string {
  return `${database}.reserve`
}

/** Removes the reserve of a database that no process has open. */
export function releaseReserve(database: string): void {
  removed(reserveOf(database))
}

/** True when there is no such file any more. */
function removed(file: string): boolean {
  try {
    rmSync(file, { force: true })
    return true
  } catch {
    return false
  }
}

/** Bytes that no file system stores in fewer. They need not be hard to guess (Marsaglia's xorshift32). */
function noise(bytes: number): Uint8Array {
  const words = new Uint32Array(bytes / 4)
  let state = 2_463_534_242
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[i] = state
  }
  return new Uint8Array(words.buffer)
}
