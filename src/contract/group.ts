// The groups of the API. The routes of a group have envelopes, credentials and counting in common.

import type { ApiError } from '../base/errors.ts'
import type { CallerKind } from './caller.ts'

/** A header that carries a key, and the kinds of key that it takes. */
export interface KeyHeader {
  name: string
  takes: readonly CallerKind[]
}

export interface Group {
  name: 'v1' | 'api' | 'hook'
  /** Data lies in an envelope, `{"success", "data"}`. */
  wraps_data: boolean
  /** Errors say `"success": false` beside `"error"`. */
  marks_errors: boolean
  /** Headers with a key, beside Authorization, which takes every kind. */
  key_headers: readonly KeyHeader[]
  /** A key in a header of its own needs `x-agent-id` beside it, when it is an agent's. */
  requires_agent_id: boolean
  /** Security schemes of the document that a key of each kind stands for; those of one kind go together. */
  schemes: Readonly<Record<CallerKind, readonly string[]>>
  /** Calls count against `api_calls_per_month`. */
  counts_calls: boolean
  /** Served under any name, even while everything is loopback. */
  any_host: boolean
}

const other_key_headers: readonly KeyHeader[] = [
  { name: 'x-admin-key', takes: ['admin'] },
  { name: 'x-approval-key', takes: ['approval'] },
]

/** Plain objects; each kind of key has its header. */
export const v1: Group = {
  name: 'v1',
  wraps_data: false,
  marks_errors: false,
  key_headers: [{ name: 'x-api-key', takes: ['agent'] }, ...other_key_headers],
  requires_agent_id: true,
  schemes: { admin: ['admin'], agent: ['agent', 'agent_id'], approval: ['approval'] },
  counts_calls: false,
  any_host: false,
}

/** Wrapped data, calls within a monthly quota, one header for both kinds of key. */
export const api: Group = {
  name: 'api',
  wraps_data: true,
  marks_errors: true,
  key_headers: [{ name: 'x-api-key', takes: ['agent', 'admin'] }, ...other_key_headers],
  requires_agent_id: false,
  schemes: { admin: ['admin'], agent: ['api_key'], approval: ['approval'] },
  counts_calls: true,
  any_host: false,
}

/** Without keys: any sender may call, under any name of the service. */
export const hook: Group = { ...v1, name: 'hook', marks_errors: true, any_host: true }

/** The body of an answer with data, which may be a refusal with data. `text` is JSON. */
export function dataText(group: Group, status: number, text: string): string {
  return group.wraps_data ? `{"success":${status < 400},"data":${text}}` : text
}

/** The error envelope of the group; null for a path without a route. */
export function errorText(
  group: Group | null,
  { code, message, details }: ApiError,
  request_id: string,
): string {
  const error = details ? { code, message, details, request_id } : { code, message, request_id }
  return JSON.stringify(group?.marks_errors ? { success: false, error } : { error })
}
