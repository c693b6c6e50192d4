// Failed schedules, and what became of them.

import type { Schedule } from '../../sdk/src/types.ts'

/** True when nothing but the schedule itself stands for the failure: it left no dead letter, and was not sent again. */
export function standsAlone({ dead_letter_id, retried_as }: Schedule): boolean {
  return dead_letter_id === null && retried_as === null
}

/** The reason for which the API would refuse to send it again; null when it would not. */
export function retryRefusal({ status, retried_as }: Pick<Schedule, 'status' | 'retried_as'>): string | null {
  if (retried_as !== null) return 'It has been sent again already: only the latest one can be.'
  if (status === 'cancelled') return 'It was cancelled.'
  return status === 'pending' ? 'It is still to come.' : null
}
