// A restore: the backup becomes a database that is not served before it is whole, and that sends nothing before the operator
// releases it.

import { chmodSync, constants, copyFileSync, existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'
import { translate } from '../db/errors.ts'
import { migrate } from '../db/migrate.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { fillPostgres, isEmptyPostgres } from '../db/postgres-copy.ts'
import { spaceOf } from '../db/space.ts'
import { SqliteFile } from '../db/sqlite-file.ts'
import { lockInRoom } from '../db/sqlite-lock.ts'
import { migrations } from '../features.ts'
import * as quarantine from '../quarantine/service.ts'
import { secretsOf } from '../secrets/service.ts'
import { factsOf, removeFacts } from './facts-store.ts'
import { flushFile, lockOf, removeDraft, requireLock, restoringOf, takeName } from './file.ts'
import { markRestored, type Restored } from './mark.ts'
import { type Keys, keysFor } from './restored-keys.ts'
import { requireNoLog, type Verified, verifyBackup } from './verify.ts'

export interface Restore extends Restored {
  backup: Verified
}

type Target = Pick<Config, 'database_url' | 'data_dir' | 'secret_key' | 'secret_key_previous'> & {
  /** A folder with room for the draft of what goes into PostgreSQL; null for DATA_DIR. */
  scratch: string | null
}

/**
 * Into an empty data folder, or an empty PostgreSQL database. `passphrase`: of the secrets beside the backup, asked for when
 * they are needed. Throws when there is a database, when the backup is damaged, and when it was sealed with another SECRET_KEY;
 * then no database is left, on PostgreSQL one that is not served.
 */
export async function restoreBackup(
  target: Target,
  file: string,
  passphrase: () => Promise<string>,
): Promise<Restore> {
  const path = sqlitePath(target.database_url)
  if (path === ':memory:') throw new Error('a database in memory ends with this command')
  if (path !== null && target.scratch !== null)
    throw new Error(
      '--scratch is for a restore into PostgreSQL: a SQLite database is built in its final place',
    )
  await requireEmpty(target.database_url, path)
  const backup = verifyBackup(file)
  const keys = await keysFor(target, file, passphrase)
  const restored =
    path === null ? await intoPostgres(target, backup, keys) : await intoSqlite(path, backup, keys)
  return { backup, ...restored }
}

function inUse(): Error {
  return new Error('this database is in use: restore into an empty one')
}

async function requireEmpty(url: string, path: string | null): Promise<void> {
  if (path === null) {
    if (!(await isEmptyPostgres(url))) throw inUse()
    return
  }
  const found = ['', '-wal', '-shm', '-journal'].map((end) => path + end).find((name) => existsSync(name))
  if (found) throw new Error(`${found} already exists: restore into an empty data folder`)
}

async function intoSqlite(path: string, backup: Verified, keys: Keys): Promise<Restored> {
  makeFolder(dirname(path))
  requireRoom(dirname(path), backup.bytes)
  const draft = restoringOf(path)
  const lock = lockInRoom(path, spaceOf)
  try {
    removeDraft(draft)
    const backup_at = copyOf(backup, draft)
    const restored = await withDb(`sqlite:${draft}`, async (db) => {
      await migrate(db, migrations)
      const secrets = await secretsOf(db, keys)
      await quarantine.enter(db, backup_at, async () => false)
      return markRestored(db, secrets, backup_at)
    })
    requireNoLog(draft) // its close has none to report: a full disk would leave the newest writes there
    keys.keep()
    flushFile(draft)
    takeName(draft, path) // not over a database that is there meanwhile
    return restored
  } finally {
    removeDraft(draft)
    lock.close()
  }
}

async function intoPostgres(
  { database_url, data_dir, scratch }: Target,
  backup: Verified,
  keys: Keys,
): Promise<Restored> {
  const folder = scratch ?? data_dir
  makeFolder(folder, 0o700)
  requireRoom(folder, backup.bytes, scratch === null ? '; --scratch <folder> takes another one' : '')
  const draft = join(folder, 'restoring.db')
  const lock = requireLock(draft, `another restore has its draft in ${folder}: use another --scratch`)
  try {
    removeDraft(draft)
    const backup_at = copyOf(backup, draft)
    await withDb(`sqlite:${draft}`, async (db) => {
      await migrate(db, migrations) // a backup of an earlier release
      await secretsOf(db, keys)
    })
    requireNoLog(draft)
    await requireEmpty(database_url, null) // a service may have started on it since the first look
    keys.keep()
    return await withDb(database_url, async (db) => {
      await migrate(db, migrations)
      await quarantine.enter(db, backup_at, async () => true) // nothing else was in it
      await fillFrom(database_url, draft)
      return markRestored(db, await secretsOf(db, keys), backup_at)
    })
  } finally {
    removeDraft(draft)
    rmSync(lockOf(draft), { force: true })
    lock.close()
  }
}

async function fillFrom(url: string, draft: string): Promise<void> {
  using copy = new SqliteFile(draft, { readonly: false })
  try {
    await fillPostgres(url, copy)
  } catch (error) {
    // Another restore, which began at the same time, has filled it.
    throw (translate('postgres', error) as { kind?: unknown }).kind === 'unique' ? inUse() : error
  }
}

/** Returns when the backup was made; null when that is unknown. */
function copyOf(backup: Verified, draft: string): number | null {
  copyFileSync(backup.file, draft, constants.COPYFILE_FICLONE)
  chmodSync(draft, 0o600) // the copy has the mode of the backup, which may be read-only, or for all to read
  using copy = new SqliteFile(draft, { readonly: false })
  const facts = factsOf(copy)
  removeFacts(copy)
  return facts?.taken_at ?? null
}

async function withDb<T>(url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const db = await openDb(url, {
    ...{ clock: systemClock, database_time: true, exclusive: false },
    onFatal: (error) => {
      throw error
    },
  })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** `way_out`: of a folder without room. */
function requireRoom(folder: string, bytes: number, way_out = ''): void {
  const { free } = spaceOf(folder)
  if (free < bytes)
    throw new Error(`the database needs ${bytes} bytes, and ${folder} has ${free} free${way_out}`)
}
