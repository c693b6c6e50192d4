// The request that an inbox sends on. No imports from db or http.

import type { Millis } from '../base/clock.ts'
import type { Outgoing } from '../callbacks/attempt.ts'
import { workflow_header, workflowHeader } from '../callbacks/message.ts'
import { bytesOf, hops_header, hopsOf, type MessageRow } from './message.ts'

export interface Forwardable extends Pick<MessageRow, 'method' | 'encoding' | 'headers' | 'body'> {
  forward_url: string
  /** Of the inbox. */
  workflow_id: string | null
  /** Since when the tenant is frozen; null while it is not. */
  frozen_at: Millis | null
}

/** Of one connection (RFC 9110 section 7.6.1), or of one message on it: not the sender's to say to the next. */
const own_headers = new Set([
  ...['host', 'content-length', 'expect', 'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'x-waystation-inbox', hops_header, workflow_header],
])

/** Same method, bytes and headers; the URL is the inbox's own, without the path and query of the message. */
export function forwardRequest(inbox_id: string, message: Forwardable): Outgoing {
  const sent = JSON.parse(message.headers) as Record<string, string>
  const named = (sent.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  const headers = Object.entries(sent).filter(
    ([name]) => !own_headers.has(name) && !name.startsWith('proxy-') && !named.includes(name),
  )
  headers.push(['x-waystation-inbox', inbox_id], [hops_header, String(hopsOf(sent[hops_header] ?? null) + 1)])
  return {
    method: message.method,
    url: message.forward_url,
    headers: { ...Object.fromEntries(headers), ...workflowHeader(message.workflow_id) },
    body: bytesOf(message),
  }
}
