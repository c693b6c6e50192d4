// Checks of a SQLite file, and the settings that it is served with.

import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { limit } from '../base/limit.ts'
import { DbError, translate } from './errors.ts'
import { sizeOf } from './space.ts'
import type { Connection } from './sqlite-connection.ts'

/** A larger file is not checked at the start, which would take long. */
const checked_bytes_max = limit(
  'db.checked_bytes',
  1_073_741_824,
  'bytes',
  'A SQLite file up to this size is checked at every start; `npm run admin -- check` checks a file of any size, and more thoroughly.',
)

const faults_listed_max = limit(
  'db.faults_listed',
  100,
  'rows',
  'Faults of a damaged file that `npm run admin -- check` lists.',
)

/** The first fault of the file at `path`, or null. Throws what is not a fault of the file. */
export function quickFault(connection: Connection, path: string): unknown {
  if (endsWithinPage(connection, path)) return new DbError('damaged', 'the last page is cut short')
  if (sizeOf(path) > checked_bytes_max) return null
  try {
    const found = connection.value('pragma quick_check(1)')
    return found === 'ok' ? null : new DbError('damaged', String(found))
  } catch (error) {
    if ((translate('sqlite', error) as DbError).kind !== 'damaged') throw error
    return error
  }
}

/** SQLite reads such a page as if zeros followed, and finds nothing wrong. A log that is there may have all of it. */
function endsWithinPage(connection: Connection, path: string): boolean {
  const bytes = Number(connection.value('pragma page_count')) * Number(connection.value('pragma page_size'))
  return sizeOf(`${path}-wal`) === 0 && sizeOf(path) < bytes
}

/** Everything that SQLite finds wrong with the file, in its words. */
export function faultsIn(connection: Connection): string[] {
  try {
    const found = connection.values(`pragma integrity_check(${faults_listed_max})`)
    return found.length === 1 && found[0] === 'ok' ? [] : found.map(String)
  } catch (error) {
    if (translate('sqlite', error) instanceof DbError) return [(error as Error).message]
    throw error
  }
}

/** Throws for a file that can be read and not written: now, rather than at the first request. */
export function requireWritable(writer: Connection): void {
  writer.exec('begin immediate')
  try {
    writer.exec(`pragma user_version = ${writer.value('pragma user_version')}`)
    writer.exec('commit')
  } catch (error) {
    writer.rollback()
    throw error
  }
}

/** The settings that durability depends on, as SQLite reports them. `path`: null in memory. */
export function settingsOf(connection: Connection, path: string | null): Record<string, string | number> {
  return {
    sqlite_version: connection.value('select sqlite_version()'),
    journal_mode: connection.value('pragma journal_mode'),
    synchronous: connection.value('pragma synchronous'),
    foreign_keys: connection.value('pragma foreign_keys'),
    ...(path === null ? {} : { file_system: statfsSync(dirname(path)).type }),
  }
}
