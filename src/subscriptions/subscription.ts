// A subscription: its formats and statuses, which events it takes, and how its target is shown. No imports from db or http.

import { hour_ms, type Millis, minute_ms, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'

export const formats = ['standard', 'slack', 'mail'] as const
export type Format = (typeof formats)[number]

export const statuses = ['unconfirmed', 'active', 'paused'] as const
export type SubscriptionStatus = (typeof statuses)[number]

/**
 * requested: by an admin. gone: the receiver answered 410. failing: an event was not accepted for three days. unsubscribed: by
 * the person who gets the emails.
 */
export const pause_reasons = ['requested', 'gone', 'failing', 'unsubscribed'] as const
export type PauseReason = (typeof pause_reasons)[number]

/** The example of Standard Webhooks 1.0.0, "Retry schedule", counted from the first attempt: three days and three hours. */
export const attempt_offsets_ms: readonly number[] = [
  0,
  5 * second_ms,
  5 * minute_ms,
  35 * minute_ms,
  2.5 * hour_ms,
  7.5 * hour_ms,
  17.5 * hour_ms,
  31.5 * hour_ms,
  51.5 * hour_ms,
  75.5 * hour_ms,
]
export const attempts_max = limit(
  'subscriptions.attempts',
  attempt_offsets_ms.length,
  'attempts',
  'Attempts to deliver one event to a subscription, over 75 hours. Then the subscription is paused.',
)

export const types_max = limit(
  'subscriptions.types',
  32,
  'entries',
  'Types of events that a subscription names. Past it 400.',
)
export const type_characters_max = limit(
  'subscriptions.type',
  64,
  'characters',
  'A type of events. Past it 400.',
)
/** `schedule.failed`, or `schedule.*`. */
export const type_pattern = '^[a-z][a-z_]*\\.([a-z][a-z_]*|\\*)$'

export const email_characters_max = limit(
  'subscriptions.address',
  254,
  'characters',
  'An email address (RFC 5321). Past it 400.',
)

/** True when one of the types names it, exactly or as `noun.*`. */
export function takes(types: readonly string[], type: string): boolean {
  const noun = type.slice(0, type.indexOf('.') + 1)
  return types.some((wanted) => wanted === type || wanted === `${noun}*`)
}

/** The given types that no event has. */
export function unknownAmong(types: readonly string[], known: readonly string[]): string[] {
  return types.filter((wanted) => !known.some((type) => takes([wanted], type)))
}

/** The part of an event that says whether a subscription takes it. */
export interface Considered {
  type: string
  subject_kind: string
  subject_id: string
  workflow_id: string | null
}

export interface Selection {
  id: string
  types: readonly string[]
  workflow_id: string | null
}

/** False for what is about the subscription itself: it would report its own deliveries. */
export function isWanted({ id, types, workflow_id }: Selection, event: Considered): boolean {
  if (workflow_id !== null && event.workflow_id !== workflow_id) return false
  if (event.subject_kind === 'subscription' && event.subject_id === id) return false
  return takes(types, event.type)
}

const shown_end_characters = 4
/** A shorter URL would be shown almost whole. */
const shown_from_characters = 12

/** `https://hooks.slack.com/…aB3d`: without what makes the URL a secret. */
export function maskedUrl(url: string): string {
  const { origin, pathname, search, hash } = new URL(url)
  const rest = `${pathname}${search}${hash}`
  const end = rest.length < shown_from_characters ? '' : rest.slice(-shown_end_characters)
  return rest === '/' ? `${origin}/` : `${origin}/…${end}`
}

/** `a…@example.com` */
export function maskedAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return `${[...address][0]}…${address.slice(at)}`
}

/** One mailbox, written as it is sent: no display name, no comment, no list. */
export function isAddress(text: string): boolean {
  return (
    text.length <= email_characters_max && /^[^\s<>()[\]\\,;:"@]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+$/.test(text)
  )
}

/** One text for all spellings of a mailbox: in practice no mail server distinguishes case. */
export function sameAddress(address: string): string {
  return address.normalize('NFC').toLowerCase()
}

export interface SubscriptionRow {
  id: string
  status: SubscriptionStatus
  paused_reason: PauseReason | null
  format: Format
  /** Empty when it has none. */
  name: string
  /** A JSON list. */
  types: string
  workflow_id: string | null
  /** Masked. */
  shown: string
  position: number
  attempts: number
  last_error: string | null
  last_status_code: number | null
  last_attempt_at: Millis | null
  delivered_at: Millis | null
  created_at: Millis
  updated_at: Millis
  /** When its job is due. */
  next_at: Millis
}
