// Checkpoints on a thread of their own: copying the log into the file, and the two flushes that belong to it, would hold
// up the event loop for as long as they take.

import { log_pages, sqlite_pragmas } from './dialect.ts'

// As text, so that it is part of the executable too. The connection's synchronous is FULL: SQLite flushes the log before
// it copies from it, and the file before the log may be begun again.
const thread = `
import { Database } from 'bun:sqlite'
let db = null
self.onmessage = ({ data: { path, pragmas, close } }) => {
  try {
    if (close) {
      db?.close()
      postMessage({})
      return
    }
    if (!db) {
      db = new Database(path)
      for (const pragma of pragmas) db.run(pragma)
    }
    const [busy, log, copied] = db.query('pragma wal_checkpoint(passive)').values()[0]
    postMessage({ copied })
  } catch (error) {
    postMessage({ failure: { message: error.message, code: error.code, errno: error.errno } })
  }
}`

export interface CheckpointOptions {
  /** The size of the log. */
  logPages(): number
  /** Resolves when every commit is on the disk. */
  idle(): Promise<void>
  /** Ends the snapshots that no read is in the middle of. */
  release(): void
  onError(error: unknown): void
}

export class Checkpoints {
  readonly #thread: CheckpointThread
  #running: Promise<void> | null = null
  #hold: PromiseWithResolvers<void> | null = null

  constructor(
    path: string,
    private readonly options: CheckpointOptions,
  ) {
    this.#thread = new CheckpointThread(path)
  }

  /** Commits wait for this. */
  get hold(): Promise<void> | undefined {
    return this.#hold?.promise
  }

  runWhenDue(): void {
    if (this.#running || this.options.logPages() < log_pages) return
    this.#running = this.#run().finally(() => {
      this.#running = null
    })
  }

  /**
   * Copies the log into the file, beside reads and writes. SQLite begins the log again once all of it is copied and no
   * reader keeps any of it, so commits wait for a moment while the last of it is copied.
   */
  async #run(): Promise<void> {
    const { idle, release, onError } = this.options
    try {
      await this.#thread.copy()
      this.#hold = Promise.withResolvers()
      await idle()
      await this.#thread.copy()
      release()
    } catch (error) {
      onError(error)
    } finally {
      this.#hold?.resolve()
      this.#hold = null
    }
  }

  async close(): Promise<void> {
    await this.#running
    await this.#thread.close()
  }
}

class CheckpointThread {
  #worker: Worker | null = null
  #answer: PromiseWithResolvers<void> | null = null

  constructor(private readonly path: string) {}

  /** Copies what no reader keeps. One at a time. Throws what SQLite throws. */
  copy(): Promise<void> {
    return this.#ask({ path: this.path, pragmas: sqlite_pragmas })
  }

  async close(): Promise<void> {
    if (!this.#worker) return
    await this.#ask({ close: true }).catch(() => {})
    this.#worker.terminate()
    this.#worker = null
  }

  #ask(message: object): Promise<void> {
    this.#worker ??= this.#started()
    this.#answer = Promise.withResolvers()
    this.#worker.postMessage(message)
    return this.#answer.promise
  }

  #started(): Worker {
    const url = URL.createObjectURL(new Blob([thread], { type: 'application/javascript' }))
    const worker = new Worker(url, { smol: true })
    worker.unref()
    worker.onmessage = ({ data }) => this.#answered(data.failure)
    worker.onerror = ({ message }) => this.#answered({ message })
    return worker
  }

  #answered(failure: { message: string } | undefined): void {
    if (failure) this.#answer!.reject(Object.assign(new Error(failure.message), failure))
    else this.#answer!.resolve()
  }
}
