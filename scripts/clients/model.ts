// The contract as clients see it: operations with their names, parameters, bodies and answers, read from openapi.json.
// A printer for each client makes its code from this model.

import { resolved } from '../../mcp/schema.ts'
import type { CliCommand, SdkMethod } from '../../src/contract/clients.ts'

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  anyOf?: Schema[]
  required?: string[]
  properties?: Record<string, Schema>
  'x-any-json'?: 'any' | 'object'
  /** One of these members is needed. */
  'x-one-of'?: string[]
  /** A parameter that is there or not; its text does not matter. */
  'x-flag'?: boolean
}

export interface Document {
  components: { schemas: object }
  paths: Record<string, Record<string, OperationObject>>
}

interface OperationObject {
  operationId: string
  summary: string
  description?: string
  parameters?: { in: string; name: string; required: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
  security: object[]
  /** Answers are in an envelope. */
  'x-wrapped'?: boolean
  'x-errors'?: string[]
  'x-sdk'?: SdkMethod
  'x-cli'?: CliCommand
}

/** A parameter of the path or query, or a member of the body. */
export interface Field {
  name: string
  required: boolean
  schema: Schema
}

export interface Operation {
  id: string
  method: string
  path: string
  summary: string
  description: string | undefined
  sdk: SdkMethod | undefined
  cli: CliCommand | undefined
  /** Codes that it has besides those that every operation of its kind may answer. */
  errors: readonly string[]
  /** Needs no key. */
  is_public: boolean
  /** Takes an Idempotency-Key. */
  creates: boolean
  /** Takes a version in If-Match, and nowhere else. */
  conditional: boolean
  path_fields: Field[]
  query_fields: Field[]
  body_fields: Field[]
  /** Members of the body of which one is needed. */
  one_of: readonly string[]
  /** The type of an answer with a body; empty when none has one. */
  answer_fields: string[]
  /** A member of every answer with a body. */
  answer_member: string | undefined
  /** An answer may have no body. */
  has_empty: boolean
  /** Some answers have a body, others have none. */
  may_be_empty: boolean
  /** `cursor` under /v1, `offset` under /api, `whole` when all items are in one answer. */
  pages: 'cursor' | 'offset' | 'whole' | undefined
}

/** In the order of the document, save that a path that creates comes before others of its tag. */
export function operationsOf(document: Document): Operation[] {
  const found = Object.entries(resolved(document).paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .toSorted(([a], [b]) => methods_order.indexOf(a) - methods_order.indexOf(b))
      .map(([method, operation]) => operationOf(method, path, operation)),
  )
  const resources = [...new Set(found.map(resourceOf))]
  return resources.flatMap((resource) => {
    const own = found.filter((operation) => resourceOf(operation) === resource)
    const creating = own.filter(({ creates }) => creates).map(({ path }) => path)
    return [
      ...own.filter(({ path }) => creating.includes(path)),
      ...own.filter(({ path }) => !creating.includes(path)),
    ]
  })
}

const methods_order = ['post', 'get', 'put', 'patch', 'delete']

/** `agents` of `agents.create`; empty for a method of the client itself and for what has none. */
export function resourceOf({ sdk }: Operation): string {
  return sdk?.name.includes('.') ? sdk.name.split('.')[0]! : ''
}

export function methodOf({ sdk }: Operation): string {
  return sdk!.name.split('.').at(-1)!
}

/** A list of pages; `whole` has only one. */
export function isList({ pages }: Operation): boolean {
  return pages === 'cursor' || pages === 'offset'
}

/** Members of the body that are not arguments of their own in the SDK. */
export function restOfBody({ sdk, body_fields }: Operation): Field[] {
  return body_fields.filter(({ name }) => !sdk?.arguments?.includes(name))
}

/** An argument of its own: a body with something that must be there, and the changes of an update. */
export function hasBodyArgument(operation: Operation): boolean {
  const rest = restOfBody(operation)
  return rest.length > 0 && (operation.method === 'PATCH' || rest.some(({ required }) => required))
}

function operationOf(method: string, path: string, found: OperationObject): Operation {
  const { parameters = [], responses } = found
  const fieldsIn = (place: string): Field[] =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, description, schema }) => ({
        name,
        required,
        schema: { ...(description === undefined ? {} : { description }), ...schema },
      }))
  const body = found.requestBody?.content['application/json']?.schema
  const headers = fieldsIn('header').map(({ name }) => name)
  const answers = Object.entries(responses).filter(([status]) => /^2/.test(status))
  const bodies = answers.map(([, { content }]) => {
    const answer = content?.['application/json']?.schema
    return found['x-wrapped'] ? answer?.properties?.data : answer
  })
  const answer_fields = Object.keys(bodies[0]?.properties ?? {})
  const has_empty = bodies.includes(undefined)
  const query_fields = fieldsIn('query')
  return {
    id: found.operationId,
    method: method.toUpperCase(),
    path,
    summary: found.summary,
    description: found.description,
    sdk: found['x-sdk'],
    cli: found['x-cli'],
    errors: found['x-errors'] ?? [],
    is_public: found.security.length === 0,
    creates: headers.includes('Idempotency-Key'),
    conditional: headers.includes('If-Match') && !body,
    path_fields: fieldsIn('path'),
    query_fields,
    body_fields: Object.entries(body?.properties ?? {}).map(([name, schema]) => ({
      name,
      required: body?.required?.includes(name) ?? false,
      schema,
    })),
    one_of: body?.['x-one-of'] ?? [],
    answer_fields,
    answer_member: memberOfAll(bodies),
    has_empty,
    may_be_empty: answers.length > 1 && has_empty,
    pages: pagesOf(answer_fields, query_fields),
  }
}

/** A member that each of these answers has, of those with a body. */
export function memberOfAll(bodies: readonly ({ required?: string[] } | undefined)[]): string | undefined {
  const [first, ...others] = bodies.filter((body) => body !== undefined)
  return first?.required?.find((name) => others.every(({ required }) => required?.includes(name)))
}

function pagesOf(answer_fields: string[], query: Field[]): Operation['pages'] {
  if (!answer_fields.includes('items')) return undefined
  if (answer_fields.includes('next_cursor')) return 'cursor'
  return query.some(({ name }) => name === 'offset') ? 'offset' : 'whole'
}
