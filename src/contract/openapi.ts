// The list of routes as an OpenAPI 3.1 document.

import type { TSchema } from 'typebox'
import { type ErrorCode, errors } from '../base/errors.ts'
import { type NamedRoute, type Route, successStatus } from './route.ts'
import { isApi, isWrapped } from './surface.ts'

type Json = Record<string, unknown>

const security_schemes: Record<string, Json> = {
  admin: { type: 'apiKey', in: 'header', name: 'x-admin-key', description: 'Admin key, svc_adm_…' },
  agent: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'Agent key, svc_agt_…; x-agent-id goes with it',
  },
  agent_id: {
    type: 'apiKey',
    in: 'header',
    name: 'x-agent-id',
    description: 'The agent of the key in x-api-key',
  },
  api_key: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'Under /api: agent key or admin key; x-agent-id may be left out',
  },
  approval: { type: 'apiKey', in: 'header', name: 'X-Approval-Key', description: 'Approval key, svc_apr_…' },
  cron: { type: 'http', scheme: 'bearer', description: 'The cron secret, for POST /v1/tick only' },
  bearer: { type: 'http', scheme: 'bearer', description: 'Any kind of key as Authorization: Bearer <key>' },
}

const error_schema: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'request_id'],
      properties: {
        code: { type: 'string', enum: Object.keys(errors) },
        message: { type: 'string' },
        details: { type: 'object' },
        request_id: { type: 'string' },
      },
    },
  },
}

/** Under /api and /hook. */
const api_error_schema: Json = {
  type: 'object',
  required: ['success', 'error'],
  properties: { success: { type: 'boolean', const: false }, ...(error_schema.properties as Json) },
}

const request_id_header: Json = {
  'X-Request-Id': {
    schema: { type: 'string' },
    description: "The caller's own when it is well-formed, else a new one.",
  },
}

/** The whole document. `public_url` becomes its only server. */
export function openapiOf(list: readonly NamedRoute[], version: string, public_url: string): Json {
  const paths: Record<string, Json> = {}
  for (const { name, route } of list) {
    const path = route.path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}')
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = operationOf(name, route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waystation',
      version,
      summary: 'The backend that software agents lack.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: public_url }],
    tags: [...new Set(list.map(({ route }) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: security_schemes,
      schemas: { Error: error_schema, ApiError: api_error_schema },
    },
  }
}

function operationOf(name: string, route: Route): Json {
  const parameters = parametersOf(route)
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: requestBodyOf(route.body) } : {}),
    ...(route.raw && route.method !== 'GET' ? { requestBody: any_body } : {}),
    responses: responsesOf(route),
    security: route.cron ? [{ cron: [] }] : securityOf(route),
    ...(route.destructive ? { 'x-destructive': true } : {}),
    ...(route.errors.length > 0 ? { 'x-errors': route.errors } : {}),
    ...(route.sdk ? { 'x-sdk': route.sdk } : {}),
    ...(route.cli ? { 'x-cli': route.cli } : {}),
  }
}

function parametersOf(route: Route): Json[] {
  const required = (route.query as (TSchema & { required?: string[] }) | undefined)?.required ?? []
  return [
    ...Object.entries(route.params ?? {}).map(([name, { schema }]) => parameter('path', name, schema, true)),
    ...(route.path.endsWith('*') ? [rest_of_path] : []),
    ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) =>
      parameter('query', name, schema as TSchema, required.includes(name)),
    ),
    ...Object.entries(route.headers ?? {}).map(([name, description]) =>
      parameter('header', name, { type: 'string', description } as TSchema, false),
    ),
    ...(route.create ? [idempotency_key] : []),
  ]
}

const idempotency_key = parameter(
  'header',
  'Idempotency-Key',
  {
    type: 'string',
    pattern: '^[!-~]{1,255}$',
    description:
      'A repeat with the same key and body within 24 hours gets the first answer and has no second effect.',
  } as TSchema,
  false,
)

function parameter(place: string, name: string, schema: TSchema, required: boolean): Json {
  const { description, ...rest } = plain(schema)
  return { in: place, name, required, ...(description ? { description } : {}), schema: rest }
}

const rest_of_path = parameter(
  'path',
  'path',
  { type: 'string', description: 'Anything, further slashes included.' } as TSchema,
  true,
)

const any_body: Json = { required: false, content: { '*/*': { schema: {} } } }

function requestBodyOf(body: TSchema & { required?: string[] }): Json {
  return {
    required: (body.required ?? []).length > 0,
    content: { 'application/json': { schema: plain(body) } },
  }
}

function responsesOf(route: Route): Json {
  const responses: Json = {}
  for (const [status, schema] of Object.entries(route.replies)) {
    responses[status] = {
      description: descriptions[Number(status)] ?? 'Success',
      headers: {
        ...request_id_header,
        ...(Number(status) === successStatus(route) ? extraHeaders(route) : {}),
        ...rateHeaders(route, Number(status)),
      },
      ...(schema
        ? { content: { 'application/json': { schema: wrapped(route, Number(status), schema) } } }
        : {}),
    }
  }
  const error = { $ref: `#/components/schemas/${isWrapped(route.path) ? 'ApiError' : 'Error'}` }
  for (const [status, codes] of byStatus(errorCodesOf(route))) {
    const reply = route.replies[Number(status)]
    const schema = reply ? { anyOf: [wrapped(route, Number(status), reply), error] } : error
    responses[status] = {
      description: [...(reply ? [descriptions[Number(status)]] : []), ...codes].join(', '),
      headers: { ...request_id_header, ...(reply ? rateHeaders(route, Number(status)) : {}) },
      content: { 'application/json': { schema } },
    }
  }
  return responses
}

/** Under /api the data lies in an envelope. */
function wrapped(route: Route, status: number, schema: TSchema): Json {
  if (!isApi(route.path)) return plain(schema)
  return {
    type: 'object',
    required: ['success', 'data'],
    properties: { success: { type: 'boolean', const: status < 400 }, data: plain(schema) },
  }
}

const descriptions: Record<number, string> = {
  200: 'Success',
  201: 'Created',
  202: 'Scheduled',
  204: 'Done, no body',
  304: 'Unchanged, no body',
  429: 'Blocked',
}

function rateHeaders(route: Route, status: number): Json {
  if (!route.path.startsWith('/api/rate-limit/')) return {}
  const string = { schema: { type: 'string' } }
  return {
    ...{ RateLimit: string, 'RateLimit-Policy': string },
    ...(status === 429 ? { 'Retry-After': { schema: { type: 'integer' } } } : {}),
  }
}

function extraHeaders(route: Route): Json {
  const string = { schema: { type: 'string' } }
  return {
    ...(route.body ? { 'X-Ignored-Fields': string } : {}),
    ...(route.create ? { 'Idempotent-Replayed': string } : {}),
    ...(route.tag === 'Key-value store' && route.path.endsWith(':key') && route.method !== 'DELETE'
      ? { 'X-Version': string }
      : {}),
  }
}

/** What a route may answer besides success: its own codes and those that its kind of route shares. */
export function errorCodesOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors)
  if (route.auth.length > 0) for (const code of of_keys) codes.add(code)
  if (route.body) for (const code of of_bodies) codes.add(code)
  if (route.raw) for (const code of of_raw_bodies) codes.add(code)
  if (isApi(route.path)) codes.add('QUOTA_EXCEEDED')
  if (route.query || hasCheckedParams(route) || route.create) codes.add('VALIDATION_FAILED')
  if (route.create) for (const code of of_creations) codes.add(code)
  const serves_itself = route.auth.length === 0 && !route.create && !route.cron && !route.raw
  if (!serves_itself) for (const code of of_databases) codes.add(code)
  if ((route.method !== 'GET' || route.raw) && !serves_itself) for (const code of of_writes) codes.add(code)
  return [...codes]
}

const of_keys: ErrorCode[] = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'TENANT_PENDING_DELETION',
  'VALIDATION_FAILED',
  'RATE_LIMITED',
]
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
    for (const status of statusesOf(code)) groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return groups
}

/** The API contract gives VERSION_MISMATCH two. */
function statusesOf(code: ErrorCode): string[] {
  return code === 'VERSION_MISMATCH' ? ['409', '412'] : [String(errors[code].status)]
}

function securityOf({ auth, path }: Route): Json[] {
  if (auth.length === 0) return []
  const of_agent: Json = isApi(path) ? { api_key: [] } : { agent: [], agent_id: [] }
  const own_header = auth.map((kind) => (kind === 'agent' ? of_agent : { [kind]: [] }))
  return [...own_header, { bearer: [] }]
}

/** TypeBox keeps marks that JSON does not show; a copy by JSON leaves the schema as it stands. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}
