// A schedule: its statuses and moves. No imports from db or http.

import type { Millis } from '../base/clock.ts'

export const statuses = ['pending', 'fired', 'cancelled', 'failed'] as const
export type ScheduleStatus = (typeof statuses)[number]

export const moves = {
  update: { from: ['pending'], to: 'pending' },
  cancel: { from: ['pending'], to: 'cancelled' },
  fire: { from: ['pending'], to: 'fired' },
  give_up: { from: ['pending'], to: 'failed' },
} as const satisfies Record<string, { from: readonly ScheduleStatus[]; to: ScheduleStatus }>

export interface ScheduleRow {
  id: string
  status: ScheduleStatus
  callback_url: string
  /** JSON text. */
  callback_payload: string
  fire_at: Millis
  dlq_on_failure: number
  agent_id: string
  attempts: number
  last_error: string | null
  last_status_code: number | null
  fired_at: Millis | null
  created_at: Millis
  updated_at: Millis
  /** When its job is due; null once it has none. */
  next_at: Millis | null
}
