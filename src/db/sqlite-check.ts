// Checks of a SQLite file before it is served.

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

/** The first fault of the file at `path`, or null. Throws what is not a fault of the file. */
export function quickFault(connection: Connection, path: string): unknown {
  if (sizeOf(path) > checked_bytes_max) return null
  try {
    const found = connection.value('pragma quick_check(1)')
    return found === 'ok' ? null : new DbError('damaged', String(found))
  } catch (error) {
    if ((translate('sqlite', error) as DbError).kind !== 'damaged') throw error
    return error
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
