// The named schemas of the OpenAPI document. Each object has a name there; shapes that differ in a few members share one
// component, which has the members of all of them, and narrow it by `allOf`. Generators that follow this make a type of
// each name, and those that take the shared component alone make few.

import { commonOf, orAnything, same, together } from './either.ts'
import type { Json } from './responses.ts'

/** An object as a route declares it, with references in place of the objects in it. */
interface Exact {
  name: string
  about: string
  /** The component that it narrows; its own name when others narrow it, or when none is shared. */
  base: string
  properties: Record<string, Json>
  required: string[]
  /** Further keywords of the object, such as `x-name`, the name of its type in our clients. */
  marks: Json
}

export class Components {
  readonly #exact = new Map<string, Exact>()
  /** Descriptions of components that are only shared, by name. */
  readonly #shared = new Map<string, string>()
  readonly #enums = new Map<string, Json>()

  /** The same schema with references. `name` is that of an object without a name of its own. Throws for one without any. */
  of(schema: Json, name?: string): Json {
    if (schema['x-any-json'] === 'any') return schema
    if (Array.isArray(schema.enum)) return this.#enumOf(schema)
    if (isObject(schema)) return this.#objectOf(schema, name)
    const { anyOf, items, ...rest } = schema
    if (Array.isArray(anyOf)) return { ...rest, anyOf: anyOf.map((one: Json) => this.of(one)) }
    return items ? { ...rest, items: this.of(items as Json) } : schema
  }

  #objectOf(schema: Json, name?: string): Json {
    const { properties, ...rest } = schema
    if (rest.patternProperties) return this.#mapOf(rest)
    if (!properties || Object.keys(properties).length === 0) return freeObject(rest)
    const own = (schema['x-name'] ?? schema['x-component'] ?? name) as string | undefined
    if (own === undefined) throw new Error(`an object has no name: ${Object.keys(properties)}`)
    this.#add(own, schema)
    return ref(own)
  }

  /** Values of one schema under any names. */
  #mapOf({ patternProperties, ...rest }: Json): Json {
    const [values, ...others] = Object.values(patternProperties as Record<string, Json>)
    if (others.length > 0) throw new Error('an object has several patterns of names')
    return { ...rest, additionalProperties: this.of(values!) }
  }

  #add(name: string, schema: Json): void {
    const {
      properties,
      required = [],
      description,
      'x-of': base = name,
      'x-of-about': shared,
      ...rest
    } = schema
    const { type: _, 'x-component': __, ...marks } = rest
    const exact: Exact = {
      name,
      about: description as string,
      base: base as string,
      properties: Object.fromEntries(
        Object.entries(properties as Record<string, Json>).map(([member, one]) => [member, this.of(one)]),
      ),
      required: required as string[],
      marks,
    }
    if (shared) this.#shared.set(exact.base, shared as string)
    const known = this.#exact.get(name)
    if (known && JSON.stringify(known) !== JSON.stringify(exact))
      throw new Error(`two shapes are named ${name}`)
    this.#exact.set(name, exact)
  }

  /** A text of some: for a generator that reads no `allOf` it is any, so that its clients bear a new one. */
  #enumOf(schema: Json): Json {
    const { enum: texts, type: _, 'x-component': name, ...rest } = schema as { enum: string[] } & Json
    if (texts.length === 1) return { type: 'string', const: texts[0], ...rest }
    const text = { type: 'string', allOf: [{ enum: texts }], ...rest }
    if (!name) return text
    this.#enums.set(name as string, text)
    return ref(name as string)
  }

  /** All of them by name. */
  schemas(): Record<string, Json> {
    const all = [...this.#exact.values()]
    const bases = Map.groupBy(all, ({ base }) => base)
    const shown = [...bases].flatMap(([base, shapes]) => this.#family(base, shapes))
    return Object.fromEntries(
      [...shown, ...this.#enums, json_object].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
  }

  #membersOf(shapes: Exact[]): Record<string, Json> {
    const members = shapes.map(({ properties }) => properties).reduce(together)
    if (shapes.length === 1) return members
    return Object.fromEntries(
      Object.entries(members).map(([name, schema]) => [name, this.#oneBaseOf(schema) ?? orAnything(schema)]),
    )
  }

  /** Shapes that all narrow one component are that component. */
  #oneBaseOf({ anyOf, description }: Json): Json | null {
    if (!Array.isArray(anyOf) || !anyOf.every(({ $ref }) => $ref)) return null
    const bases = new Set(anyOf.map(({ $ref }) => this.#exact.get(nameOf($ref))!.base))
    const [base] = bases
    return bases.size === 1 ? { ...(description ? { description } : {}), ...ref(base!) } : null
  }

  /** A shared component and those that narrow it. */
  #family(base: string, shapes: Exact[]): [string, Json][] {
    const own = shapes.find(({ name }) => name === base)
    const ordered = own ? [own, ...shapes.filter((shape) => shape !== own)] : shapes
    const shared: Exact = {
      name: base,
      base,
      about: own?.about ?? this.#shared.get(base) ?? '',
      properties: this.#membersOf(ordered),
      required: ordered[0]!.required.filter((member) =>
        ordered.every(({ required }) => required.includes(member)),
      ),
      marks: own?.marks ?? commonOf(ordered.map(({ marks }) => marks)),
    }
    const described = (shape: Exact): Exact => {
      if (shape.about) return shape
      throw new Error(`${shape.name} has no description`)
    }
    return [
      [base, { ...wholeOf(described(shared)), ...(own && exactnessOf(own, shared)) }],
      ...ordered
        .filter((shape) => shape !== own)
        .map((shape): [string, Json] => [shape.name, narrowed(described(shape), shared)]),
    ]
  }
}

const json_object: [string, Json] = [
  'JsonObject',
  { type: 'object', description: 'A JSON object with any members.', additionalProperties: true },
]

function isObject({ type }: Json): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object'))
}

/** An object of any members: null too, where the route takes it. */
function freeObject({ type, ...rest }: Json): Json {
  const kept = Object.fromEntries(Object.entries(rest).filter(([keyword]) => keyword !== 'properties'))
  if (type !== 'object') return { ...kept, anyOf: [ref('JsonObject'), { type: 'null' }] }
  return Object.keys(kept).length === 0 ? ref('JsonObject') : { ...kept, allOf: [ref('JsonObject')] }
}

function nameOf($ref: string): string {
  return $ref.split('/').at(-1)!
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

function wholeOf({ about, properties, required, marks }: Exact): Json {
  return {
    type: 'object',
    description: about,
    ...(required.length > 0 ? { required } : {}),
    properties,
    ...marks,
  }
}

/** The members that a shape has, and requires, where the component that it shares has others. */
function exactnessOf(shape: Exact, shared: Exact): Json {
  const members = Object.keys(shape.properties)
  const has_all = members.join() === Object.keys(shared.properties).join()
  return {
    ...(has_all ? {} : { 'x-members': members }),
    ...(shape.required.join() === shared.required.join() ? {} : { 'x-required': shape.required }),
  }
}

function narrowed(shape: Exact, shared: Exact): Json {
  const own = Object.entries(shape.properties).filter(
    ([member, one]) => !same(one, shared.properties[member]!),
  )
  const { 'x-members': members } = exactnessOf(shape, shared)
  return {
    description: shape.about,
    allOf: [ref(shape.base)],
    ...(shape.required.length > 0 ? { required: shape.required } : {}),
    ...(own.length > 0 ? { properties: Object.fromEntries(own) } : {}),
    ...(members ? { 'x-members': members } : {}),
    ...Object.fromEntries(
      Object.entries(shape.marks).filter(([keyword]) => !(keyword in shared.marks) || keyword === 'x-name'),
    ),
  }
}
