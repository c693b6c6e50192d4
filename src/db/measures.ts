// The database as numbers: commits, flushes, and what waits.

import { Histogram } from '../base/measures.ts'

const seconds_bounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const writes_bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024]

export class DbMeasures {
  /** Writes that share a commit. */
  readonly batch_writes = new Histogram(writes_bounds)
  /** From the begin of a transaction to the return of its COMMIT. */
  readonly commit_seconds = new Histogram(seconds_bounds)
  /** SQLite: one flush of the log. */
  readonly flush_seconds = new Histogram(seconds_bounds)

  committed(writes: number, ms: number): void {
    this.batch_writes.observe(writes)
    this.commit_seconds.observe(ms / 1_000)
  }

  flushed(ms: number): void {
    this.flush_seconds.observe(ms / 1_000)
  }
}

/** How the database stands at one moment. */
export interface DbGauges {
  /** Of the database: SQLite's file and its log, PostgreSQL's whole database. Null while that does not answer. */
  bytes: number | null
  /** SQLite: bytes that are free on its disk, and those that are kept. Null in memory, on PostgreSQL, and once its files are gone. */
  disk: { free_bytes: number; reserve_bytes: number } | null
  /** Writes, and on PostgreSQL statements, that wait for their turn. */
  waiting: number
  /** PostgreSQL: connections of this process, by use. Null on SQLite. */
  connections: { in_use: number; idle: number } | null
  /** PostgreSQL: row-level security binds the role of the connections. Null on SQLite. */
  secured: boolean | null
}
