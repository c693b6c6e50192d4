// The disk of a SQLite database: a reserve is kept free, so that deletes, sweeps and settling continue when it is full.
// Part of the reserve is a file, because other programs fill disks as well: it is released when SQLite finds no room.

import { open as openFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { limit } from '../base/limit.ts'
import { DbError, isFailedWrite } from './errors.ts'
import { isOverQuota, noise, removed, type Space, sizeOf, start_bytes_min } from './space.ts'

const mib = 1_048_576

const reserve_bytes_max = limit(
  'disk.reserve_bytes',
  256 * mib,
  'bytes',
  'Disk space that is kept for deletes, sweeps and settling (DISK_RESERVE): with less, requests that store more get 507. At most a twentieth of the disk, but at least 36 MiB.',
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
  /** True while a quota lets nothing more be written beside the database, whatever `space` says. */
  overQuota?: (database: string) => boolean
}

/** So many looks pass between two tries to make the file of the reserve while a quota is used up. */
const looks_over_quota = 10
/** Until so many looks after a quota refused a write it may have refused another. At least a second. */
const looks_in_doubt = 2

export class Disk {
  readonly #folder: string
  readonly #file: string
  readonly #space: DiskOptions['space']
  readonly reserve_bytes: number
  readonly #overQuota: () => boolean
  readonly #file_bytes: number
  /** Bytes of the file that is there. */
  #held = 0
  #full = false
  /** Looks since a quota refused a write; null unless one has. The system does not say how much is left of it. */
  #over_quota: number | null = null
  #grown_since_look = 0
  #making = false

  constructor(database: string, { reserve_bytes, space, overQuota = isOverQuota }: DiskOptions) {
    this.#folder = dirname(database)
    this.#file = reserveOf(database)
    this.#space = space
    this.#overQuota = () => overQuota(database)
    this.reserve_bytes = reserveBytes(database, { reserve_bytes, space })
    this.#file_bytes = Math.min(reserve_file_bytes_max, this.reserve_bytes)
    removed(this.#unfinished)
    this.#held = sizeOf(this.#file)
    // A start needs some room, too.
    const is_short = () => this.free < start_bytes_min || this.#overQuota()
    if (this.#held > 0 && (this.#file_bytes === 0 || is_short())) this.#release()
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
    if (this.#over_quota !== null) this.#over_quota += 1
    this.#full = this.reserve_bytes > 0 && (left < this.reserve_bytes || this.#over_quota !== null)
  }

  /**
   * The error of a write, as one of kind full when a quota has refused it: SQLite says of that only that a write failed. A flush that
   * failed is never explained so.
   */
  judged(error: unknown): unknown {
    if (!isFailedWrite(error)) return error
    if (this.#overQuota()) {
      this.#over_quota = 0
      this.exhausted() // the reserve is also for a copy of the log, and the end of this state is found by making it again
    } else if (!this.#was_over_quota) return error
    return new DbError('full', 'a quota of the disk is used up', { cause: error })
  }

  /** A commit and a copy of the log may fail together, and what the first has released makes room before the other is judged. */
  get #was_over_quota(): boolean {
    return this.#over_quota !== null && this.#over_quota < looks_in_doubt
  }

  /** SQLite found no room. What grows is refused from now on. */
  exhausted(): void {
    this.#full = true
    this.#release()
  }

  /** Removes the file, if it is there and can be removed. */
  #release(): void {
    this.#making = false
    removed(this.#unfinished)
    if (this.#held > 0 && removed(this.#file)) this.#held = 0
  }

  /** Makes the file, unless it is there or the disk has no room for it. Written, because a hole would reserve nothing. */
  async keepReserve(): Promise<void> {
    if (this.#over_quota === null ? this.#full : this.#over_quota % looks_over_quota > 0) return
    const missing = this.#held !== this.#file_bytes && this.#file_bytes > 0
    if (!missing || this.#making || this.free < this.reserve_bytes) return
    this.#making = true
    try {
      await this.#write()
      if (!this.#making) return // released meanwhile
      await rename(this.#unfinished, this.#file)
      this.#held = this.#file_bytes
      this.#over_quota = null
    } catch (error) {
      // There was no room: it is tried again later, and not at each look where only a try tells how much there is.
      removed(this.#unfinished)
      if ((error as { code?: string }).code === 'EDQUOT') this.#over_quota = 0
    } finally {
      this.#making = false
    }
  }

  async #write(): Promise<void> {
    const file = await openFile(this.#unfinished, 'w', 0o600)
    try {
      const piece = noise(piece_bytes)
      // With more than the reserve itself: what its release has freed does not end the use of a quota.
      const bytes = this.#file_bytes + (this.#over_quota === null ? 0 : start_bytes_min)
      for (let at = 0; at < bytes && this.#making; at += piece_bytes)
        await file.write(piece, 0, Math.min(piece_bytes, bytes - at))
      await file.truncate(this.#file_bytes)
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
