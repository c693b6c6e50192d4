// The flush of the write-ahead log, off the event loop. SQLite writes the frames of a commit without waiting for the
// disk; an fdatasync of the log, on a descriptor of its own, covers every commit that was written before it began.

import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export const stalled_ms_min = limit(
  'sqlite.flush_stalled',
  5_000,
  'milliseconds',
  'How long the disk may take for one flush of the log. After that the service is not ready, and new writes are refused until it has returned.',
)

/** Resolves when all that was written to a file is on the disk. */
export type Sync = (fd: number) => Promise<void>

const syncOfSystem: Sync = promisify(fdatasync)

export interface FlushOptions {
  clock: Clock
  /** fdatasync(2) unless given. */
  sync?: Sync | undefined
  /** Called before a flush begins, in the turn of the last commit that it covers. */
  onBegin(): void
  /** Called when commits up to this one are on the disk. */
  onDurable(commit: number): void
  /** The disk failed: nothing that was written since the last flush can be trusted. Called once. */
  onFailure(error: unknown): void
}

export class LogFlush {
  readonly #log: number
  #written = 0
  #durable = 0
  #began_at: number | null = null
  #is_running = false
  #ended: Promise<void> = Promise.resolve()
  #failed = false

  /** `log` is the file of the log, which exists and is never replaced while the database is open. */
  constructor(
    log: string,
    private readonly options: FlushOptions,
  ) {
    this.#log = openSync(log, 'r+')
  }

  /** A commit was written. A flush that covers it follows, unless one has failed. */
  wrote(): void {
    this.#written += 1
    if (this.#is_running || this.#failed) return
    this.#is_running = true
    this.#ended = this.#run()
  }

  /** The number of the last commit. */
  get written(): number {
    return this.#written
  }

  /** True while a commit is not on the disk; after a failure for ever, if there was one. */
  get pending(): boolean {
    return this.#durable < this.#written
  }

  /** True when the disk does not answer. */
  get stalled(): boolean {
    return this.#began_at !== null && this.options.clock.monotonic() - this.#began_at >= stalled_ms_min
  }

  /** Resolves when everything that was written is on the disk, or will never be. */
  async idle(): Promise<void> {
    while (this.#is_running) await this.#ended
  }

  async #run(): Promise<void> {
    const { clock, sync = syncOfSystem, onBegin, onDurable, onFailure } = this.options
    try {
      while (this.pending) {
        const covered = this.#written
        onBegin()
        this.#began_at = clock.monotonic()
        await sync(this.#log)
        this.#began_at = null
        this.#durable = covered
        onDurable(covered)
      }
    } catch (error) {
      this.#began_at = null
      this.#failed = true
      onFailure(error)
    } finally {
      this.#is_running = false
    }
  }

  close(): void {
    closeSync(this.#log)
  }
}
