// The contract as clients see it: operations with their names, parameters, bodies and answers, read from openapi.json.
// A printer for each client makes its code from this model.

import { type Document, type OperationObject, resolved, type Schema } from '../../mcp/schema.ts'
import type { CliCommand, SdkMethod } from '../../src/contract/clients.ts'

/** As the contract declares it, with what it says about clients. */
interface ClientOperation extends OperationObject {
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
  /** Answers lie in an envelope. */
  wrapped: boolean
  /** The bodies of its answers; undefined for one without. */
  answers: (Schema | undefined)[]
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

/** The sentences about a method; `raises`: the word for the codes that it may fail with. */
export function docOf({ summary, description, errors }: Operation, raises: 'Throws' | 'Raises'): string {
  const codes = errors.length > 0 ? `${raises} ${errors.join(', ')}.` : ''
  return [`${summary}.`, description ?? '', codes].filter((text) => text !== '').join(' ')
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

function operationOf(method: string, path: string, found: ClientOperation): Operation {
  const { parameters = [] } = found
  const fieldsIn = (place: string): Field[] =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, description, schema }) => ({
        name,
        required,
        schema: { ...(description === undefined ? {} : { description }), ...schema },
      }))
  const body = found.requestBody?.content?.['application/json']?.schema
  const headers = fieldsIn('header').map(({ name }) => name)
  const answers = answersOf(found).map(([, schema]) => schema)
  const answer_fields = Object.keys(answers[0]?.properties ?? {})
  const has_empty = answers.includes(undefined)
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
    one_of: (body?.['x-one-of'] ?? []) as string[],
    wrapped: found['x-wrapped'] ?? false,
    answers,
    answer_fields,
    answer_member: memberOfAll(answers),
    has_empty,
    may_be_empty: answers.length > 1 && has_empty,
    pages: pagesOf(answer_fields, query_fields),
  }
}

/** Status to body, of every answer that is not an error. */
export function answersOf({
  responses,
  'x-wrapped': wrapped,
}: OperationObject): [status: string, body: Schema | undefined][] {
  return Object.entries(responses).flatMap(([status, { content }]) => {
    const whole = content?.['application/json']?.schema
    // Beside an error stands the answer that has the same status.
    const schema = whole?.anyOf?.[0] ?? whole
    if (status === '304' || (Number(status) >= 400 && !whole?.anyOf)) return []
    return [[status, wrapped ? schema?.properties?.data : schema] as [string, Schema | undefined]]
  })
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
