// The database: commits, flushes, size, connections and the room on its disk.

import type { Db, Trouble } from '../db/db.ts'
import type { DbGauges, DbMeasures } from '../db/measures.ts'
import { type Figure, gauge, histogram, value } from './figure.ts'

const troubles: readonly Trouble['kind'][] = ['damaged', 'removed', 'full', 'stalled', 'read_only']

/** `secures_rows`: false where row-level security is not wanted. */
export async function databaseFigures(
  db: Db,
  measures: DbMeasures,
  secures_rows: boolean,
): Promise<Figure[]> {
  const standing = await db.gauges()
  const trouble = db.trouble()?.kind
  return [
    histogram('waystation_commit_batch_size', 'Writes that shared a commit.', [
      { measure: measures.batch_writes },
    ]),
    histogram(
      'waystation_commit_seconds',
      'Seconds of a transaction, from its begin to the end of its commit.',
      [{ measure: measures.commit_seconds }],
    ),
    histogram('waystation_fsync_seconds', 'SQLite: seconds of a flush of the log to the disk.', [
      { measure: measures.flush_seconds },
    ]),
    gauge(
      'waystation_database_trouble',
      '1 while the database is damaged or was removed, its disk is full or does not answer, or its server takes no writes.',
      troubles.map((kind) => ({ labels: { kind }, value: kind === trouble ? 1 : 0 })),
      'max',
    ),
    gauge(
      'waystation_row_level_security',
      'PostgreSQL: 1 while row-level security binds the service in every table, and not as their owner. Absent with ROW_LEVEL_SECURITY=off.',
      standing.secured === null || !secures_rows ? [] : value(standing.secured ? 1 : 0),
      'min',
    ),
    ...gaugesOf(standing),
  ]
}

function gaugesOf({ bytes, disk, waiting, connections }: DbGauges): Figure[] {
  const states: Record<string, number> = connections ? { ...connections, waiting } : {}
  return [
    gauge(
      'waystation_database_bytes',
      'Bytes of the database, with the log of SQLite.',
      bytes === null ? [] : value(bytes),
      'max',
    ),
    gauge(
      'waystation_database_pool_connections',
      'PostgreSQL: connections in use and idle, and statements that wait for one.',
      Object.entries(states).map(([state, count]) => ({ labels: { state }, value: count })),
    ),
    gauge(
      'waystation_writes_waiting',
      'Writes that wait for their turn, a batch or the disk; on PostgreSQL also reads that wait for a connection.',
      value(waiting),
    ),
    gauge(
      'waystation_disk_free_bytes',
      'SQLite: bytes that are free on the disk of the database.',
      disk ? value(disk.free_bytes) : [],
      'min',
    ),
    gauge(
      'waystation_disk_reserve_bytes',
      'SQLite: bytes of the disk that are kept for deletes; with less, what grows is refused.',
      disk ? value(disk.reserve_bytes) : [],
      'max',
    ),
  ]
}
