// Statements that move the locks of a tenant that is resumed.

import { limit } from '../base/limit.ts'
import { moving } from '../contract/deadline-store.ts'
import { table } from './store.ts'

export const move = moving('dlq', {
  ...{ table: table.table, status: 'claimed', column: 'locked_until', texts: table.texts },
  set: 'locked_until = locked_until + :frozen_ms, held = 0',
  bytes_max: limit(
    'dlq.move_bytes',
    4 * 1_048_576,
    'bytes',
    'Bytes of dead letters whose locks one step of a resume moves.',
  ),
})
