// /livez, /readyz and /openapi.json: for operators and their tools, without a key.

import { Type } from 'typebox'
import { ApiError } from '../base/errors.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { named, RawJson, Shape } from '../contract/schemas.ts'

const tag = 'Service'

export const livez = route({
  group: v1,
  method: 'GET',
  path: '/livez',
  aliases: ['/health'], // where many tools look
  tag,
  summary: 'Check that the process answers, and nothing else',
  description: 'For a process supervisor. It does not ask the database.',
  sdk: { name: 'health.live' },
  auth: [],
  replies: {
    200: {
      body: Shape(
        'Liveness',
        { of: 'Health', about: 'The process answers.', shared: 'The state of the service.' },
        { status: Type.Literal('alive') },
      ),
    },
  },
  shed: 'never',
  errors: [],
  handle: () => ({ status: 'alive' }),
})

export const readyz = route({
  group: v1,
  method: 'GET',
  path: '/readyz',
  tag,
  summary: 'Check that the database answers, the schema is right and no drain has begun',
  description:
    'For a load balancer: 503 while the service cannot do its work. With `verbose` it adds versions and settings.',
  sdk: { name: 'health.ready' },
  cli: {
    usage: 'health',
    about: 'Ask whether the service can do its work',
    examples: ['waystation health', 'waystation health --verbose --json'],
    options: { verbose: ['--verbose', 'with version, engine, schema version and durability settings'] },
  },
  auth: [],
  query: Type.Object({
    verbose: Type.Optional(
      Type.String({
        description: 'Adds version, engine, schema version and durability settings.',
        'x-flag': true,
      }),
    ),
  }),
  replies: {
    200: {
      body: Type.Object(
        {
          status: Type.Literal('ready'),
          version: Type.Optional(Type.String()),
          engine: Type.Optional(Type.Enum(['sqlite', 'postgres'])),
          schema_version: Type.Optional(Type.Integer()),
          quarantined_since: Type.Optional(
            Type.String({
              format: 'date-time',
              description:
                'Present while the database is a restored copy that the operator has not released: nothing due is sent, and no effect starts.',
            }),
          ),
          other_nodes: Type.Optional(
            Type.Enum(['heard', 'polled'], {
              description:
                'PostgreSQL: heard when changes on other nodes are signalled to this one, polled when it looks for them.',
            }),
          ),
          durability: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]))),
        },
        named('Readiness', { of: 'Health', about: 'The service can do its work.' }),
      ),
    },
  },
  shed: 'never',
  errors: ['UNAVAILABLE'],
  async handle({ dependencies }, { query }) {
    const { reason, ...facts } = await dependencies.service.readiness()
    if (reason) throw new ApiError('UNAVAILABLE', { details: { reason }, retry_after_seconds: 1 })
    const { quarantined_since } = facts
    if (query.verbose !== undefined) return { status: 'ready', ...facts }
    return { status: 'ready', ...(quarantined_since ? { quarantined_since } : {}) }
  },
})

export const openapi = route({
  group: v1,
  method: 'GET',
  path: '/openapi.json',
  tag,
  summary: 'This API as an OpenAPI 3.1 document',
  description:
    'With the address of this service as its server. `x-errors` says what to do about each error code.',
  sdk: { name: 'openapi' },
  cli: {
    usage: 'openapi',
    about: 'Print the description of the API, OpenAPI 3.1',
    examples: ['waystation openapi > openapi.json'],
  },
  auth: [],
  replies: { 200: { body: Type.Unsafe<RawJson>({ type: 'object' }) } },
  errors: [],
  handle: ({ dependencies }) => new RawJson(dependencies.service.openapi_text()),
})
