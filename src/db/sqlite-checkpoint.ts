// Checkpoints on a thread of their own: copying the log into the file, and the two flushes that belong to it, would hold
// up the event loop for as long as they take.

import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { log_pages, type Settings, sqlite_pragmas, unsafeSqlite } from './connection-settings.ts'
import { stalled_ms_min } from './sqlite-flush.ts'

/** Past this size commits wait for the copy that is under way. */
const held_pages = 2 * log_pages
/** The size of the log is looked at after so many commits, or so many bytes: a look costs as much as a small write. */
const looked_at_every = 4
const looked_at_bytes = 262_144
/** Counted for each write of a commit besides its bytes: 256 are looked at, however short they are. */
const write_bytes = 1_024
/** A log that could not be begun again, because another process reads from it, is tried again after it grew by this. */
const again_pages = log_pages / 4

/** How often the log is copied beside commits while they make it grow by `again_pages` in the meantime. */
const copies_beside_commits = 4
const reads_ms_max = limit(
  'sqlite.reads_ms',
  250,
  'milliseconds',
  'Bounds how long commits wait, before and after the last of the log is copied, for reads of several statements that keep the log from starting over.',
)

// As text, so that it is part of the executable too. The connection's synchronous is FULL: SQLite flushes the log before
// it copies from it, and the file before the log may be begun again. The first write to a log that is begun again flushes
// its header, so the thread makes that write: it sets user_version to the value that it has. The simulated power cuts of
// the tests read `copied`, the pages of the log that are in the file.
const thread = `
import { Database } from 'bun:sqlite'
let db = null
function beginAgain() {
  db.run('begin immediate')
  try {
    db.run('pragma user_version = ' + db.query('pragma user_version').values()[0][0])
    db.run('commit')
  } finally {
    if (db.inTransaction) db.run('rollback')
  }
}
function open(path, pragmas) {
  db?.close()
  db = new Database(path)
  for (const pragma of pragmas) db.run(pragma)
  const value = (text) => db.query(text).values()[0][0]
  return {
    sqlite_version: value('select sqlite_version()'),
    journal_mode: value('pragma journal_mode'),
    synchronous: value('pragma synchronous'),
    foreign_keys: value('pragma foreign_keys'),
  }
}
self.onmessage = ({ data: { path, pragmas, copy, begin_again, close } }) => {
  try {
    let settings, copied
    if (pragmas) settings = open(path, pragmas)
    if (copy) copied = db.query('pragma wal_checkpoint(passive)').values()[0][2]
    if (begin_again) beginAgain()
    if (close) db?.close()
    postMessage({ settings, copied })
  } catch (error) {
    postMessage({ failure: { message: error.message, code: error.code, errno: error.errno } })
  }
}`

export interface CheckpointOptions {
  clock: Clock
  /** The size of the log. */
  logPages(): number
  /** Copies the log here and now, when the thread cannot. */
  copy(): void
  /** Resolves when every commit is on the disk. */
  idle(): Promise<void>
  /** Ends the snapshots that no read is in the middle of; the others it waits for, for so long. */
  settle(ms_max: number): Promise<void>
  /** False once the path leads to another file, or to none. */
  mayOpen(): boolean
  onError(error: unknown): void
}

export class Checkpoints {
  readonly #thread: CheckpointThread
  #running: Promise<void> | null = null
  #hold: (PromiseWithResolvers<void> & { since: number }) | null = null
  /** Commits since the size of the log was looked at, and their bytes. */
  #unlooked = 0
  #unlooked_bytes = 0
  /** The size of the log when it was last copied; 0 once it has begun again. */
  #copied_pages = 0

  constructor(
    path: string,
    private readonly options: CheckpointOptions,
  ) {
    this.#thread = new CheckpointThread(path, options.mayOpen)
  }

  /** Commits wait for this. */
  get hold(): Promise<void> | undefined {
    return this.#hold?.promise
  }

  /** True when commits wait because the disk does not answer. */
  get stalled(): boolean {
    return this.#hold !== null && this.options.clock.monotonic() - this.#hold.since >= stalled_ms_min
  }

  /** Counts a commit that is about to be made, of so many writes of about so many bytes. */
  count(writes: number, bytes: number): void {
    this.#unlooked += 1
    this.#unlooked_bytes += bytes + writes * write_bytes
  }

  runWhenDue(): void {
    if (this.#unlooked < looked_at_every && this.#unlooked_bytes < looked_at_bytes) return
    this.#unlooked = this.#unlooked_bytes = 0
    try {
      this.#beginWhenDue(this.options.logPages())
    } catch (error) {
      this.options.onError(error)
    }
  }

  #beginWhenDue(pages: number): void {
    if (pages < this.#copied_pages) this.#copied_pages = 0
    if (this.#running) {
      if (pages >= held_pages) this.#holdCommits()
    } else if (pages >= Math.max(log_pages, this.#copied_pages + again_pages)) {
      this.#running = this.#run().finally(() => {
        this.#running = null
      })
    }
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    await this.#running
  }

  /**
   * Copies the log into the file, beside reads and writes. SQLite begins the log again once all of it is copied and no
   * reader keeps any of it, so commits wait for a moment while the last of it is copied. A read that began before all was
   * copied keeps some of it, and those that begin later do not.
   */
  async #run(): Promise<void> {
    const { clock, idle, settle, logPages, onError } = this.options
    try {
      await this.#copyBesideCommits()
      this.#holdCommits()
      await idle()
      await settle(reads_ms_max)
      this.#hold!.since = clock.monotonic()
      const by_thread = await this.#copy()
      this.#copied_pages = logPages()
      await settle(reads_ms_max)
      if (by_thread) await this.#beginAgain()
    } catch (error) {
      onError(error)
    } finally {
      this.#hold?.resolve()
      this.#hold = null
    }
  }

  /** Until little is left, for which commits wait. */
  async #copyBesideCommits(): Promise<void> {
    for (let round = 0; round < copies_beside_commits && !this.#hold; round++) {
      const before = this.options.logPages()
      await this.#copy()
      if (this.options.logPages() - before < again_pages) return
    }
  }

  #holdCommits(): void {
    this.#hold ??= { ...Promise.withResolvers(), since: this.options.clock.monotonic() }
  }

  /** A log that nothing copies would grow without end, so it is copied here when there is no thread: then false. */
  async #copy(): Promise<boolean> {
    try {
      await this.#thread.copy()
      return true
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error
      this.options.copy()
      return false
    }
  }

  /** Without the thread the next commit begins it again, and flushes its header in the event loop. */
  async #beginAgain(): Promise<void> {
    try {
      await this.#thread.beginAgain()
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error
    }
  }

  async close(): Promise<void> {
    await this.#running
    await this.#thread.close()
  }
}

/** The thread's connection could lose what it copies. */
export class UnsafeThread extends Error {}

/** The thread could not be started, may not open the file, or has ended. */
class ThreadError extends Error {}

class CheckpointThread {
  #worker: Worker | null = null
  #answer: PromiseWithResolvers<Settings | undefined> | null = null
  /** The connection of the worker is open, and was found to be safe. */
  #is_open = false

  constructor(
    private readonly path: string,
    private readonly mayOpen: () => boolean,
  ) {}

  /**
   * Copies what no reader keeps. One at a time. Throws what SQLite throws, an UnsafeThread, or a ThreadError; then the next
   * starts a new thread.
   */
  async copy(): Promise<void> {
    if (!this.#is_open) await this.#open()
    await this.#ask({ path: this.path, copy: true })
  }

  /** The settings are read back, and judged before anything is copied. */
  async #open(): Promise<void> {
    await this.#ask({ path: this.path }) // the thread has begun: between this look and its own there is next to no time
    if (!this.mayOpen()) throw new ThreadError(`${this.path} is another file`)
    const unsafe = unsafeSqlite((await this.#ask({ path: this.path, pragmas: sqlite_pragmas }))!)
    if (unsafe) throw new UnsafeThread(`refusing to copy the log of ${this.path}: ${unsafe}`)
    this.#is_open = true
  }

  /** After a copy, while nothing else writes: the first write to the log after all of it was copied, flushed when this resolves. */
  async beginAgain(): Promise<void> {
    await this.#ask({ begin_again: true })
  }

  async close(): Promise<void> {
    if (!this.#worker) return
    await this.#ask({ close: true }).catch(() => {})
    this.#worker?.terminate()
    this.#worker = null
  }

  #ask(message: object): Promise<Settings | undefined> {
    const answer = Promise.withResolvers<Settings | undefined>()
    this.#answer = answer
    try {
      this.#worker ??= this.#started()
      this.#worker.postMessage(message)
    } catch (error) {
      this.#ended((error as Error).message)
    }
    return answer.promise
  }

  #started(): Worker {
    const url = URL.createObjectURL(new Blob([thread], { type: 'application/javascript' }))
    const worker = new Worker(url, { smol: true })
    worker.unref()
    worker.onmessage = ({ data }) => {
      if (data.failure) this.#answer?.reject(Object.assign(new Error(data.failure.message), data.failure))
      else this.#answer?.resolve(data.settings)
    }
    worker.onerror = ({ message }) => this.#ended(message)
    worker.addEventListener('close', () => {
      URL.revokeObjectURL(url)
      if (this.#worker === worker) this.#ended('the thread has ended')
    })
    return worker
  }

  #ended(message: string): void {
    this.#worker = null
    this.#is_open = false
    this.#answer?.reject(new ThreadError(message))
  }
}
