// The list of routes as an OpenAPI 3.1 document.

import type { TSchema } from 'typebox'
import type { NamedRoute } from './feature.ts'
import { errorRows, errorSchema, type Json, markedErrorSchema, plain, responsesOf } from './responses.ts'
import type { Route } from './route.ts'

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

function securityOf({ auth, group }: Route): Json[] {
  if (auth.length === 0) return []
  const own_header = auth.map((kind) => Object.fromEntries(group.schemes[kind].map((scheme) => [scheme, []])))
  return [...own_header, { bearer: [] }]
}
