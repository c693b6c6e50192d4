// The parameters of a route in the OpenAPI document.

import type { TSchema } from 'typebox'
import type { Components } from './components.ts'
import { type Example, type Json, plain } from './responses.ts'
import type { Route } from './route.ts'

export function parametersOf(
  route: Route,
  components: Components,
  { path = {}, query = {} }: Example,
): Json[] {
  const required = (route.query as (TSchema & { required?: string[] }) | undefined)?.required ?? []
  return [
    ...Object.entries(route.params ?? {}).map(([name, { schema }]) =>
      parameter('path', name, parameterSchema(schema, components), true, path[name]),
    ),
    ...(route.path.endsWith('*') ? [rest_of_path] : []),
    ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) =>
      parameter(
        'query',
        name,
        parameterSchema(schema as TSchema, components),
        required.includes(name),
        query[name],
      ),
    ),
    ...Object.entries(route.headers ?? {}).map(([name, description]) =>
      parameter('header', name, { type: 'string', description }, false),
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
  },
  false,
)

function parameter(
  place: string,
  name: string,
  { description, ...schema }: Json,
  required: boolean,
  text?: string,
): Json {
  const example =
    text !== undefined && ['integer', 'number'].includes(String(schema.type)) ? Number(text) : text
  return {
    in: place,
    name,
    required,
    ...(description ? { description } : {}),
    schema,
    ...(example === undefined ? {} : { example }),
  }
}

/** A reference keeps the description of the parameter beside it. */
function parameterSchema(schema: TSchema, components: Components): Json {
  const { description, ...rest } = plain(schema)
  return { ...(description ? { description } : {}), ...components.of(rest) }
}

const rest_of_path = parameter(
  'path',
  'path',
  { type: 'string', description: 'Anything, including further slashes.' },
  true,
)
