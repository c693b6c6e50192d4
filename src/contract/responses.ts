// The answers of a route in the OpenAPI document: schemas, headers and error codes.

import type { TSchema } from 'typebox'
import { type ErrorCode, statusesOf } from '../base/errors.ts'
import type { Components } from './components.ts'
import { type Declared, type Route, successStatus } from './route.ts'
import { partNamed } from './schemas.ts'
import { goesOnWhileStopped } from './stopped.ts'

export type Json = Record<string, unknown>

/** A request of an operation and its answers, by status, as scripts/api-examples.ts writes them. */
export interface Example {
  path?: Record<string, string>
  query?: Record<string, string>
  request?: unknown
  answers: Record<string, unknown>
}

const request_id_header: Json = {
  'X-Request-Id': {
    schema: { type: 'string' },
    description: "The caller's own when it is well-formed, else a new one.",
  },
}

export function responsesOf(route: Route, components: Components, { answers }: Example): Json {
  const responses: Json = {}
  for (const [status, declared] of Object.entries(route.replies)) {
    responses[status] = {
      description: descriptionOf(status, declared),
      headers: headersOf(route, status),
      ...(declared.body
        ? contentOf(
            answerOf(route, status, declared.body, components),
            answers[status],
            declared.event_stream,
          )
        : {}),
    }
  }
  const error = { $ref: `#/components/schemas/${route.group.marks_errors ? 'ApiError' : 'Error'}` }
  for (const [status, codes] of byStatus(errorCodesOf(route))) {
    const declared = route.replies[Number(status)]
    const schema = declared?.body
      ? { anyOf: [answerOf(route, status, declared.body, components), error] }
      : error
    responses[status] = {
      description: [...(declared ? [descriptionOf(status, declared)] : []), ...codes].join(', '),
      headers: headersOf(route, status),
      ...contentOf(schema, answers[status]),
    }
  }
  return responses
}

function contentOf(schema: Json, example: unknown, event_stream?: string): Json {
  const stream = event_stream && { schema: { type: 'string', description: event_stream } }
  const json = { schema, ...(example === undefined ? {} : { example }) }
  return { content: { 'application/json': json, ...(stream ? { 'text/event-stream': stream } : {}) } }
}

/** In a group with an envelope the data lies in it. */
function answerOf({ group }: Route, status: string, schema: TSchema, components: Components): Json {
  const data = plain(schema)
  if (!group.wraps_data) return components.of(data)
  const name = String(data['x-name'] ?? data['x-component'])
  return components.of({
    ...partNamed(`${name}Answer`, {
      of: 'ApiAnswer',
      about: `The envelope of ${name}.`,
      shared: 'The envelope of answers under /api.',
    }),
    type: 'object',
    required: ['success', 'data'],
    properties: { success: { type: 'boolean', const: Number(status) < 400 }, data },
  })
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

/** TypeBox keeps marks that JSON does not show; a copy by JSON leaves the schema as it stands. */
export function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}
