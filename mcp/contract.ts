// Tools as the protocol lists them: their schemas are those of the operations in openapi.json, with the parts of a
// request (path, query, body, headers) laid out as one object of named arguments.

import type { ErrorRows } from './errors.ts'
import { portable } from './portable.ts'
import {
  type Content,
  type Document,
  type OperationObject,
  type Parameter,
  resolved,
  type Schema,
} from './schema.ts'
import { type Tool, tools, wait_seconds_max } from './tools.ts'

interface ObjectSchema extends Schema {
  type: 'object'
  properties: Record<string, Schema>
  required: string[]
}

/** An input that needs nothing does not say so: some validators refuse an empty list. The members of an output are always there. */
interface Listed extends Schema {
  type: 'object'
  properties: Record<string, Schema>
}

export type Place = Parameter['in'] | 'body'

export interface Target {
  method: string
  path: string
  has_body: boolean
  /** The arguments that it takes, and those that it needs. */
  takes: ReadonlySet<string>
  needs: readonly string[]
}

/** A tool with all that is needed to list and to call it. */
export interface ReadyTool {
  tool: Tool
  target: Target
  /** Of `tool.without`. */
  target_without: Target | null
  /** Of `tool.prefixed`. */
  target_prefixed: Target | null
  /** Of `tool.choice`, by the value of its argument. */
  target_chosen: ReadonlyMap<string, Target>
  /** Where each argument goes, under its name on the wire. */
  places: ReadonlyMap<string, { place: Place; name: string }>
  /** The data of an answer is in the envelope `{success, data}`. */
  wrapped: boolean
  /** The fields of every answer with a body. */
  answer_fields: readonly string[]
  /** Of every code of the API. */
  errors: ErrorRows
  listed: {
    name: string
    title: string
    description: string
    inputSchema: Listed
    outputSchema: Listed
    annotations: {
      readOnlyHint: boolean
      destructiveHint: boolean
      /** Absent means false (2025-11-25, "ToolAnnotations"). */
      idempotentHint?: true
      openWorldHint: boolean
    }
  }
}

/** Conditional headers and the like have names of their own among the arguments. */
const header_arguments: Readonly<Record<string, string>> = {
  'Idempotency-Key': 'idempotency_key',
  'If-Match': 'if_version',
}

const delay_schema: Schema = {
  type: 'number',
  minimum: 0,
  maximum: 315_360_000,
  description: 'Seconds from now; not with an idempotency_key.',
}

/** Simpler to say than what the header takes. */
const argument_schemas: Readonly<Record<string, Schema>> = {
  idempotency_key: {
    type: 'string',
    pattern: '^[!-~]{1,255}$',
    description: 'Repeats with it act once.',
  },
  lock_token: { type: 'string', description: 'From your claim.' },
  if_version: {
    type: 'integer',
    minimum: 1,
    description: 'Only if this is still the version.',
  },
}

export function readyTools(document: Document): ReadyTool[] {
  const standing = resolved(document)
  return tools.map((tool) => ready(tool, standing))
}

function ready(tool: Tool, document: Document): ReadyTool {
  const operation = operationOf(document, tool.operation)[2]
  const chosen = Object.entries(tool.choice?.operations ?? {})
  const others = [tool.without?.operation, ...chosen.map(([, id]) => id)].filter((id) => id !== undefined)
  const { parameters, body } = together(
    [tool.operation, ...others].map((id) => partsOf(tool, operationOf(document, id)[2])),
  )
  const wrapped = operation['x-wrapped'] ?? false
  const success = successOf(operation)
  const blocked = wrapped ? blockedDataOf(operation) : null
  const other = tool.prefixed ? successOf(operationOf(document, tool.prefixed.operation)[2]) : null
  const data = (wrapped ? success!.properties!.data! : success) as ObjectSchema
  const own = answerOf(tool, data, blocked)
  const answer = other ? common(own, other as ObjectSchema) : own
  const places: ReadyTool['places'] = new Map([
    ...parameters.map(({ in: place, name }) => [argumentOf(name), { place: place as Place, name }] as const),
    ...Object.keys(body?.properties ?? {}).map((name) => [name, { place: 'body' as const, name }] as const),
  ])
  const targetFor = (id: string) => targetOf(tool, id, document)
  const target = targetFor(tool.operation)
  return {
    tool,
    target,
    target_without: tool.without ? targetFor(tool.without.operation) : null,
    target_prefixed: tool.prefixed ? targetFor(tool.prefixed.operation) : null,
    target_chosen: new Map(chosen.map(([value, id]) => [value, targetFor(id)])),
    places,
    wrapped,
    answer_fields: answer.required,
    errors: document['x-errors'],
    listed: {
      name: tool.name,
      title: tool.title,
      description: tool.description,
      inputSchema: inputOf(tool, parameters, body),
      outputSchema: outputOf(tool, answer),
      annotations: {
        readOnlyHint: target.method === 'GET' || tool.reads_by_post === true,
        destructiveHint: tool.destructive,
        ...(tool.idempotent ? { idempotentHint: true } : {}),
        openWorldHint: tool.open_world,
      },
    },
  }
}

function operationOf(document: Document, id: string): [path: string, method: string, OperationObject] {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId === id) return [path, method, operation]
    }
  }
  throw new Error(`openapi.json has no operation ${id}`)
}

/** The parts of a request of one operation, without what the tool leaves out. */
interface Parts {
  parameters: Parameter[]
  body: Schema | null
}

function partsOf(tool: Tool, operation: OperationObject): Parts {
  const isTaken = (name: string) => !tool.leave_out?.includes(name)
  const body = schemaIn(operation.requestBody)
  const properties = Object.entries(body?.properties ?? {}).filter(([name]) => isTaken(name))
  return {
    parameters: (operation.parameters ?? []).filter(({ name }) => isTaken(name)),
    body: body && { ...body, properties: Object.fromEntries(properties) },
  }
}

/** The parts of operations that one tool calls: needed is what all of them need. */
function together(all: Parts[]): Parts {
  const [first, ...others] = all as [Parts, ...Parts[]]
  return others.reduce(
    (one, other) => ({
      parameters: [
        ...one.parameters.map((parameter) =>
          other.parameters.some(({ name, required }) => name === parameter.name && required)
            ? parameter
            : { ...parameter, required: false },
        ),
        ...other.parameters
          .filter(({ name }) => !one.parameters.some((parameter) => parameter.name === name))
          .map((parameter) => ({ ...parameter, required: false })),
      ],
      body: one.body && {
        ...one.body,
        properties: { ...other.body?.properties, ...one.body.properties },
        required: (one.body.required ?? []).filter((name) => other.body?.required?.includes(name)),
      },
    }),
    first,
  )
}

function targetOf(tool: Tool, id: string, document: Document): Target {
  const [path, method, operation] = operationOf(document, id)
  const { parameters, body } = partsOf(tool, operation)
  const named = parameters.map(({ name, required }) => ({ name: argumentOf(name), required }))
  const members = Object.keys(body?.properties ?? {})
  const needed = [
    ...named.filter(({ required }) => required).map(({ name }) => name),
    ...members.filter((name) => body?.required?.includes(name)),
  ]
  return {
    method: method.toUpperCase(),
    path,
    has_body: body !== null,
    takes: new Set([...named.map(({ name }) => name), ...members]),
    needs: needed.filter((name) => !isFilled(tool, name)),
  }
}

function argumentOf(name: string): string {
  return header_arguments[name] ?? name
}

function inputOf(tool: Tool, parameters: Parameter[], body: Schema | null): Listed {
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const { in: place, name, required: needed, description, schema } of parameters) {
    const argument = argumentOf(name)
    // Arguments are plain text; they are encoded here.
    const described = ofArgument(description === undefined ? {} : { description })
    // A path with an empty part is another path.
    const filled = place === 'path' && schema.pattern === undefined ? { minLength: 1 } : {}
    properties[argument] =
      argument_schemas[argument] ?? portable({ ...described, ...plain(schema), ...filled })
    if (needed && !isFilled(tool, argument)) required.push(argument)
  }
  for (const [name, schema] of Object.entries(body?.properties ?? {})) {
    const taken = ofArgument(plain(narrowed(schema, tool.narrows?.[name])))
    properties[name] = argument_schemas[name] ?? portable(taken)
    if (body?.required?.includes(name) && !isFilled(tool, name)) required.push(name)
  }
  if (tool.choice) {
    const { argument, operations } = tool.choice
    properties[argument] = { type: 'string', enum: Object.keys(operations) }
    required.push(argument)
  }
  if (tool.delay) properties[tool.delay.argument] = delay_schema
  for (const [name, value] of Object.entries(tool.defaults ?? {})) {
    if (value !== null) properties[name] = { ...properties[name]!, default: value }
  }
  if (tool.wait) {
    const { description: _, ...wait } = properties[tool.wait]!
    properties[tool.wait] = { ...wait, maximum: wait_seconds_max }
  }
  required.push(...(tool.required ?? []))
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  }
}

/** An object with these members alone; the API takes the others as well. */
function narrowed(schema: Schema, names: readonly string[] | undefined): Schema {
  if (!names) return schema
  return { ...schema, properties: Object.fromEntries(names.map((name) => [name, schema.properties![name]!])) }
}

/** Parts of descriptions about headers, paths, null and parts that no tool has, and about what the service does with an argument. */
const of_http =
  /, percent-encoded once|; default that of X-Workflow-Id|; more than \d+ counts as \d+| Either windowSeconds or window is required; both mean the same\.|; comes back as the same text|; null for no callback/
/** Descriptions that say no more than the name of the argument. */
const said_by_name =
  /^The [a-z ]+, [a-z]{3}_….$|^Ties together |^next_cursor of the previous |^1 to \d+ bytes of UTF-8.$|^Names that begin with __|^Items, default/

function ofArgument(schema: Schema): Schema {
  const { description, ...rest } = schema
  if (description === undefined || said_by_name.test(description)) return rest
  return { ...rest, description: description.replace(of_http, '') }
}

/** Some value is there without the caller: a default, or a time that another argument gives. */
function isFilled({ defaults = {}, delay }: Tool, name: string): boolean {
  return Object.hasOwn(defaults, name) || delay?.sets === name
}

function outputOf(tool: Tool, whole: ObjectSchema): Listed {
  const { properties } = answered(tool.shows ? only(whole, tool.shows) : whole)
  const answer: Listed = { type: 'object', properties: properties! }
  if (tool.item) return { type: 'object', properties: { item: { ...answer, type: ['object', 'null'] } } }
  if (!tool.next) return answer
  const next_step = { type: 'string' }
  return { ...answer, properties: { ...answer.properties, next_step } }
}

/** A part of its members, and no more of those of a list or of what may be null; the others are there as well. */
function only({ properties }: ObjectSchema, names: readonly string[]): ObjectSchema {
  const shallow = ({ items, ...rest }: Schema) => {
    if (items) return { ...rest, items: { type: 'object' } }
    const [one, other] = rest.anyOf ?? []
    return one?.properties && other?.type === 'null' ? { type: ['object', 'null'] } : rest
  }
  return objectOf(Object.fromEntries(names.map((name) => [name, shallow(properties[name]!)])))
}

/** The data of an answer, as the API gives it. */
function answerOf(tool: Tool, data: ObjectSchema, other: ObjectSchema | null): ObjectSchema {
  if (tool.done !== undefined) return objectOf({ [tool.done]: { type: 'boolean', const: true } })
  return other ? either(data, other) : data
}

/** Names and types alone: the description of a tool says how to read its answer, and a model pays for every word. */
function answered(schema: Schema): Schema {
  const shown = without(
    plain(schema),
    (name, item) =>
      (name === 'required' && Array.isArray(item)) || (left_out.includes(name) && typeof item !== 'object'),
  )
  return texts(shown) as Schema
}

/** One of a list of texts is a text. */
function texts(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const { enum: one_of, ...rest } = value as Schema
  const is_text = Array.isArray(one_of) && one_of.every((text) => typeof text === 'string')
  const shown = is_text ? { ...rest, type: 'string' } : value
  return Object.fromEntries(Object.entries(shown).map(([name, item]) => [name, texts(item)]))
}

const left_out = ['description', 'format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern']

/** Null when a success has no body. */
function successOf({ responses }: OperationObject): Schema | null {
  const [one, other] = [responses[202], responses[200] ?? responses[201]].map((each) => schemaIn(each))
  return one && other ? either(one as ObjectSchema, other as ObjectSchema) : (one ?? other ?? null)
}

/** An error status whose answer has data: a blocked rate check. */
function blockedDataOf(operation: OperationObject): ObjectSchema | null {
  const { anyOf = [] } = schemaIn(operation.responses['429']) ?? {}
  return (anyOf.find(({ properties }) => properties?.data)?.properties?.data ?? null) as ObjectSchema | null
}

function either(one: ObjectSchema, other: ObjectSchema): ObjectSchema {
  return {
    ...one,
    properties: { ...other.properties, ...one.properties },
    required: one.required.filter((name) => other.required.includes(name)),
  }
}

/** The members of one that hold for the other, too; the other has more. */
function common(one: ObjectSchema, other: ObjectSchema): ObjectSchema {
  const properties = Object.entries(one.properties).map(([name, schema]) => {
    const same = JSON.stringify(other.properties[name] ?? schema) === JSON.stringify(schema)
    return [name, same ? schema : {}]
  })
  return { ...either(one, other), properties: Object.fromEntries(properties) }
}

function objectOf(properties: Record<string, Schema>): ObjectSchema {
  return { type: 'object', properties, required: Object.keys(properties) }
}

function schemaIn(content: Content | undefined): Schema | null {
  const schema = content?.content?.['application/json']?.schema
  return schema ?? null
}

/** The API says them when they are passed, which is rare. */
const lengths = ['maxLength', 'maxItems']

/** Without our own keywords (`x-any-json` …), which mean nothing elsewhere, without examples, and without greatest lengths. */
function plain(schema: Schema): Schema {
  return joined(
    without(
      schema,
      (name, item) =>
        name.startsWith('x-') ||
        (name === 'examples' && Array.isArray(item)) ||
        (lengths.includes(name) && typeof item === 'number') ||
        item === Number.MAX_SAFE_INTEGER,
    ),
  ) as Schema
}

/**
 * `{"anyOf": [{"type": "string"}, {"type": "null"}]}` in its short form. A list of more than `enum_max` texts is any text:
 * the description of the tool names some, and the API refuses others with the whole list.
 */
function joined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(joined)
  if (typeof value !== 'object' || value === null) return value
  const { anyOf, ...rest } = value as { anyOf?: Schema[] }
  const [one, other, ...more] = (anyOf ?? []).map(shortEnum)
  const is_short = more.length === 0 && typeof one?.type === 'string' && !one.enum && other?.type === 'null'
  const shown = is_short ? { ...one, ...rest, type: [one.type, 'null'] } : (value as object)
  return Object.fromEntries(Object.entries(shown).map(([name, item]) => [name, joined(item)]))
}

const enum_max = 40

function shortEnum(schema: Schema): Schema {
  const { enum: texts, ...rest } = schema
  return Array.isArray(texts) && texts.length > enum_max ? { type: 'string', ...rest } : schema
}

/** A copy without the keywords that `leave` names. */
export function without(value: unknown, leave: (name: string, item: unknown) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => without(item, leave))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, item]) => !leave(name, item))
      .map(([name, item]) => [name, without(item, leave)]),
  )
}
