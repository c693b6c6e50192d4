// The flush of the write-ahead log. SQLite writes the frames of a commit without waiting for the disk; an fdatasync of
// the log, on a descriptor of its own, covers every commit that was written before it began. On a quick disk it runs in
// the event loop, right behind its commit; on a slow one off the loop, and nothing else waits for it.
//
// A disk that is quick and then hangs stops the process for one flush, the one that was begun in the loop. Those that
// follow run off the loop until it is quick again.

import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import type { Clock } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { DiskPace } from './sqlite-pace.ts'

export const stalled_ms_min = limit(
  'sqlite.flush_stalled',
  5_000,
  'milliseconds',
  'How long the disk may take for one flush of the log. After that the service is not ready, and new writes are refused until it has returned.',
)

/** Puts all that was written to a file on the disk. With one of the two, every flush is made by that one. */
export interface Sync {
  inLoop?(fd: number): void
  offLoop?(fd: number): Promise<void>
}

/** fdatasync(2). Off the loop in Bun's thread pool, which nobody else may fill: a flush would wait behind what fills it. */
const sync_of_system: Sync = { inLoop: fdatasyncSync, offLoop: promisify(fdatasync) }

export interface FlushOptions {
  clock: Clock
  sync?: Sync | undefined
  /** Called with how long a flush has taken. */
  onFlushed?: ((ms: number) => void) | undefined
  /** Called before a flush that others do not wait for begins, in the turn of the last commit that it covers. */
  onBegin(): void
  /** Called when commits up to this one are on the disk. Without `onBegin` before it, in the turn of that commit. */
  onDurable(commit: number): void
  /** The disk failed: nothing that was written since the last flush can be trusted. Called once. */
  onFailure(error: unknown): void
}

export class LogFlush {
  readonly #log: number
  readonly #sync: Sync
  readonly #pace = new DiskPace()
  #written = 0
  #durable = 0
  /** Of a flush off the loop: during one in the loop nobody can ask. */
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
    this.#sync = options.sync ?? sync_of_system
  }

  /**
   * A commit was written. A flush that covers it follows, unless one has failed; where `waits_for_disk` is false it has
   * ended when this returns.
   */
  wrote(): void {
    this.#written += 1
    if (this.#is_running || this.#failed) return
    if (this.#runs_in_loop) this.#flushInLoop()
    else this.#ended = this.#runOffLoop()
  }

  /** True when the next commit is not on the disk yet when `wrote` returns. */
  get waits_for_disk(): boolean {
    return this.#is_running || !this.#runs_in_loop
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

  get #runs_in_loop(): boolean {
    return this.#sync.offLoop === undefined || (this.#pace.is_quick && this.#sync.inLoop !== undefined)
  }

  /** Until all is on the disk, or the disk has proved to be quick and nothing is left to wait for. */
  async #runOffLoop(): Promise<void> {
    this.#is_running = true
    try {
      while (this.pending && !this.#failed) {
        this.#call(() => this.options.onBegin())
        if (this.#failed) return
        if (this.#runs_in_loop) this.#flushInLoop()
        else await this.#flushOffLoop()
      }
    } finally {
      this.#is_running = false
    }
  }

  #flushInLoop(): void {
    const { clock, onDurable } = this.options
    const began_at = clock.monotonic()
    try {
      this.#sync.inLoop!(this.#log)
    } catch (error) {
      this.#fail(error)
      return
    }
    const now = clock.monotonic()
    this.#pace.tookInLoop(now - began_at, now)
    this.options.onFlushed?.(now - began_at)
    this.#durable = this.#written
    this.#call(() => onDurable(this.#durable))
  }

  async #flushOffLoop(): Promise<void> {
    const { clock, onDurable } = this.options
    const covered = this.#written
    const began_at = clock.monotonic()
    this.#began_at = began_at
    try {
      await this.#sync.offLoop!(this.#log)
    } catch (error) {
      this.#fail(error)
      return
    }
    this.#began_at = null
    const now = clock.monotonic()
    this.#pace.tookOffLoop(now - began_at, now)
    this.options.onFlushed?.(now - began_at)
    this.#durable = covered
    this.#call(() => onDurable(covered))
  }

  /** An error of these is a bug and no failure of the disk. It ends the process under its own name; nothing more is flushed. */
  #call(report: () => void): void {
    try {
      report()
    } catch (error) {
      this.#failed = true
      queueMicrotask(() => {
        throw error
      })
    }
  }

  #fail(error: unknown): void {
    this.#began_at = null
    this.#failed = true
    this.options.onFailure(error)
  }

  close(): void {
    closeSync(this.#log)
  }
}
