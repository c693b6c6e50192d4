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

/** The settings of a caller, as they are stored. */
export interface Settings {
  callback_url: string
  /** JSON text. */
  callback_payload: string
  fire_at: Millis
  dlq_on_failure: number
  /** Empty: it has none. */
  name: string
  /** Empty: it belongs to none. */
  workflow_id: string
}

/** Settings that count as stored bytes. */
export const texts = [
  'callback_url',
  'callback_payload',
  'name',
  'workflow_id',
] as const satisfies (keyof Settings)[]

/** Settings that a caller may leave out. */
const initial = { dlq_on_failure: 0, name: '', workflow_id: '' } satisfies Partial<Settings>
type Initial = typeof initial

export type GivenSettings = Omit<Settings, keyof Initial> & { [Name in keyof Initial]?: Settings[Name] }

/** With the initial ones for those that were left out. */
export function withInitial(given: GivenSettings): Settings {
  return { ...initial, ...given }
}

/** A new fire_at starts the attempts again; each of the others is replaced by itself. */
export const replaced = [...new Set([...texts, ...(Object.keys(initial) as (keyof Initial)[])])]

/** How it came to be sent again. */
export interface Repeats {
  /** The schedule that it repeats. */
  retry_of: string | null
  /** The dead letter that was resolved by it. */
  redrive_of: string | null
}

/** Those from which it may be sent again. */
export const repeatable = ['failed', 'fired'] as const satisfies ScheduleStatus[]

export interface ScheduleRow extends Settings, Repeats {
  id: string
  status: ScheduleStatus
  agent_id: string
  attempts: number
  last_error: string | null
  last_status_code: number | null
  fired_at: Millis | null
  /** The schedule that repeats it: one at most. */
  retried_as: string | null
  /** The dead letter that its failure left, which may be gone. */
  dead_letter_id: string | null
  created_at: Millis
  updated_at: Millis
  /** When its job is due; null once it has none. */
  next_at: Millis | null
}
