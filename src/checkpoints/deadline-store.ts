// Statements that move timeouts by the time that a tenant was frozen.

import { limit } from '../base/limit.ts'
import { moving } from '../contract/deadline-store.ts'

export const move = moving('checkpoints', {
  ...{ table: 'checkpoints', status: 'pending', column: 'expires_at' },
  texts: ['prompt', 'callback_payload', 'payload', 'edited_payload', 'answer_schema', 'effect'],
  set: `expires_at = case when expires_at > :latest_at then :last_instant else expires_at + :frozen_ms end,
        held_ms = held_ms + :frozen_ms`,
  bytes_max: limit(
    'checkpoints.move_bytes',
    4 * 1_048_576,
    'bytes',
    'Bytes of checkpoints whose timeouts one step of a resume moves.',
  ),
})
