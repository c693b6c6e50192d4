// A database whose restore was interrupted, or which is a backup, as a command finds it that opens no service's connection.

import { existsSync } from 'node:fs'
import { systemClock } from '../base/clock.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { sizeOf } from '../db/space.ts'
import { SqliteFile } from '../db/sqlite-file.ts'
import { requireWhole } from '../quarantine/service.ts'
import { requireFinished, requireServable } from './facts-store.ts'

/** Throws for a SQLite database that this process cannot have: one in memory, and one that is not there. */
export function requireDatabase(path: string): void {
  if (path === ':memory:') throw new Error('a database in memory is seen by its own process only')
  if (!existsSync(path)) throw new Error(`there is no database at ${path}; start the service first`)
}

/** Throws for one that is not there, that is of another program, or that is not whole. Changes nothing. */
export async function requireWholeDatabase(url: string): Promise<void> {
  const path = sqlitePath(url)
  if (path !== null) return requireWholeFile(path)
  const db = await openDb(url, { clock: systemClock, exclusive: false, role: 'none', onFatal() {} })
  try {
    await requireWhole(db)
  } finally {
    await db.close()
  }
}

function requireWholeFile(path: string): void {
  requireDatabase(path)
  if (sizeOf(path) === 0) return
  requireServable(path)
  using file = new SqliteFile(path, { readonly: false })
  requireFinished(file)
}
