import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { openapiText } from '../scripts/openapi.ts'
import type { ErrorRow } from '../src/base/error-rows.ts'
import { type ErrorCode, errors } from '../src/base/errors.ts'
import { errorCodesOf } from '../src/contract/responses.ts'
import { routes } from '../src/features.ts'
import { forEachService } from './support/service.ts'

const file = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')

interface Media {
  schema: Schema
  example?: unknown
}

interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  parameters?: { in: string; name: string; required: boolean; schema: object; example?: unknown }[]
  requestBody?: { required: boolean; content: Record<string, Media> }
  responses: Record<string, { description: string; headers: object; content?: Record<string, Media> }>
  security: Record<string, []>[]
}
interface Schema {
  $ref?: string
  type?: string
  description?: string
  enum?: string[]
  allOf?: Schema[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  additionalProperties?: Schema
}

interface Document {
  openapi: string
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    securitySchemes: object
    schemas: Record<string, Schema> & { ErrorCode: Schema }
  }
  'x-errors': Record<string, object>
}
const document = JSON.parse(file) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): [string, Operation] => [
    `${method.toUpperCase()} ${path}`,
    operation,
  ]),
)

describe('openapi.json', () => {
  test('in git is what the routes say; after a change run: npm run openapi', () => {
    expect(file).toBe(openapiText())
  })

  test('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator()
    const result = await validator.validate(structuredClone(document) as never)
    expect([result.valid, result.errors, validator.version]).toEqual([true, undefined, '3.1'])
  })

  test('would not pass that validator with a mistake in it', async () => {
    const spoiled = structuredClone(document)
    spoiled.paths['/livez']!.get!.responses = { '200': { headers: {} } as never }
    expect((await new Validator().validate(spoiled as never)).valid).toBe(false)
  })

  test('has every route and nothing else', () => {
    const paths = routes.map(
      ({ route }) => `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}')}`,
    )
    expect(operations.map(([title]) => title).toSorted()).toEqual(paths.toSorted())
    expect(new Set(paths).size).toBe(routes.length)
  })

  test("has an operation's id once, which is the name of the route's export", () => {
    const ids = operations.map(([, { operationId }]) => operationId)
    expect(ids.toSorted()).toEqual(routes.map(({ name }) => name).toSorted())
    expect(new Set(ids).size).toBe(ids.length)
  })

  test.each(operations)(
    '%s names each parameter of its path, and its tag',
    (title, { parameters = [], tags }) => {
      const in_path = parameters.filter((parameter) => parameter.in === 'path')
      expect(in_path.map(({ name }) => name)).toEqual(
        [...title.matchAll(/{(\w+)}/g)].map(([, name]) => name!),
      )
      expect(in_path.every(({ required }) => required)).toBe(true)
      const places = parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
      expect(new Set(places).size).toBe(places.length)
      expect(document.tags.map(({ name }) => name)).toContain(tags[0]!)
    },
  )

  test.each(operations)(
    '%s shows the status of every answer it may give, each with X-Request-Id',
    (title, operation) => {
      const { route } = routes.find(({ name }) => name === operation.operationId)!
      const of_codes = errorCodesOf(route).flatMap((code): number[] =>
        code === 'VERSION_MISMATCH' ? [409, 412] : [errors[code].status],
      )
      const statuses = new Set([...Object.keys(route.replies), ...of_codes.map(String)])
      expect([title, Object.keys(operation.responses).toSorted()]).toEqual([title, [...statuses].toSorted()])
      for (const response of Object.values(operation.responses))
        expect(response.headers).toHaveProperty('X-Request-Id')
      for (const code of errorCodesOf(route)) {
        const told = Object.entries(operation.responses).filter(([, { description }]) =>
          mentions(description, code),
        )
        expect([code, told.map(([status]) => Number(status))]).toEqual([
          code,
          code === 'VERSION_MISMATCH' ? [409, 412] : [errors[code].status],
        ])
      }
    },
  )

  test.each(operations)('%s shows which keys it takes', (_, operation) => {
    const { route } = routes.find(({ name }) => name === operation.operationId)!
    const schemes = Object.keys(document.components.securitySchemes)
    for (const requirement of operation.security)
      for (const scheme of Object.keys(requirement)) expect(schemes).toContain(scheme)
    const of_agent = route.path.startsWith('/api/') ? ['api_key'] : ['agent', 'agent_id']
    const own = route.auth.map((kind) => (kind === 'agent' ? of_agent : [kind]))
    expect(operation.security.map((requirement) => Object.keys(requirement))).toEqual(
      route.cron ? [['cron']] : route.auth.length === 0 ? [] : [...own, ['bearer']],
    )
  })

  test('carries the row of every error code', () => {
    const rows = Object.entries(errors).map(([code, row]) => {
      const { status, precondition_status, message, next, exit } = row as ErrorRow
      return [code, { status, ...(precondition_status && { precondition_status }), message, next, exit }]
    })
    expect(document['x-errors']).toEqual(Object.fromEntries(rows))
    expect(document.components.schemas.ErrorCode.allOf![0]!.enum!).toEqual(Object.keys(document['x-errors']))
  })

  test.each(operations)('%s shows the headers that its replies declare', (_, operation) => {
    const { route } = routes.find(({ name }) => name === operation.operationId)!
    for (const [status, { headers = {} }] of Object.entries(route.replies)) {
      const shown = operation.responses[status]!.headers
      for (const name of Object.keys(headers)) expect(shown).toHaveProperty([name])
    }
  })

  test('refers only to what it holds', () => {
    const references = [...file.matchAll(/"\$ref": "#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name!,
    )
    expect(references.length).toBeGreaterThan(0)
    expect(file.match(/"\$ref"/g)?.length).toBe(references.length)
    expect([...new Set(references)].toSorted()).toEqual(Object.keys(document.components.schemas).toSorted())
  })
})

/** Bodies and answers of an operation in JSON, with what they are called. */
function jsonOf({ requestBody, responses }: Operation): [string, Media][] {
  const contents = [
    ['body', requestBody?.content] as const,
    ...Object.entries(responses).map(([s, r]) => [s, r.content] as const),
  ]
  return contents.flatMap(([name, content]) =>
    content?.['application/json'] ? [[name, content['application/json']]] : [],
  )
}

/** Objects that are written where a name should stand; a map of values under any names has none. */
function inline(schema: Schema): Schema[] {
  if (schema.additionalProperties && !schema.properties) return inline(schema.additionalProperties)
  const inner = [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])]
  return [...(schema.properties || schema.type === 'object' ? [schema] : []), ...inner.flatMap(inline)]
}

const loopback = /\b127\.\d+\.\d+\.\d+\b|\b0\.0\.0\.0\b|\blocalhost\b|(?<![\w:])::1\b/

describe('Operations for generators', () => {
  test.each(operations)(
    '%s has an id, a summary, a description and a tag that is described',
    (_, operation) => {
      const { operationId, summary, description, tags } = operation
      expect(operationId).toMatch(/^[a-z][A-Za-z]+$/)
      expect(summary).toMatch(/^[A-Z].*[^.]$/)
      expect(description).toMatch(/^[A-Z`].*\.$/)
      expect(tags).toHaveLength(1)
      expect(document.tags.find(({ name }) => name === tags[0])?.description).toMatch(/^[A-Z].*\.$/)
    },
  )

  test.each(operations)('%s takes and answers named schemas alone', (_, operation) => {
    for (const [, { schema }] of jsonOf(operation)) expect(inline(schema)).toEqual([])
  })

  test.each(operations)(
    '%s has an example of its body, and of its answer, which fit their schemas',
    (title, operation) => {
      const media = jsonOf(operation)
      if (operation.requestBody?.content['application/json']) expect(media[0]![1]).toHaveProperty('example')
      for (const [status, { example }] of media)
        if (/^2/.test(status)) expect([title, status, example !== undefined]).toEqual([title, status, true])
      for (const [name, { schema, example }] of media)
        if (example !== undefined) expect([name, faultsOf(schema, example)]).toEqual([name, null])
      for (const { name, schema, example } of operation.parameters ?? [])
        if (example !== undefined) expect([name, faultsOf(schema, example)]).toEqual([name, null])
    },
  )

  test.each(operations)(
    '%s has examples without an address of the machine that made them',
    (_, operation) => {
      const parameters = (operation.parameters ?? []).map(({ example }) => example)
      const bodies = jsonOf(operation).map(([, { example }]) => example)
      expect(JSON.stringify([parameters, bodies])).not.toMatch(loopback)
    },
  )

  test('an address of that machine would be found', () => {
    for (const address of ['127.0.0.1', 'http://127.4.5.6:80/', 'localhost:8420', '[::1]:80', '0.0.0.0'])
      expect(JSON.stringify({ address })).toMatch(loopback)
    expect(JSON.stringify({ text: 'a::1', sourceIp: '203.0.113.7' })).not.toMatch(loopback)
  })

  test('an example that does not fit its schema would be found', () => {
    const { schema, example } =
      document.paths['/v1/schedules']!.post!.requestBody!.content['application/json']!
    expect(faultsOf(schema, { ...(example as object), fire_at: 7 })).not.toBeNull()
    expect(faultsOf(schema, {})).not.toBeNull()
  })

  test.each(Object.entries(document.components.schemas))(
    '%s has a description, and no object without a name',
    (_, schema) => {
      expect(schema.description).toMatch(/^[A-Z].*\.$/)
      const members = Object.values(schema.properties ?? {})
      expect(members.flatMap(inline)).toEqual([])
    },
  )

  test('a map says what its values are: the counts of an advance are whole numbers', () => {
    const { properties } = document.components.schemas.Advanced!
    expect(properties!.counts).toMatchObject({ type: 'object', additionalProperties: { type: 'integer' } })
  })

  test('an item of a page is told from those of other pages by the members that it requires', () => {
    const kinds = choicesOf(document.components.schemas.Page!.properties!.items!)
    const pages = operations.flatMap(([title, operation]) => {
      const { schema, example } = operation.responses[200]?.content?.['application/json'] ?? {}
      const is_page = refOf(schema)?.allOf?.[0]?.$ref?.endsWith('/Page')
      return is_page ? (example as { items: object[] }).items.map((item) => [title, item] as const) : []
    })
    expect(pages.length).toBeGreaterThan(15)
    for (const [title, item] of pages) {
      const bases = new Set(kinds.filter((kind) => fits(kind, item)).map(baseOf))
      expect([title, bases.size]).toEqual([title, 1])
    }
  })
})

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(document, 'openapi')

/** The faults of a value; null when it fits. */
function faultsOf(schema: object, value: unknown): unknown {
  const here = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'))
  const isValid = ajv.compile(here)
  return isValid(value) ? null : isValid.errors
}

function refOf(schema: Schema | undefined): Schema | undefined {
  return schema?.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)!] : schema
}

function choicesOf(items: Schema): Schema[] {
  return items.anyOf!.find(({ type }) => type === 'array')!.items!.anyOf!
}

function baseOf(schema: Schema): string {
  return refOf(schema)!.allOf?.[0]?.$ref ?? schema.$ref!
}

function fits(schema: Schema, item: object): boolean {
  const shared = refOf({ $ref: baseOf(schema) }) as { required?: string[] }
  return (shared.required ?? []).every((name) => name in item)
}

forEachService(
  '/openapi.json',
  (service) => {
    service.over_http = true
    test('is served as it is in git, with the address of this server', async () => {
      const answer = await service.ask('GET', '/openapi.json')
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
      expect(answer.body).toEqual({ ...document, servers: [{ url: 'https://waystation.example.com' }] })
    })
  },
  { PUBLIC_URL: 'https://waystation.example.com/' },
)

function mentions(description: string, code: ErrorCode): boolean {
  return description.split(', ').includes(code)
}
