// The answers of a route in the OpenAPI document: schemas, headers and error codes.

import type { TSchema } from 'typebox'
import { type ErrorCode, errorCodes, errors, statusesOf } from '../base/errors.ts'
import { type Declared, type Route, successStatus } from './route.ts'
import { goesOnWhileStopped } from './stopped.ts'

export type Json = Record<string, unknown>

const request_id_header: Json = {
  'X-Request-Id': {
    schema: { type: 'string' },
    description: "The caller's own when it is well-formed, else a new one.",
  },
}

export function responsesOf(route: Route): Json {
  const responses: Json = {}
  for (const [status, declared] of Object.entries(route.replies)) {
    responses[status] = {
      description: descriptionOf(status, declared),
      headers: headersOf(route, status),
      ...(declared.body ? contentOf(wrapped(route, status, declared.body), declared.event_stream) : {}),
    }
  }
  const error = { $ref: `#/components/schemas/${route.group.marks_errors ? 'ApiError' : 'Error'}` }
  for (const [status, codes] of byStatus(errorCodesOf(route))) {
    const declared = route.replies[Number(status)]
    const schema = declared?.body ? { anyOf: [wrapped(route, status, declared.body), error] } : error
    responses[status] = {
      description: [...(declared ? [descriptionOf(status, declared)] : []), ...codes].join(', '),
      headers: headersOf(route, status),
      ...contentOf(schema),
    }
  }
  return responses
}

function contentOf(schema: Json, event_stream?: string): Json {
  const stream = event_stream && { schema: { type: 'string', description: event_stream } }
  return { content: { 'application/json': { schema }, ...(stream ? { 'text/event-stream': stream } : {}) } }
}

/** In a group with an envelope the data lies in it. */
function wrapped({ group }: Route, status: string, schema: TSchema): Json {
  if (!group.wraps_data) return plain(schema)
  return {
    type: 'object',
    required: ['success', 'data'],
    properties: { success: { type: 'boolean', const: Number(status) < 400 }, data: plain(schema) },
  }
}

const descriptions: Record<string, string> = {
  200: 'Success',
  201: 'Created',
  202: 'Accepted',
  204: 'Done, no body',
  304: 'Unchanged, no body',
}

function descriptionOf(status: string, { description }: Declared): string {
  return description ?? descriptions[status] ?? 'Success'
}

/** The headers of every answer, of every success of such a route, and those that the route declares. */
function headersOf(route: Route, status: string): Json {
  const text = { schema: { type: 'string' } }
  const is_success = Number(status) === successStatus(route)
  const declared = Object.entries(route.replies[Number(status)]?.headers ?? {})
  return {
    ...request_id_header,
    ...(is_success && route.body ? { 'X-Ignored-Fields': text } : {}),
    ...(is_success && route.create ? { 'Idempotent-Replayed': text } : {}),
    ...Object.fromEntries(declared.map(([name, schema]) => [name, headerOf(schema)])),
  }
}

function headerOf(header: TSchema): Json {
  const { description, ...schema } = plain(header)
  return { ...(description ? { description } : {}), schema }
}

/** The codes that a route may answer: its own, and those that all routes of its kind share. */
export function errorCodesOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors)
  if (route.auth.length > 0) for (const code of of_keys) codes.add(code)
  if (route.auth.includes('agent') && !goesOnWhileStopped(route))
    for (const code of of_agents) codes.add(code)
  if (route.body) for (const code of of_bodies) codes.add(code)
  if (route.raw) for (const code of of_raw_bodies) codes.add(code)
  if (route.group.counts_calls) codes.add('QUOTA_EXCEEDED')
  if (route.query || hasCheckedParams(route) || route.create) codes.add('VALIDATION_FAILED')
  if (route.create) for (const code of of_creations) codes.add(code)
  const serves_itself = route.auth.length === 0 && route.method === 'GET' && !route.cron && !route.raw
  if (!serves_itself) for (const code of of_databases) codes.add(code)
  if (route.method !== 'GET' || route.raw) for (const code of of_writes) codes.add(code)
  return [...codes]
}

const of_keys: ErrorCode[] = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'TENANT_PENDING_DELETION',
  'VALIDATION_FAILED',
  'RATE_LIMITED',
]
/** Of agents that change something. */
export const of_agents: ErrorCode[] = ['TENANT_FROZEN', 'AGENT_PAUSED', 'AGENT_READ_ONLY']
const of_bodies: ErrorCode[] = [
  'VALIDATION_FAILED',
  'INVALID_JSON',
  'REQUEST_TIMEOUT',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
]
const of_raw_bodies: ErrorCode[] = ['VALIDATION_FAILED', 'REQUEST_TIMEOUT', 'PAYLOAD_TOO_LARGE']
const of_creations: ErrorCode[] = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED']
const of_databases: ErrorCode[] = ['INTERNAL', 'UNAVAILABLE']
const of_writes: ErrorCode[] = ['OUTCOME_UNKNOWN', 'STORAGE_FULL']

function hasCheckedParams(route: Route): boolean {
  return Object.values(route.params ?? {}).some(({ message }) => message !== '')
}

function byStatus(codes: ErrorCode[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const code of codes) {
    for (const status of statusesOf(code).map(String))
      groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return groups
}

/** The envelope of errors; made on demand, when every feature has declared its codes. */
export function errorSchema(): Json {
  return {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'request_id'],
        properties: {
          code: { type: 'string', enum: errorCodes() },
          message: { type: 'string' },
          details: { type: 'object' },
          request_id: { type: 'string' },
        },
      },
    },
  }
}

/** The envelope in groups that mark their errors. */
export function markedErrorSchema(): Json {
  return {
    type: 'object',
    required: ['success', 'error'],
    properties: { success: { type: 'boolean', const: false }, ...(errorSchema().properties as Json) },
  }
}

/** The row of each code, for clients that are made from the document. */
export function errorRows(): Json {
  return Object.fromEntries(
    errorCodes().map((code) => {
      const { status, precondition_status, message, next, exit } = errors[code]
      return [code, { status, ...(precondition_status && { precondition_status }), message, next, exit }]
    }),
  )
}

/** TypeBox keeps marks that JSON does not show; a copy by JSON leaves the schema as it stands. */
export function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}
