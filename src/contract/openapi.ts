// The list of routes as an OpenAPI 3.1 document.

import { Components } from './components.ts'
import { addErrors, errorRows } from './error-schemas.ts'
import examples from './examples.json' with { type: 'json' }
import type { NamedRoute } from './feature.ts'
import { parametersOf } from './parameters.ts'
import { type Example, type Json, plain, responsesOf } from './responses.ts'
import type { Route } from './route.ts'

const description =
  'State, audit log, dead letters, schedules, approvals, webhook inboxes and rate limits behind one JSON API. A refused request is answered with a code; `x-errors` says what to do about each.'

const security_schemes: Record<string, Json> = {
  admin: { type: 'apiKey', in: 'header', name: 'x-admin-key', description: 'Admin key, svc_adm_…' },
  agent: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: 'Agent key, svc_agt_…; sent with x-agent-id',
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
    description: 'Agent key or admin key; x-agent-id is optional',
  },
  approval: { type: 'apiKey', in: 'header', name: 'X-Approval-Key', description: 'Approval key, svc_apr_…' },
  cron: { type: 'http', scheme: 'bearer', description: 'The cron secret of the operator' },
  bearer: { type: 'http', scheme: 'bearer', description: 'Any kind of key as Authorization: Bearer <key>' },
}

/** The whole document. `tags` by name; `public_url` becomes its only server. */
export function openapiOf(
  list: readonly NamedRoute[],
  tags: Readonly<Record<string, string>>,
  version: string,
  public_url: string,
): Json {
  const components = new Components()
  addErrors(components)
  const paths: Record<string, Json> = {}
  for (const { name, route } of list) {
    const path = route.path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}')
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = operationOf(name, route, components)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waystation',
      version,
      summary: 'The backend that software agents lack.',
      description,
      contact: { name: 'The operator of this service' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: public_url }],
    tags: [...new Set(list.map(({ route }) => route.tag))].map((name) => ({ name, description: tags[name] })),
    paths,
    components: {
      securitySchemes: security_schemes,
      schemas: components.schemas(),
    },
    'x-errors': errorRows(),
  }
}

function operationOf(name: string, route: Route, components: Components): Json {
  const example = (examples as Record<string, Example>)[name] ?? { answers: {} }
  const parameters = parametersOf(route, components, example)
  return {
    operationId: name,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body ? { requestBody: requestBodyOf(name, route, components, example) } : {}),
    ...(route.raw && route.method !== 'GET' ? { requestBody: any_body } : {}),
    responses: responsesOf(route, components, example),
    security: route.cron ? [{ cron: [] }] : securityOf(route),
    ...(route.group.wraps_data ? { 'x-wrapped': true } : {}),
    ...(route.raw ? { 'x-raw': true } : {}),
    ...(route.destructive ? { 'x-destructive': true } : {}),
    ...(route.errors.length > 0 ? { 'x-errors': route.errors } : {}),
    ...(route.sdk ? { 'x-sdk': route.sdk } : {}),
    ...(route.cli ? { 'x-cli': route.cli } : {}),
  }
}

const any_body: Json = {
  required: false,
  content: {
    'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
    '*/*': { schema: {} },
  },
}

function requestBodyOf(
  name: string,
  { body, summary }: Route,
  components: Components,
  { request }: Example,
): Json {
  const { description = `The body of \`${name}\`: ${summary}.`, ...schema } = plain(body!)
  const operation = name[0]!.toUpperCase() + name.slice(1)
  return {
    required: ((schema.required as string[] | undefined) ?? []).length > 0,
    content: {
      'application/json': {
        schema: components.of({ ...schema, description }, `${operation}Request`),
        ...(request === undefined ? {} : { example: request }),
      },
    },
  }
}

function securityOf({ auth, group }: Route): Json[] {
  if (auth.length === 0) return []
  const own_header = auth.map((kind) => Object.fromEntries(group.schemes[kind].map((scheme) => [scheme, []])))
  return [...own_header, { bearer: [] }]
}
