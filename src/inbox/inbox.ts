// An inbox: its limits, and the lifetimes of its parts. No imports from db or http.

import { day_ms, hour_ms, last_instant_ms, type Millis, second_ms } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'

export const ttl_seconds_default = 86_400
export const ttl_seconds_min = limit(
  'inbox.ttl_least',
  1,
  'seconds',
  'The shortest life of an inbox. Below it 400.',
)
/** How long detail and messages of an expired inbox stay readable. */
export const readable_ms = limit(
  'inbox.readable',
  24 * hour_ms,
  'milliseconds',
  'How long the messages of an expired inbox can be read.',
)
/** How long the URL of an expired inbox answers 410, before it is as unknown as any other. */
export const expired_shown_ms = limit(
  'inbox.expired_shown',
  7 * day_ms,
  'milliseconds',
  'How long senders to an expired inbox are answered 410 instead of 404.',
)

export const list_limit_default = 50
export const list_limit_max = limit(
  'inbox.page',
  100,
  'rows',
  'Inboxes or messages on a page. A larger `limit` counts as this.',
)
/** Messages in the detail, the newest. */
export const messages_shown_max = limit(
  'inbox.messages_shown',
  50,
  'rows',
  'Messages in the detail of an inbox, the newest.',
)
/** Bytes of a detail that are read at once, unless a single message has more. */
export const part_bytes_max = limit(
  'inbox.detail_part_bytes',
  262_144,
  'bytes',
  'Bounds memory: a detail whose messages are more than this is read and sent in parts of this size.',
)
/** Inboxes of a workflow that its list counts. */
export const total_max = limit(
  'inbox.workflow_total',
  10_000,
  'rows',
  'Bounds how long others wait: the most inboxes that the `total` of a workflow counts.',
)
export const wait_seconds_max = limit(
  'inbox.wait',
  55,
  'seconds',
  'How long a request may wait for a message. A larger `wait` is 400.',
)

export interface InboxRow {
  id: string
  /** Sealed. */
  token: string
  label: string
  forward_url: string | null
  workflow_id: string | null
  last_seq: number
  /** The oldest message that is kept; null when none is. */
  first_seq: number | null
  expires_at: Millis
  created_at: Millis
}

/** When an inbox of this ttl expires. Throws VALIDATION_FAILED when its plan allows less; null is unlimited. */
export function expiryOf(now: Millis, ttl_seconds: number, ttl_seconds_max: number | null): Millis {
  if (ttl_seconds_max !== null && ttl_seconds > ttl_seconds_max) {
    throw invalid({ path: '/ttl', message: `must be <= ${ttl_seconds_max} on this plan` })
  }
  return Math.min(now + Math.round(ttl_seconds * second_ms), last_instant_ms)
}

/** Messages up to this number are past what the plan keeps; 0 when none is. */
export function droppedUpTo(last_seq: number, kept_max: number | null): number {
  return kept_max === null ? 0 : Math.max(0, last_seq - kept_max)
}

/** Messages that are dropped but not yet removed are not counted. */
export function messageCount({ last_seq, first_seq }: InboxRow, kept_max: number | null): number {
  if (first_seq === null) return 0
  return last_seq - Math.max(first_seq - 1, droppedUpTo(last_seq, kept_max))
}
