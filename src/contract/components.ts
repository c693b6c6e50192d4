// The named schemas of the OpenAPI document. Each object has a name there; shapes that differ in a few members share one
// component, which has the members of all of them, and narrow it by `allOf`. Generators that follow this make a type of
// each name, and those that take the shared component alone make few.

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

/** Enumerations up to this many texts are written as alternatives in place; a longer one is a component. */
const inline_texts = 20

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
    if (Array.isArray(anyOf))
      return { ...rest, anyOf: anyOf.flatMap((one: Json) => alternatives(this.of(one))) }
    return items ? { ...rest, items: this.of(items as Json) } : schema
  }

  #objectOf(schema: Json, name?: string): Json {
    const { properties, ...rest } = schema
    if (!properties || Object.keys(properties).length === 0) return freeObject(rest)
    const own = (schema['x-name'] ?? schema['x-component'] ?? name) as string | undefined
    if (own === undefined) throw new Error(`an object has no name: ${Object.keys(properties)}`)
    this.#add(own, schema)
    return ref(own)
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

  #enumOf(schema: Json): Json {
    const { enum: texts, type: _, 'x-component': name, ...rest } = schema as { enum: string[] } & Json
    if (texts.length === 1) return { const: texts[0], ...rest }
    if (texts.length <= inline_texts) return { oneOf: texts.map((text) => ({ const: text })), ...rest }
    if (!name) throw new Error(`an enumeration has no name: ${texts}`)
    this.#enums.set(name as string, { type: 'string', enum: texts, ...rest })
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

  /** A shared component and those that narrow it. */
  #family(base: string, shapes: Exact[]): [string, Json][] {
    const own = shapes.find(({ name }) => name === base)
    const ordered = own ? [own, ...shapes.filter((shape) => shape !== own)] : shapes
    const shared: Exact = {
      name: base,
      base,
      about: own?.about ?? this.#shared.get(base) ?? '',
      properties: ordered.reduce<Record<string, Json>>(
        (all, { properties }) => together(all, properties),
        {},
      ),
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
  const kept = Object.fromEntries(
    Object.entries(rest).filter(([keyword]) => !/^(patternP|p)roperties$/.test(keyword)),
  )
  if (type !== 'object') return { ...kept, anyOf: [ref('JsonObject'), { type: 'null' }] }
  return { ...kept, allOf: [ref('JsonObject')] }
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

/** An alternative of several texts among others is as many alternatives. */
function alternatives(schema: Json): Json[] {
  const { oneOf, ...rest } = schema
  return Array.isArray(oneOf) && Object.keys(rest).length === 0 ? oneOf : [schema]
}

/** The members of both. Throws for nothing: a member with two schemas has either. */
function together(all: Record<string, Json>, more: Record<string, Json>): Record<string, Json> {
  const merged = { ...all }
  for (const [member, schema] of Object.entries(more))
    merged[member] = merged[member] ? eitherOf(merged[member], schema) : schema
  return merged
}

/** A schema that takes what either takes. */
function eitherOf(one: Json, other: Json): Json {
  const description = one.description ? { description: one.description } : {}
  const choices = [...choicesOf(one)]
  for (const added of choicesOf(other)) {
    const known = choices.findIndex((choice) => same(bare(choice), bare(added)) || isAlike(choice, added))
    if (known === -1) choices.push(added)
    else choices[known] = loosest(choices[known]!, added)
  }
  const [only, ...others] = choices
  if (others.length === 0) return { ...only, ...description }
  return { anyOf: choices, ...description }
}

function choicesOf(schema: Json): Json[] {
  return ((schema.anyOf ?? schema.oneOf) as Json[] | undefined) ?? [schema]
}

function isAlike({ type }: Json, other: Json): boolean {
  return type !== undefined && type !== 'object' && type === other.type
}

/** Of the same type: with the keywords that both have alike. */
function loosest(one: Json, other: Json): Json {
  if (same(bare(one), bare(other))) return one
  const shared = commonOf([one, other])
  if (one.type !== 'array') return shared
  return { ...shared, type: 'array', items: eitherOf(one.items as Json, other.items as Json) }
}

/** Without words. */
function bare(schema: Json): Json {
  return JSON.parse(
    JSON.stringify(schema, (keyword, value) =>
      keyword === 'description' && typeof value === 'string' ? undefined : value,
    ),
  )
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** The keywords that all of them have alike. */
function commonOf(all: Json[]): Json {
  const [first = {}, ...others] = all
  return Object.fromEntries(
    Object.entries(first).filter(([keyword, value]) => others.every((other) => same(other[keyword], value))),
  )
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
  const added = shape.required.filter((member) => !shared.required.includes(member))
  const { 'x-members': members } = exactnessOf(shape, shared)
  return {
    description: shape.about,
    allOf: [ref(shape.base)],
    ...(added.length > 0 ? { required: added } : {}),
    ...(own.length > 0 ? { properties: Object.fromEntries(own) } : {}),
    ...(members ? { 'x-members': members } : {}),
    ...Object.fromEntries(
      Object.entries(shape.marks).filter(([keyword]) => !(keyword in shared.marks) || keyword === 'x-name'),
    ),
  }
}
