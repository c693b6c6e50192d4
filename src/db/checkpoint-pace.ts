// How large SQLite's write-ahead log grows before it is checkpointed. The commit that reaches that size writes all pages
// of the log back, and holds the event loop for as long: with many large values those are 16 MB.

import { limit } from '../base/limit.ts'
import { log_pages } from './dialect.ts'

const commit_ms_max = limit(
  'sqlite.commit_ms',
  25,
  'milliseconds',
  'A commit that takes longer halves the size at which the log of SQLite is checkpointed, so that the next checkpoint holds other requests for less; the size doubles again every second.',
)
const fewest_log_pages = log_pages / 8

export class CheckpointPace {
  #pages = log_pages

  /** `set` is told how many pages the log may have from now on. */
  constructor(private readonly set: (pages: number) => void) {}

  /** A commit took this long, its checkpoint included. */
  committed(took_ms: number): void {
    if (took_ms > commit_ms_max) this.#change(Math.max(fewest_log_pages, this.#pages / 2))
  }

  /** Once a second: a larger log writes back pages that change often less often. */
  relax(): void {
    this.#change(Math.min(log_pages, this.#pages * 2))
  }

  #change(pages: number): void {
    if (pages === this.#pages) return
    this.#pages = pages
    this.set(pages)
  }
}
