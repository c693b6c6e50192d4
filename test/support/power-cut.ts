// A SQLite database, whose log is flushed by `sync`, after a power cut: all that was written before the last flush
// began, and of what came later any subset, torn at sectors of 512 bytes. The files are copied when a flush begins, so
// nothing is assumed of the order in which the system writes back.
//
// Flushes of SQLite's own are taken as done: that of the log's first sector when the log begins again, and those of a
// checkpoint, which flushes the pages of the log that it copies first and the file last. Nothing is cut while one runs.

import { Database } from 'bun:sqlite'
import { fdatasyncSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const sector_bytes = 512
// SQLite's "WAL-mode File Format".
const log_header_bytes = 32
const log_page_bytes = 24 + 4_096

/** A number from 0 to below 1. */
export type Random = () => number

/** mulberry32, so that a run can be repeated from its seed. */
export function randomFrom(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export class Disk {
  #log: Buffer = Buffer.alloc(0)

  /** `path` is the file of the database. */
  constructor(
    readonly path: string,
    private readonly random: Random,
  ) {}

  /** A flush of the log that is honest, and takes some turns of the event loop. */
  sync = async (fd: number): Promise<void> => {
    const covered = readFileSync(`${this.path}-wal`)
    const turns = 1 + Math.floor(this.random() * 4)
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    fdatasyncSync(fd)
    this.#log = covered
  }

  /** Called in the midst of the next flush in the event loop at which the file may be cut. */
  duringFlush: (() => void) | null = null

  /** The same at once. */
  syncInLoop = (fd: number): void => {
    const covered = readFileSync(`${this.path}-wal`)
    if (!this.checkpointing) {
      this.duringFlush?.()
      this.duringFlush = null
    }
    fdatasyncSync(fd)
    this.#log = covered
  }

  /** True while the file is not to be cut. */
  checkpointing = false

  /** A checkpoint flushed the log up to this page, copied it, and flushed the file. */
  copied(pages: number | undefined): void {
    this.checkpointing = false
    if (pages === undefined) throw new Error('the thread did not say how much of the log it copied')
    const written = readFileSync(`${this.path}-wal`)
    const covered = Math.min(log_header_bytes + pages * log_page_bytes, written.length)
    const log = Buffer.alloc(Math.max(this.#log.length, covered))
    this.#log.copy(log)
    written.copy(log, 0, 0, covered)
    this.#log = log
  }

  /** The first bytes of the log, which are others once it has begun again. */
  logHeader(): string {
    return readFileSync(`${this.path}-wal`).subarray(0, log_header_bytes).toString('hex')
  }

  /** The rows of a query in what a cut right now leaves. Throws when SQLite finds the file damaged. */
  afterCut<Row>(query: string): Row[] {
    const folder = mkdtempSync(join(tmpdir(), 'waystation-cut-'))
    const path = join(folder, 'test.db')
    try {
      writeFileSync(path, readFileSync(this.path))
      writeFileSync(`${path}-wal`, this.#torn(readFileSync(`${this.path}-wal`)))
      const db = new Database(path)
      try {
        const found = db.query<{ integrity_check: string }, []>('pragma integrity_check').all()
        if (found[0]?.integrity_check !== 'ok') throw new Error(`damaged: ${found[0]?.integrity_check}`)
        return db.query<Row, []>(query).all()
      } finally {
        db.close()
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  #torn(written: Buffer): Buffer {
    // Now and then none of it, or all of it, which chance alone would never give.
    const kept_share = [0, 1, this.random(), this.random()][Math.floor(this.random() * 4)]!
    const left = Buffer.alloc(written.length)
    this.#log.copy(left)
    written.copy(left, 0, 0, Math.min(sector_bytes, written.length))
    for (let at = sector_bytes; at < written.length; at += sector_bytes) {
      if (this.random() < kept_share) written.copy(left, at, at, at + sector_bytes)
    }
    return left
  }
}
