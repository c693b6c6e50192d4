// A backup: one consistent state of the database in one SQLite file, whatever engine it comes from, made while the service
// runs, and looked through before it gets its name.

import { rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Millis, systemClock } from '../base/clock.ts'
import { makeFolder } from '../base/folder.ts'
import { isDistributed } from '../db/distributed.ts'
import { requireCurrent } from '../db/migrate.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import { copyPostgres } from '../db/postgres-copy.ts'
import { sizeOf } from '../db/space.ts'
import { copySqlite, SqliteFile } from '../db/sqlite-file.ts'
import { migrations } from '../features.ts'
import { requireOpenable } from '../secrets/service.ts'
import { emptyCopy } from './empty.ts'
import {
  factsOf,
  keyStateOf,
  removeFacts,
  requireFinished,
  writeFacts,
  writeQuarantine,
} from './facts-store.ts'
import { draftOf, lockOf, publish, removeDraft, removeDrafts, requireLock, requireNoFile } from './file.ts'
import { type RoomOptions, requireRoom } from './room.ts'
import { requirePassphrase, type ServiceSecrets, sealSecrets } from './sealed-secrets.ts'
import { requireWhole } from './verify.ts'
import { requireWholeDatabase } from './whole.ts'

export interface Backup {
  file: string
  bytes: number
  taken_at: Millis
}

export interface BackupOptions extends RoomOptions {
  /** Sealed under the passphrase beside the copy. Throws when they do not open it. */
  secrets?: { passphrase: string; service: ServiceSecrets } | null
}

/**
 * Throws when there is such a file, when there is no room for it, and when the copy is not whole or its secrets do not open it;
 * then nothing is left of it.
 */
export async function writeBackup(
  database_url: string,
  file: string,
  { secrets = null, ...room }: BackupOptions = {},
): Promise<Backup> {
  const path = resolve(file)
  requireNoFile(path)
  if (secrets !== null) requirePassphrase(secrets.passphrase)
  makeFolder(dirname(path))
  const lock = requireLock(path, `another backup to ${path} is under way`)
  const draft = draftOf(path)
  try {
    removeDrafts(path)
    await requireWholeDatabase(database_url)
    const source = sqlitePath(database_url)
    const taken_at = await (source === null
      ? fromPostgres(database_url, draft, room)
      : fromSqlite(source, draft, room))
    finish(draft, source === null ? 'postgres' : 'sqlite', taken_at, secrets?.service ?? null)
    if (secrets !== null) sealSecrets(draft, secrets.passphrase, secrets.service)
    publish(draft, path)
    return { file: path, bytes: sizeOf(path), taken_at }
  } catch (error) {
    throw withFolder(error, dirname(path))
  } finally {
    removeDraft(draft)
    rmSync(lockOf(path), { force: true })
    lock.close()
  }
}

/** The error of a write names where it failed: without that the disk of the database seems to be the one that is full or broken. */
function withFolder(error: unknown, folder: string): unknown {
  const { cause, code, message } = error as { cause?: { code?: unknown }; code?: unknown; message: string }
  const failed_write = /^(SQLITE_FULL|SQLITE_IOERR_(WRITE|FSYNC|TRUNCATE)|ENOSPC|EDQUOT|EFBIG)$/
  if (![code, cause?.code].some((one) => failed_write.test(String(one)))) return error
  return new Error(`the backup could not be written to ${folder}: ${message}`, { cause: error })
}

async function fromSqlite(source: string, draft: string, room: RoomOptions): Promise<Millis> {
  // A copy is never larger than the database and its log.
  requireRoom(dirname(draft), sizeOf(source) + sizeOf(`${source}-wal`), source, room)
  const taken_at = systemClock.now()
  copySqlite(source, draft)
  return taken_at
}

async function fromPostgres(url: string, draft: string, room: RoomOptions): Promise<Millis> {
  const db = await openDb(url, { clock: systemClock, database_time: true, exclusive: false, onFatal() {} })
  let taken_at: Millis
  try {
    await requireCurrent(db, migrations)
    if (await isDistributed(db))
      throw new Error('Citus has no single state across its servers: back up with its own tools')
    taken_at = db.clock.now()
  } finally {
    await db.close()
  }
  using copy = await emptyCopy(draft)
  await copyPostgres(url, copy, (bytes) => requireRoom(dirname(draft), bytes, null, room))
  return taken_at
}

/** `secrets`: those that open it, null when they are kept elsewhere. */
function finish(
  draft: string,
  engine: 'sqlite' | 'postgres',
  taken_at: Millis,
  secrets: ServiceSecrets | null,
): void {
  using copy = new SqliteFile(draft, { readonly: false })
  copy.asOneFile()
  requireFinished(copy)
  const facts = { taken_at: factsOf(copy)?.taken_at ?? taken_at, engine }
  if (secrets !== null)
    requireOpenable(keyStateOf(copy), {
      current: secrets.secret_key,
      previous: secrets.secret_key_previous,
    })
  removeFacts(copy) // of a backup that has a log beside it, and is made one file again
  writeFacts(copy, facts)
  writeQuarantine(copy, facts.taken_at)
  requireWhole(draft, copy)
}
