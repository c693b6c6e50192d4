// Example inputs made from a route's own schemas, so that a new route needs none written by hand.

import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { Param, Route } from '../../src/contract/route.ts'

/** The members of a JSON Schema that these tests read. */
export interface Schema {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  required?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  /** Of an object: what the tests send. */
  examples?: unknown[]
  anyOf?: Schema[]
  'x-any-json'?: 'any' | 'object'
  'x-null'?: boolean
  'x-trim'?: boolean
  /** Names of one thing: one of them is needed, and several must agree. */
  'x-one-of'?: string[]
}

export type Json = Record<string, unknown>

/** A body that holds what is required and nothing else; undefined when the route takes no body. */
export function exampleBody(route: Route): Json | undefined {
  return route.body ? needed(route, route.body as Schema) : undefined
}

/** The same for a query: empty, or with its `?`. */
export function exampleQuery(route: Route): string {
  const query = new URLSearchParams(needed(route, (route.query ?? {}) as Schema) as Record<string, string>)
  return query.size > 0 ? `?${query}` : ''
}

function needed(route: Route, schema: Schema): Json {
  const names = [...(schema.required ?? []), ...(schema['x-one-of']?.slice(0, 1) ?? [])]
  return Object.fromEntries(names.map((name) => [name, example(route, name, schema.properties![name]!)]))
}

/** The body with this value; another name for the same thing gives way, or steps in for null. */
export function withField(route: Route, body: Json, name: string, value: unknown): Json {
  const names = (route.body as Schema)['x-one-of'] ?? []
  const others = names.includes(name) ? names.filter((other) => other !== name) : []
  const left = Object.entries(body).filter(([other]) => !others.includes(other))
  const known = names.map((other) => body[other]).find((given) => given !== undefined)
  const properties = (route.body as Schema).properties!
  const stand_in = (other: string) =>
    accepts(properties[other]!, known) ? known : example(route, other, properties[other]!)
  const stand_ins = value === null ? others.slice(0, 1).map((other) => [other, stand_in(other)]) : []
  return Object.fromEntries([...left, ...stand_ins, [name, value]])
}

export function exampleParam(route: Route, name: string, param: Param): string {
  return String(example(route, name, param.schema as Schema))
}

/** Fields of a body or a query. */
export function fieldsOf(schema: unknown): [name: string, schema: Schema][] {
  return Object.entries((schema as Schema | undefined)?.properties ?? {})
}

export function isRequired(schema: unknown, name: string): boolean {
  return (schema as Schema).required?.includes(name) ?? false
}

/** A value that the schema takes, another one at each call where the schema leaves room for one. */
export function example(route: Route, name: string, schema: Schema): unknown {
  const value = candidate(name, schema)
  if (value !== undefined && accepts(schema, value)) return value
  throw new Error(
    `${route.method} ${route.path}: no example of ${name} can be made from ${JSON.stringify(schema)}; ` +
      'give the field a form that candidate() in test/support/contract-examples.ts knows, or teach it this one',
  )
}

/** Values at the edges of what the schema takes, which are to be taken. */
export function edges(name: string, schema: Schema): unknown[] {
  const { minLength, maxLength, minimum, maximum } = schema
  const lengths = isPlainString(schema) ? [minLength, maxLength] : []
  return [
    ...lengths.filter((length) => length !== undefined).map((length) => textOf(name, schema, length)),
    ...[minimum, maximum].filter((bound) => bound !== undefined),
  ]
}

/** Values that the schema refuses: of every other type, and just past each of its edges. */
export function wrongValues(name: string, schema: Schema): unknown[] {
  const { minLength, maxLength, minimum, maximum } = schema
  const values: unknown[] = [true, 7, 1.5, -1, 'x', '', [], ['x'], {}, { a: 1 }]
  if (minLength) values.push('x'.repeat(minLength - 1))
  if (maxLength !== undefined) values.push(textOf(name, schema, maxLength + 1))
  if (minimum !== undefined) values.push(minimum - 1, minimum + 0.5)
  if (maximum !== undefined) values.push(maximum + 1)
  // The members of an object are named in the issues one by one: they are the matter of its feature's tests.
  const is_object = (value: unknown) => schema.type === 'object' && String(value) === '[object Object]'
  const is_list = (value: unknown) => schema.type === 'array' && Array.isArray(value) && value.length > 0
  return values.filter((value) => !accepts(schema, value) && !is_object(value) && !is_list(value))
}

/** `a` and `"b": 1` as JSON text with the members of `body` before it. */
export function bodyText(body: Json, ...members: string[]): string {
  const known = Object.entries(body).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  )
  return `{${[...known, ...members].join(',')}}`
}

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

function accepts(schema: Schema, value: unknown): boolean {
  if (schema['x-any-json'] === 'any') return true
  if (schema['x-any-json'] === 'object')
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  const judged = schema['x-trim'] && typeof value === 'string' ? value.trim() : value
  return Value.Check(schema as TSchema, judged)
}

let made = 0

function candidate(name: string, schema: Schema): unknown {
  made += 1
  if (schema['x-any-json']) return { made }
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return candidate(name, schema.anyOf[0]!)
  if (schema.pattern !== undefined) return matching(new RegExp(schema.pattern))
  if (schema.type === 'boolean') return true
  if (schema.type === 'integer') return schema.minimum ?? 1
  if (schema.type === 'number') return Math.max(0.001, schema.minimum ?? 1) // of seconds: the least that moves a clock
  // By its number: every journal has a first event.
  if (name === 'event') return '1'
  if (schema.type === 'string') return textOf(name, schema, undefined)
  if (schema.type === 'object') return schema.examples?.[0]
  if (schema.type === 'array' && schema.items) return schema.examples?.[0] ?? [candidate(name, schema.items)]
  return undefined
}

const matched = new Set<string>()
/** By pattern: to make one costs far more than a text of it. */
const arbitraries = new Map<string, fc.Arbitrary<string>>()

/** Starts and ends with a letter or a digit, so that no reserved name and no dot segment comes out. */
function matching(pattern: RegExp): string {
  const texts =
    arbitraries.get(pattern.source) ??
    fc.stringMatching(pattern).filter((text) => text.length >= 10 && /^[a-z0-9].*[a-z0-9]$/.test(text))
  arbitraries.set(pattern.source, texts)
  for (let seed = made; ; seed += 1_000_000) {
    const text = fc.sample(texts, { numRuns: 1, seed })[0]!
    if (matched.has(text)) continue
    matched.add(text)
    return text
  }
}

function isPlainString({ type, enum: values, pattern, format }: Schema): boolean {
  return type === 'string' && !values && pattern === undefined && format !== 'date-time'
}

/** Text in the form that the field's format or name asks for, of this length when one is given. */
function textOf(name: string, schema: Schema, length: number | undefined): string {
  if (schema.format === 'date-time') return new Date(Date.UTC(2026, 5, 1) + made).toISOString()
  if (schema.format === 'email') return emailOf(length ?? 24)
  const head = /(^u|_u|U)rl$/.test(name) ? `http://127.0.0.1:9/${made}` : `example-${made}`
  if (length === undefined) return head.slice(-(schema.maxLength ?? head.length))
  return head.length > length ? head.slice(-length) : head.padEnd(length, 'x')
}

/** Labels of a domain have 63 characters at most (RFC 1035 section 2.3.4). */
function emailOf(length: number): string {
  let domain = 'com'
  const local = `owner-${made}@`
  while (local.length + domain.length + 61 < length) domain = `${'d'.repeat(60)}.${domain}`
  const rest = length - local.length - domain.length - 1
  return rest > 0 ? `${local}${'d'.repeat(rest)}.${domain}` : `${local}d.${domain}`
}

/** Members of an answer that its schema does not name. */
export function undeclared(schema: Schema, value: unknown, path: string): string[] {
  if (Array.isArray(value))
    return value.flatMap((item, i) => undeclared(schema.items ?? {}, item, `${path}/${i}`))
  if (typeof value !== 'object' || value === null || !schema.properties) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const declared = schema.properties![name]
    return declared ? undeclared(declared, member, `${path}/${name}`) : [`${path}/${name}`]
  })
}
