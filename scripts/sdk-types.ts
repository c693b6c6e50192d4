// Writes sdk/src/types.ts from openapi.json: the input and the answers of every operation. A test fails when
// the file in git is not this. Our schemas are plain, so what this reads of JSON Schema is all they use.

import { readFileSync } from 'node:fs'
import { type Document, type OperationObject, resolved, type Schema } from '../mcp/schema.ts'
import { answersOf, memberOfAll } from './clients/model.ts'
import { commentOf } from './clients/print.ts'

/** The text of sdk/src/types.ts. */
export function sdkTypesText(): string {
  const text = readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')
  const document = resolved(JSON.parse(text) as Document)
  const operations = operationsOf(document)
  const shapes = new Shapes()
  for (const { answers } of operations) for (const [, schema] of answers) shapes.addNamed(schema)
  const members = operations.map((found) => memberOf(found, shapes))
  const table = operations.map(({ operation, method, path, answers }) => {
    const creates = operation.parameters?.some(({ name }) => name === 'Idempotency-Key') ?? false
    const bodies = answers.map(([, schema]) => schema)
    const member = memberOfAll(bodies)
    const marks = [
      ...(creates ? ['creates: true'] : []),
      ...(operation['x-wrapped'] ? ['wrapped: true'] : []),
      ...(bodies.includes(undefined) ? ['empty: true'] : []),
      ...(member ? [`has: '${member}'`] : []),
    ]
    const members = [`method: '${method}'`, `path: '${path}'`, ...marks]
    const line = `  ${operation.operationId}: { ${members.join(', ')} },\n`
    if (line.length - 1 <= columns_max) return line
    return `  ${operation.operationId}: {\n${members.map((member) => `    ${member},\n`).join('')}  },\n`
  })
  const errors = Object.entries(document['x-errors'])
  return `// Made from openapi.json by scripts/sdk-types.ts: do not edit.

/** Why a request was refused. */
export type ErrorCode =
${errors.map(([code]) => `  | ${literal(code)}\n`).join('')}
${shapes.text()}
/** Parameters, body and answer of each operation. */
export interface Operations {
${members.join('')}}

export interface OperationSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** Takes an Idempotency-Key. */
  readonly creates?: true
  /** Answers \`{success, data}\`. */
  readonly wrapped?: true
  /** An answer may have no body. */
  readonly empty?: true
  /** A member of every answer with a body. */
  readonly has?: string
}

export const operations: Readonly<Record<keyof Operations, OperationSpec>> = {
${table.join('')}}

/** The kind of failure that a code is, for scripts: the command line has an exit code for each. */
export type ExitClass =
${[...new Set(errors.map(([, { exit }]) => `  | ${literal(exit)}\n`))].toSorted().join('')}
export const error_rows: Readonly<Record<ErrorCode, { readonly next: string; readonly exit: ExitClass }>> = {
${errors.map(([code, row]) => errorLines(code, row)).join('')}}
`
}

function errorLines(code: string, { next, exit }: { next: string; exit: string }): string {
  const head = `  ${code}: {`
  const line = `${head} next: ${literal(next)}, exit: ${literal(exit)} },`
  if (line.length <= columns_max) return `${line}\n`
  const whole = `    next: ${literal(next)},`
  const below = `      ${literal(next)},`
  const broken = whole.length > columns_max && below.length <= columns_max ? `    next:\n${below}` : whole
  return `${head}\n${broken}\n    exit: ${literal(exit)},\n  },\n`
}

interface Found {
  method: string
  path: string
  operation: OperationObject
  /** Status to body, of every answer that is not an error. */
  answers: [status: string, body: Schema | undefined][]
}

function operationsOf({ paths }: Document): Found[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => !operation['x-raw'])
      .map(([method, operation]) => ({
        ...{ method: method.toUpperCase(), path, operation, answers: answersOf(operation) },
      })),
  )
}

function memberOf({ operation, answers }: Found, shapes: Shapes): string {
  const { operationId, parameters = [], requestBody } = operation
  const of_place = (place: string): Schema => {
    const found = parameters.filter((parameter) => parameter.in === place)
    return {
      type: 'object',
      required: found.filter(({ required }) => required).map(({ name }) => name),
      properties: Object.fromEntries(
        found.map(({ name, description, schema }) => [
          name,
          { ...schema, ...(description && { description }) },
        ]),
      ),
    }
  }
  const body = requestBody?.content?.['application/json']?.schema
  const shown = answers.map(([, schema]) => (schema ? shapes.output(schema, '    ') : 'undefined'))
  const answer = [...new Set(shown)].join(' | ')
  return [
    `  ${operationId}: {\n`,
    `    params: ${shapes.input(of_place('path'), '    ')}\n`,
    `    query: ${shapes.input(of_place('query'), '    ')}\n`,
    `    body: ${body ? shapes.input(body, '    ') : 'undefined'}\n`,
    `    answer: ${answer}\n`,
    '  }\n',
  ].join('')
}

/** Object shapes that have a name, from `x-name`: another with the same fields gets the same name. */
class Shapes {
  #names = new Map<string, string>()
  #shapes = new Map<string, Schema>()

  /** Every shape in this schema that has a name, the outermost first. Throws for a second name, or a second shape. */
  addNamed(schema: Schema | undefined): void {
    if (!schema) return
    const name = schema['x-name']
    if (name !== undefined) this.#add(name, schema)
    const inner = [...Object.values(schema.properties ?? {}), ...(schema.anyOf ?? []), schema.items]
    for (const one of inner) this.addNamed(one)
  }

  #add(name: string, shape: Schema): void {
    const key = keyOf(shape)
    const known = this.#names.get(key)
    if (known === name) return
    if (known) throw new Error(`${name} is a ${known} already`)
    if (this.#shapes.has(name)) throw new Error(`two shapes are named ${name}`)
    this.#names.set(key, name)
    this.#shapes.set(name, shape)
  }

  /** Every named shape, as an interface. */
  text(): string {
    return [...this.#shapes]
      .map(
        ([name, shape]) =>
          `${commentOf(shape.description ?? '', '')}export interface ${name} ${this.#object(shape, '', false)}\n`,
      )
      .join('\n')
  }

  input(schema: Schema, indent: string): string {
    return Object.keys(schema.properties ?? {}).length === 0 ? 'object' : this.#object(schema, indent, true)
  }

  output(schema: Schema, indent: string): string {
    return this.#typeOf(schema, indent, false)
  }

  #typeOf(schema: Schema, indent: string, is_input: boolean): string {
    if (schema['x-any-json'] === 'any') return 'unknown'
    if (schema['x-any-json'] === 'object')
      return is_input ? 'object | null' : 'Record<string, unknown> | null'
    if (schema.const !== undefined) return literal(schema.const)
    if (schema.enum) return schema.enum.map(literal).join(' | ')
    if (schema.anyOf) return schema.anyOf.map((one) => this.#typeOf(one, indent, is_input)).join(' | ')
    if (schema.type === 'array') return arrayOf(this.#typeOf(schema.items!, indent, is_input))
    if (schema.type === 'object') {
      const known = is_input ? undefined : this.#names.get(keyOf(schema))
      if (known) return known
      const { additionalProperties: values } = schema
      if (typeof values === 'object') return `Record<string, ${this.#typeOf(values, indent, is_input)}>`
      return schema.properties ? this.#object(schema, indent, is_input) : 'Record<string, unknown>'
    }
    if (schema.type === undefined) return 'unknown'
    const known = primitives[String(schema.type)]
    if (!known) throw new Error(`no type for ${JSON.stringify(schema)}`)
    return known
  }

  #object(schema: Schema, indent: string, is_input: boolean): string {
    const inner = `${indent}  `
    const fields = Object.entries(schema.properties!).map(([name, field]) => {
      const optional = !schema.required?.includes(name)
      const comment = field.description && !field['x-name'] ? `${inner}/** ${field.description} */\n` : ''
      const type = this.#typeOf(field, inner, is_input)
      const or_undefined = optional && is_input && type !== 'unknown' ? ' | undefined' : ''
      return `${comment}${fieldLine(inner, `${name}${optional ? '?' : ''}:`, `${type}${or_undefined}`)}\n`
    })
    const short = `{ ${fields.map((field) => field.trim()).join('; ')} }`
    const fits = !short.includes('/**') && !short.includes('\n') && short.length + indent.length <= 90
    return fits && indent !== '' ? short : `{\n${fields.join('')}${indent}}`
  }
}

/** A union that is too long for a line has one for each member. */
function fieldLine(indent: string, head: string, type: string): string {
  const line = `${indent}${head} ${type}`
  if (line.length <= columns_max || type.includes('\n')) return line
  return `${indent}${head}\n${type
    .split(' | ')
    .map((one) => `${indent}  | ${one}`)
    .join('\n')}`
}

const columns_max = 110

const primitives: Record<string, string> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

function arrayOf(type: string): string {
  return /[ |{]/.test(type) ? `Array<${type}>` : `${type}[]`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value)
}

/** The shape without its words and order. */
export function keyOf(schema: Schema): string {
  return JSON.stringify(schema, (name, value) => {
    if (name === 'description' || name === 'x-name') return undefined
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

if (import.meta.main) await Bun.write(new URL('../sdk/src/types.ts', import.meta.url), sdkTypesText())
