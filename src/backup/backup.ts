// A backup: one consistent state of the database in one SQLite file, whatever engine it comes from, made while the service
// runs, and looked through before it gets its name.

import { existsSync } from 'node:fs'
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
import { emptyCopy } from './empty.ts'
import { writeFacts, writeQuarantine } from './facts-store.ts'
import { bytesOf, publish, removeDraft } from './file.ts'
import { type RoomOptions, requireRoom } from './room.ts'
import { requireWhole } from './verify.ts'

export interface Backup {
  file: string
  bytes: number
  taken_at: Millis
}

export interface BackupOptions extends RoomOptions {
  /** Writes what belongs to the backup, once nothing is in its way. */
  putBeside?: (path: string) => void
}

/**
 * Throws when there is such a file, when there is no room for it, and when the copy is not whole; then nothing is left of it.
 */
export async function writeBackup(
  database_url: string,
  file: string,
  { putBeside = () => {}, ...room }: BackupOptions = {},
): Promise<Backup> {
  const path = resolve(file)
  if (existsSync(path)) throw new Error(`there is a file ${path} already`)
  makeFolder(dirname(path))
  const draft = `${path}.part`
  removeDraft(draft)
  putBeside(path)
  try {
    const source = sqlitePath(database_url)
    const taken_at = await (source === null
      ? fromPostgres(database_url, draft, room)
      : fromSqlite(source, draft, room))
    publish(draft, path)
    return { file: path, bytes: bytesOf(path), taken_at }
  } finally {
    removeDraft(draft)
  }
}

async function fromSqlite(source: string, draft: string, room: RoomOptions): Promise<Millis> {
  if (source === ':memory:') throw new Error('a database in memory is seen by its own process only')
  if (!existsSync(source)) throw new Error(`there is no database at ${source}`)
  // A copy is never larger than the database and its log.
  requireRoom(dirname(draft), sizeOf(source) + sizeOf(`${source}-wal`), source, room)
  const taken_at = systemClock.now()
  copySqlite(source, draft)
  finish(draft, 'sqlite', taken_at)
  return taken_at
}

async function fromPostgres(url: string, draft: string, room: RoomOptions): Promise<Millis> {
  const db = await openDb(url, { clock: systemClock, database_time: true, exclusive: false, onFatal() {} })
  let taken_at: Millis
  try {
    await requireCurrent(db, migrations)
    if (await isDistributed(db))
      throw new Error('Citus has no one state of several servers: back up with its own tools')
    taken_at = db.clock.now()
  } finally {
    await db.close()
  }
  const copy = await emptyCopy(draft)
  try {
    await copyPostgres(url, copy, (bytes) => requireRoom(dirname(draft), bytes, null, room))
  } finally {
    copy.close()
  }
  finish(draft, 'postgres', taken_at)
  return taken_at
}

function finish(draft: string, engine: 'sqlite' | 'postgres', taken_at: Millis): void {
  const copy = new SqliteFile(draft, { readonly: false })
  try {
    copy.asOneFile()
    writeFacts(copy, { taken_at, engine })
    writeQuarantine(copy, taken_at)
    requireWhole(draft, copy)
  } finally {
    copy.close()
  }
}
