// Checkpoints on a thread of their own: copying the log into the file, and the two flushes that belong to it, would hold
// up the event loop for as long as they take.

/** Pages in the log, and how many of them are in the file. */
export interface Checkpointed {
  log: number
  copied: number
}

// As text, so that it is part of the executable too. The connection's synchronous is FULL: SQLite flushes the log before
// it copies from it, and the file before the log may be begun again.
const thread = `
import { Database } from 'bun:sqlite'
let db = null
self.onmessage = ({ data: { path, pragmas, close } }) => {
  try {
    if (close) {
      db?.close()
      postMessage({ closed: true })
      return
    }
    if (!db) {
      db = new Database(path)
      for (const pragma of pragmas) db.run(pragma)
    }
    const [busy, log, copied] = db.prepare('pragma wal_checkpoint(passive)').values()[0]
    postMessage({ log, copied })
  } catch (error) {
    postMessage({ failure: { message: error.message, code: error.code, errno: error.errno } })
  }
}`

export class Checkpointer {
  #worker: Worker | null = null
  #answer: PromiseWithResolvers<Checkpointed> | null = null

  constructor(
    private readonly path: string,
    private readonly pragmas: readonly string[],
  ) {}

  /** Copies what no reader keeps. One at a time. Throws what SQLite throws. */
  run(): Promise<Checkpointed> {
    return this.#ask({ path: this.path, pragmas: this.pragmas })
  }

  async close(): Promise<void> {
    if (!this.#worker) return
    await this.#answer?.promise.catch(() => {})
    await this.#ask({ close: true }).catch(() => {})
    this.#worker.terminate()
    this.#worker = null
  }

  #ask(message: object): Promise<Checkpointed> {
    this.#worker ??= this.#started()
    this.#answer = Promise.withResolvers()
    this.#worker.postMessage(message)
    return this.#answer.promise
  }

  #started(): Worker {
    const url = URL.createObjectURL(new Blob([thread], { type: 'application/javascript' }))
    const worker = new Worker(url, { smol: true })
    worker.unref()
    worker.onmessage = ({ data }) => this.#answered(data)
    worker.onerror = ({ message }) => this.#answered({ failure: { message } })
    return worker
  }

  #answered(said: Checkpointed | { failure: { message: string } }): void {
    const answer = this.#answer
    this.#answer = null
    if ('failure' in said) answer?.reject(Object.assign(new Error(said.failure.message), said.failure))
    else answer?.resolve(said)
  }
}
