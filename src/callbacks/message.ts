// The signed request that reports an event to a receiver.

import { type Millis, second_ms } from '../base/clock.ts'
import { version } from '../version.ts'
import type { Outgoing } from './attempt.ts'
import { signatureHeaders } from './sign.ts'

export interface Callback {
  url: string
  /** `schedule.fired`. */
  event: string
  /** JSON text, sent as it is. */
  body: string
  /** The workflow that it belongs to; null for none. */
  workflow_id: string | null
}

export interface SignedCallback extends Callback {
  /** The webhook-id, the same on every retry. */
  id: string
  attempt: number
  /** Real time, by which receivers judge it. */
  sent_at: Millis
  secrets: readonly string[]
}

export function signedRequest({
  url,
  event,
  body,
  workflow_id,
  id,
  attempt,
  sent_at,
  secrets,
}: SignedCallback): Outgoing {
  const timestamp_seconds = Math.floor(sent_at / second_ms)
  return {
    method: 'POST',
    url,
    headers: {
      'content-type': 'application/json',
      'user-agent': `Waystation/${version}`,
      'x-waystation-event': event,
      'x-waystation-attempt': String(attempt),
      ...workflowHeader(workflow_id),
      ...signatureHeaders({ id, timestamp_seconds, body, secrets }),
    },
    body,
  }
}

/** On deliveries of subscriptions. */
export const subscription_header = 'x-waystation-subscription'

export const workflow_header = 'x-waystation-workflow'

/** Field values of HTTP hold visible ASCII for certain (RFC 9110 section 5.5): other bytes, and `%`, are percent-encoded. */
export function workflowHeader(workflow_id: string | null): Record<string, string> {
  if (workflow_id === null) return {}
  return { [workflow_header]: workflow_id.replace(/[^!-$&-~]+/g, encodeURIComponent) }
}
