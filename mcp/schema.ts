// The parts of openapi.json that SDK, CLI and MCP server are made from, and its schemas as they stand alone: references replaced
// by what they name.

type Json = Record<string, unknown>

export interface Schema {
  type?: string | string[]
  format?: string
  description?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  'x-any-json'?: 'any' | 'object'
  /** The name of its type in our clients. */
  'x-name'?: string
  [keyword: string]: unknown
}

export interface Parameter {
  in: 'path' | 'query' | 'header'
  name: string
  required: boolean
  description?: string
  schema: Schema
}

export interface Content {
  content?: Record<string, { schema: Schema }>
}

export interface OperationObject {
  operationId: string
  summary: string
  description?: string
  parameters?: Parameter[]
  requestBody?: Content
  responses: Record<string, Content>
  security: object[]
  'x-destructive'?: boolean
  /** Data lies in an envelope. */
  'x-wrapped'?: boolean
  /** Takes any bytes without a key: the SDK has no method for it. */
  'x-raw'?: boolean
  'x-errors'?: string[]
}

export interface Document {
  info: { version: string }
  paths: Record<string, Record<string, OperationObject>>
  components: { schemas: Record<string, Schema> }
  'x-errors': Record<string, { next: string; exit: string }>
}

interface Described {
  paths: object
  components: { schemas: object }
}

/** The document with every schema in its paths resolved. */
export function resolved<D extends Described>(document: D): D {
  const components = new Schemas(document.components.schemas as Record<string, Json>)
  return { ...document, paths: components.resolve(document.paths) }
}

class Schemas {
  readonly #components: Readonly<Record<string, Json>>
  /** Each component is resolved once. */
  readonly #known = new Map<string, unknown>()

  constructor(components: Readonly<Record<string, Json>>) {
    this.#components = components
  }

  /**
   * The schema without references. A shape that narrows a shared component has the members of `x-members` alone, if it
   * names some, and requires what both require, or exactly `x-required`.
   */
  resolve<T>(value: T): T {
    if (Array.isArray(value)) return value.map((item) => this.resolve(item)) as T
    if (typeof value !== 'object' || value === null) return value
    const { $ref } = value as Json
    return (typeof $ref === 'string' ? this.#named(nameOf($ref)) : exact(this.#whole(value as Json))) as T
  }

  #named(name: string): unknown {
    if (!this.#known.has(name)) this.#known.set(name, exact(this.#whole(this.#component(name))))
    return this.#known.get(name)
  }

  /** With the members that a component shares. */
  #whole({ $ref, allOf, anyOf, ...rest }: Json): Json {
    if (typeof $ref === 'string') return this.#whole(this.#component(nameOf($ref)))
    const own = Object.fromEntries(Object.entries(rest).map(([name, item]) => [name, this.resolve(item)]))
    const [shared] = (allOf ?? []) as Json[]
    if (shared) return shared.enum ? textOf(own, shared.enum) : narrowed(this.#whole(shared), own)
    if (anyOf && own['x-any-json']) return { ...own, type: ['object', 'null'] }
    return anyOf ? { ...own, anyOf: this.resolve(anyOf) } : own
  }

  /** An object of any members has no words of its own. */
  #component(name: string): Json {
    const component = this.#components[name]!
    return component.additionalProperties === true ? { type: 'object' } : component
  }
}

function nameOf($ref: string): string {
  return $ref.split('/').at(-1)!
}

/** Of some texts: these say that it is one. */
function textOf({ type: _, ...own }: Json, texts: unknown): Json {
  return { ...own, enum: texts }
}

function narrowed(
  { 'x-members': _, 'x-required': __, ...shared }: Json,
  { properties, required = [], ...own }: Json,
): Json {
  const needed = [...((shared.required as string[] | undefined) ?? []), ...(required as string[])]
  return {
    ...shared,
    ...(needed.length > 0 ? { required: needed } : {}),
    ...own,
    ...(shared.properties ? { properties: { ...shared.properties, ...(properties as Json) } } : {}),
  }
}

function exact(schema: Json): Json {
  const { 'x-members': members, 'x-required': required, ...rest } = schema
  const properties = rest.properties as Json | undefined
  if (!properties) return schema
  const names = (members ?? Object.keys(properties)) as string[]
  const needed = (required ?? rest.required ?? []) as string[]
  return {
    ...rest,
    ...(needed.length > 0 ? { required: names.filter((name) => needed.includes(name)) } : {}),
    properties: Object.fromEntries(names.map((name) => [name, properties[name]])),
  }
}
