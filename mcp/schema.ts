// The schemas of openapi.json as they stand alone: references replaced by what they name. SDK, CLI and MCP server are made
// from these.

type Json = Record<string, unknown>

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
   * names some, and requires what both require, or exactly `x-required`. Alternatives of texts are one enumeration.
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
  #whole({ $ref, allOf, oneOf, anyOf, ...rest }: Json): Json {
    if (typeof $ref === 'string') return this.#whole(this.#component(nameOf($ref)))
    const own = Object.fromEntries(Object.entries(rest).map(([name, item]) => [name, this.resolve(item)]))
    if (Array.isArray(allOf)) return narrowed(this.#whole(allOf[0]), own)
    const alternatives = this.resolve((oneOf ?? anyOf) as Json[] | undefined)
    if (alternatives && own['x-any-json']) return { ...own, type: ['object', 'null'] }
    return alternatives ? { ...own, ...chosen(alternatives) } : own
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

/** Texts that may be chosen from are an enumeration; beside them others, such as null, may stand. */
function chosen(alternatives: Json[]): Json {
  const texts = alternatives.filter((one) => typeof one.const === 'string').map((one) => one.const)
  if (texts.length < 2) return { anyOf: alternatives }
  const others = alternatives.filter((one) => typeof one.const !== 'string')
  const choice = { enum: texts }
  return others.length === 0 ? choice : { anyOf: [choice, ...others] }
}
