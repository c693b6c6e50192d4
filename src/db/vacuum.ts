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
      setTemporaryFolder(file, dirname(path))
      file.exec('vacuum')
      file.values('pragma wal_checkpoint(truncate)')
    } finally {
      setTemporaryFolder(file, '')
      file.close()
    }
    return { before, after: sizeOf(path) }
  } finally {
    lock.close()
  }
}

/**
 * SQLite writes the whole database to a temporary file first. In /var/tmp that may find no room, on another disk than the one that
 * was looked at, or a file system that takes no writes, as in a container. Of this process; empty for the usual one.
 */
function setTemporaryFolder(file: SqliteFile, folder: string): void {
  file.exec(`pragma temp_store_directory = '${folder.replaceAll("'", "''")}'`)
}

// PostgreSQL passes over what a role may not vacuum, with a warning. From 17 on it may be allowed without ownership.
const SKIPPED = `
  select c.relname as name, current_user as role
    from pg_class c join pg_database d on d.datname = current_database()
   where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
     and not (pg_has_role(c.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
              or case when current_setting('server_version_num')::int >= 170000
                      then has_table_privilege(c.oid, 'maintain') else false end)
   order by 1 limit 1`

/** Beside the services that use it, as autovacuum does, with fresh statistics. Throws when it may not vacuum a table. */
export function vacuumPostgres(url: string): Promise<void> {
  return connected(url, async (connection, is_pooled) => {
    const [skipped] = (await connection.unsafe(SKIPPED)) as { name: string; role: string }[]
    if (skipped)
      throw new Error(
        `${skipped.role} may not vacuum ${skipped.name}: set DATABASE_OWNER_URL to the owner of the tables, past a pooler`,
      )
    // A setting would stay on a connection of the pooler, for the next client.
    if (is_pooled) throw new Error('a pooler ends a vacuum too early: set DATABASE_OWNER_URL past it')
    await connection.unsafe('vacuum (analyze)')
  })
}
