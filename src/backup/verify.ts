// A look through a backup: its checksum, every page and index, every reference, and the release it needs.

import { resolve } from 'node:path'
import { requireUpgradable } from '../db/migrate.ts'
import { sizeOf } from '../db/space.ts'
import { appliedIn, faultsOf, SqliteFile } from '../db/sqlite-file.ts'
import { ownName } from '../db/sqlite-lock.ts'
import { migrations } from '../features.ts'
import { type BackupFacts, facts_table, factsOf, requireFinished } from './facts-store.ts'
import { checksumOf, keptChecksum } from './file.ts'
import { hasSecrets } from './sealed-secrets.ts'

export interface Verified {
  file: string
  bytes: number
  /** False when there is no checksum beside the file. */
  has_checksum: boolean
  has_secrets: boolean
  /** Null for a SQLite file that another program has copied. */
  facts: BackupFacts | null
  schema_version: number
  /** How many rows each table has. */
  rows: Record<string, number>
}

/** Throws when anything is wrong with it, or when a newer release made it. */
export function verifyBackup(given: string): Verified {
  const path = resolve(given)
  requireNoLog(path)
  using file = new SqliteFile(path, { readonly: true })
  requireFinished(file)
  const kept = keptChecksum(path)
  if (kept !== null && kept !== checksumOf(path))
    throw new Error(`${path} is damaged: its checksum is not the one from when it was written`)
  const schema_version = requireWhole(path, file)
  const rows = file
    .tables()
    .filter(({ name }) => name !== facts_table)
    .map(({ name }) => [name, file.count(name)])
  return {
    ...{ file: path, bytes: sizeOf(path), has_checksum: kept !== null, has_secrets: hasSecrets(path) },
    ...{ facts: factsOf(file), schema_version, rows: Object.fromEntries(rows) },
  }
}

/** A part of a database is not a backup: its newest writes are in the log. */
export function requireNoLog(path: string): void {
  const log = `${ownName(path)}-wal`
  if (sizeOf(log) === 0) return
  throw new Error(
    `${log} has newer writes than ${path}: make the two into one file, DATABASE_URL='sqlite:${path}' waystation admin backup '${path}.whole', and use that`,
  )
}

/** Returns its schema version. Throws when it is damaged, is not of this service, or is of a newer release. */
export function requireWhole(path: string, file: SqliteFile): number {
  const faults = faultsOf(file)
  if (faults.length > 0) throw new Error(`${path} is damaged:\n${faults.join('\n')}`)
  const applied = appliedIn(file)
  if (applied === null) throw new Error(`${path} is not a database of Waystation`)
  return requireUpgradable(applied, migrations)
}
