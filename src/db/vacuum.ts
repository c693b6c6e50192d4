// Gives the room of removed rows back to the disk.

import { dirname } from 'node:path'
import { connected } from './postgres-copy.ts'
import { sizeOf, spaceOf } from './space.ts'
import { SqliteFile } from './sqlite-file.ts'
import { lockInRoom } from './sqlite-lock.ts'

/** Writes the file again, while no service has it open. Returns its size before and after. Throws when one has. */
export function vacuumSqlite(path: string): { before: number; after: number } {
  const lock = lockInRoom(path, spaceOf)
  try {
    const before = sizeOf(path) + sizeOf(`${path}-wal`)
    const { free } = spaceOf(dirname(path))
    if (free < 2 * before)
      throw new Error(`it may need ${2 * before} bytes beside the file, and ${free} are free`)
    const file = new SqliteFile(path, { readonly: false })
    try {
      file.exec('vacuum')
      file.values('pragma wal_checkpoint(truncate)')
    } finally {
      file.close()
    }
    return { before, after: sizeOf(path) }
  } finally {
    lock.close()
  }
}

/** Beside the services that use it, as autovacuum does, with fresh statistics. */
export function vacuumPostgres(url: string): Promise<void> {
  return connected(url, async (connection) => {
    await connection.unsafe('set statement_timeout = 0')
    await connection.unsafe('vacuum (analyze)')
  })
}
