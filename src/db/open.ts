// A database URL picks the driver.

import { resolve } from 'node:path'
import type { Db } from './db.ts'
import { openPostgres } from './postgres.ts'
import type { PostgresOptions } from './postgres-options.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'
import { ownName } from './sqlite-lock.ts'

/** Of either engine: the other takes no notice of what is its own. */
export interface OpenOptions extends SqliteOptions, PostgresOptions {}

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
