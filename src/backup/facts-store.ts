// The facts of a backup, when and by which release it was made: a table of its own in the file, which is not restored.

import type { Millis } from '../base/clock.ts'
import type { SqliteFile } from '../db/sqlite-file.ts'
import { version } from '../version.ts'

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

/** Null for a SQLite file that another program has copied. */
export function factsOf(file: SqliteFile): BackupFacts | null {
  if (!file.tables().some(({ name }) => name === table)) return null
  const rows = file.all<{ name: string; value: string }>(`select name, value from ${table}`)
  const facts = Object.fromEntries(rows.map(({ name, value }) => [name, value]))
  return { ...(facts as unknown as BackupFacts), taken_at: Number(facts.taken_at) }
}

/** Removes what belongs to the copy and not to the database: its facts, and the quarantine of a database that was in one. */
export function removeFacts(file: SqliteFile): void {
  file.exec(`drop table if exists ${table}`)
  if (file.tables().some(({ name }) => name === 'quarantine')) file.exec('delete from quarantine')
}

/** Not a table of the service. */
export function isFacts(name: string): boolean {
  return name === table
}
