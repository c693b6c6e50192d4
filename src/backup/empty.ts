// An empty database of this release in one file, to be filled from PostgreSQL.

import { systemClock } from '../base/clock.ts'
import { migrate } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { SqliteFile } from '../db/sqlite-file.ts'
import { migrations } from '../features.ts'

/** The caller closes it. */
export async function emptyCopy(path: string): Promise<SqliteFile> {
  const db = await openDb(`sqlite:${path}`, { clock: systemClock, exclusive: false, onFatal() {} })
  try {
    await migrate(db, migrations)
  } finally {
    await db.close()
  }
  const file = new SqliteFile(path, { readonly: false })
  file.asOneFile()
  file.withoutFlushes()
  return file
}
