// A database URL picks the driver.

import { resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Db } from './db.ts'
import type { DiskOptions } from './disk.ts'
import type { DbMeasures } from './measures.ts'
import { openPostgres } from './postgres.ts'
import type { ServerListener } from './postgres-options.ts'
import { openSqlite } from './sqlite.ts'
import type { Sync } from './sqlite-flush.ts'
import { ownName } from './sqlite-lock.ts'

export interface OpenOptions {
  clock: Clock
  /** PostgreSQL: true to take the time from the database. */
  database_time?: boolean
  /** True: `Db.clock` is a MovedClock, which begins as this clock. */
  movable?: boolean
  /** PostgreSQL: connections in the pool. */
  connections_max?: number
  /** PostgreSQL: the role that the connections take. */
  role?: string | undefined
  /** PostgreSQL: true where row-level security is wanted, and may come into force while the service runs. */
  carries_tenant?: boolean
  /** PostgreSQL: hears of outages, and of errors that say something of the server. */
  server_listener?: ServerListener
  onFatal: (error: unknown) => void
  /** SQLite: see there. */
  onDamaged?: (error: unknown) => void
  onDiskUnknown?: (error: unknown) => void
  disk?: Partial<DiskOptions>
  sync?: Sync | undefined
  /** Counts commits and flushes; absent: nothing does. */
  measures?: DbMeasures | undefined
  /** False for a command that works beside a running server. */
  exclusive: boolean
}

/**
 * The absolute file of a `sqlite:` URL, `:memory:`, or null for PostgreSQL. Its own name, past links: its log and its lock lie
 * beside that.
 */
export function sqlitePath(url: string): string | null {
  if (!url.startsWith('sqlite:')) return null
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  return path === ':memory:' ? path : ownName(resolve(path))
}

export async function openDb(url: string, options: OpenOptions): Promise<Db> {
  const path = sqlitePath(url)
  return path === null ? openPostgres(url, options) : openSqlite(path, options)
}
