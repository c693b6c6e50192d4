// The facts of a backup, when and by which release it was made: a table of its own in the file, which is not restored.

import type { Millis } from '../base/clock.ts'
import { requireOwn, SqliteFile } from '../db/sqlite-file.ts'
import { unfinished_message } from '../quarantine/service.ts'
import type { KeyState } from '../secrets/service.ts'
import { version } from '../version.ts'
import { isOneFile } from './file.ts'

export interface BackupFacts {
  taken_at: Millis
  version: string
  engine: 'sqlite' | 'postgres'
}

const table = 'backup_facts'

export function writeFacts(file: SqliteFile, facts: Omit<BackupFacts, 'version'>): void {
  file.exec(`create table ${table} (name text primary key, value text not null) strict, without rowid`)
  const rows = Object.entries({ ...facts, version }).map(([name, value]) => [name, String(value)])
  file.insert(`insert into ${table} (name, value) values (?1, ?2)`, rows)
}

/** No service serves this copy as it is, which does not know what was done since; a restore makes a database of it that may be. */
export function writeQuarantine(file: SqliteFile, taken_at: Millis): void {
  if (!hasQuarantine(file)) return // of an earlier release
  const row = [taken_at, taken_at]
  file.insert(
    "insert or replace into quarantine (name, since, backup_at, is_whole) values ('restored', ?1, ?2, 0)",
    [row],
  )
}

/** Null for a SQLite file that another program has copied. */
export function factsOf(file: SqliteFile): BackupFacts | null {
  if (!file.tables().some(({ name }) => name === table)) return null
  const rows = file.all<{ name: string; value: string }>(`select name, value from ${table}`)
  const facts = Object.fromEntries(rows.map(({ name, value }) => [name, value]))
  return { ...(facts as unknown as BackupFacts), taken_at: Number(facts.taken_at) }
}

/** Removes what belongs to the copy and not to the database: its facts, and its quarantine. */
export function removeFacts(file: SqliteFile): void {
  file.exec(`drop table if exists ${table}`)
  if (hasQuarantine(file)) file.exec('delete from quarantine')
}

function hasQuarantine(file: SqliteFile): boolean {
  return file.tables().some(({ name }) => name === 'quarantine')
}

/** Throws for a copy whose restore has not ended. A backup is whole, though no service serves it as it is. */
export function requireFinished(file: SqliteFile): void {
  if (!hasQuarantine(file) || factsOf(file) !== null) return
  if (file.values('select 1 from quarantine where is_whole = 0').length > 0)
    throw new Error(unfinished_message)
}

/** The check values of SECRET_KEY. */
export function keyStateOf(file: SqliteFile): KeyState {
  const rows = file.all<{ name: string; value: string }>(
    "select name, value from service_settings where name like 'secret\\_key\\_%' escape '\\'",
  )
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}

/** Not a table of the service. */
export function isFacts(name: string): boolean {
  return name === table
}

/**
 * Throws when the file is a backup, or a database of another program. Writes nothing: a service or a command would turn it into a
 * file with a log, and spoil it. `path`: null on PostgreSQL.
 */
export function requireServable(path: string | null): void {
  if (path === null || path === ':memory:') return
  if (isOneFile(path) && isBackup(path))
    throw new Error(
      `${path} is not opened, it is a backup itself: give admin restore the backup and an empty data folder or PostgreSQL database`,
    )
  requireOwn(path)
}

/** False for what cannot be read: the damage is reported where the file is opened. */
function isBackup(path: string): boolean {
  try {
    using file = new SqliteFile(path, { readonly: true })
    return factsOf(file) !== null
  } catch {
    return false
  }
}
