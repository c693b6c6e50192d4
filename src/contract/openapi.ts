// The list of routes as an OpenAPI 3.1 document.

import type { TSchema } from 'typebox'
import { type ErrorCode, errorCodes, errors, statusesOf } from '../base/errors.ts'
import { type Declared, type NamedRoute, type Route, successStatus } from './route.ts'

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
    description: 'Agent key or admin key; x-agent-id may be left out',
  },
  approval: { type: 'apiKey', in: 'header', name: 'X-Approval-Key', description: 'Approval key, svc_apr_…' },
  cron: { type: 'http', scheme: 'bearer', description: 'The cron secret of the operator' },
  bearer: { type: 'http', scheme: 'bearer', description: 'Any kind of key as Authorization: Bearer <key>' },
}

/** The envelope of errors; made on demand, when every feature has declared its codes. */
function errorSchema(): Json {
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

/** Of groups that mark their errors. */
function markedErrorSchema(): Json {
  return {
    type: 'object',
    required: ['success', 'error'],
    properties: { success: { type: 'boolean', const: false }, ...(errorSchema().properties as Json) },
  }
}

/** What each code says and what the caller does next, for clients that are made from the document. */
function errorRows(): Json {
  return Object.fromEntries(
    errorCodes().map((code) => {
      const { status, precondition_status, message, next, exit } = errors[code]
      return [code, { status, ...(precondition_status && { precondition_status }), message, next, exit }]
    }),
  )
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
      schemas: { Error: errorSchema(), ApiError: markedErrorSchema() },
    },
    'x-errors': errorRows(),
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
    ...(route.group.wraps_data ? { 'x-wrapped': true } : {}),
    ...(route.raw ? { 'x-raw': true } : {}),
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
  for (const [status, declared] of Object.entries(route.replies)) {
    responses[status] = {
      description: descriptionOf(status, declared),
      headers: headersOf(route, status),
      ...(declared.body ? contentOf(wrapped(route, status, declared.body)) : {}),
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

function contentOf(schema: Json): Json {
  return { content: { 'application/json': { schema } } }
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

/** Those of every answer, of every success of such a route, and what the route declares. */
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

/** What a route may answer besides success: its own codes and those that its kind of route shares. */
export function errorCodesOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors)
  if (route.auth.length > 0) for (const code of of_keys) codes.add(code)
  if (route.body) for (const code of of_bodies) codes.add(code)
  if (route.raw) for (const code of of_raw_bodies) codes.add(code)
  if (route.group.counts_calls) codes.add('QUOTA_EXCEEDED')
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
    for (const status of statusesOf(code).map(String))
      groups.set(status, [...(groups.get(status) ?? []), code])
  }
  return groups
}

function securityOf({ auth, group }: Route): Json[] {
  if (auth.length === 0) return []
  const own_header = auth.map((kind) => Object.fromEntries(group.schemes[kind].map((scheme) => [scheme, []])))
  return [...own_header, { bearer: [] }]
}

/** TypeBox keeps marks that JSON does not show; a copy by JSON leaves the schema as it stands. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}
