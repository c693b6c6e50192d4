// Statements that move the leases of a tenant that is resumed.

import { limit } from '../base/limit.ts'
import { moving } from '../contract/deadline-store.ts'
import { in_status_index } from './list-store.ts'

export const move = moving('effects', {
  ...{ table: 'effects', status: 'running', column: 'lease_until', only: in_status_index },
  texts: ['payload', 'effective_payload', 'error', 'note'],
  set: 'lease_until = lease_until + :frozen_ms, held = 0',
  bytes_max: limit(
    'effects.move_bytes',
    4 * 1_048_576,
    'bytes',
    'Bytes of effects whose leases one step of a resume moves.',
  ),
})
