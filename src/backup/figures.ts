// The figures of the backups that the service writes by itself, read from their folder at each look: they hold across restarts and
// in each process, and fall when a backup or its checksum is gone.

import { type Millis, second_ms } from '../base/clock.ts'
import { type Figure, gauge, value } from '../metrics/figure.ts'
import { completeIn, newestAt } from './kept.ts'

/** None without BACKUP_EVERY. */
export function backupFigures(backups: { every_ms: Millis; folder: string } | null, now: Millis): Figure[] {
  if (backups === null) return []
  const newest_at = newestAt(completeIn(backups.folder), now) ?? 0
  return [
    gauge(
      'waystation_backup_last_success_timestamp_seconds',
      'When the newest backup in BACKUP_DIR that has its checksum was begun, since the Unix epoch; 0 when there is none.',
      value(newest_at / second_ms),
      'max',
    ),
    gauge('waystation_backup_interval_seconds', 'BACKUP_EVERY.', value(backups.every_ms / second_ms), 'max'),
  ]
}
