// A schema for what two schemas take: components that several shapes share are made of these.

import type { Json } from './responses.ts'

/**
 * Several kinds of objects, or anything: those who narrow it say which. Without the second alternative a type that narrows
 * it would have the members of all of them.
 */
export function orAnything(schema: Json): Json {
  const items = schema.type === 'array' ? (schema.items as Json) : schema
  const kinds = choicesOf(items).filter(({ $ref }) => $ref)
  if (kinds.length < 2) return schema
  const { description, ...rest } = schema
  return {
    anyOf: [...(schema.type === 'array' ? [rest] : choicesOf(rest)), {}],
    ...(description ? { description } : {}),
  }
}

/** The members of both; one with two schemas has either. */
export function together(all: Record<string, Json>, more: Record<string, Json>): Record<string, Json> {
  const merged = { ...all }
  for (const [member, schema] of Object.entries(more))
    merged[member] = merged[member] ? eitherOf(merged[member], schema) : schema
  return merged
}

/** A schema that takes what either takes. */
function eitherOf(one: Json, other: Json): Json {
  if (bare(one) === bare(other)) return one
  const description = one.description ? { description: one.description } : {}
  const choices = [...choicesOf(one)]
  for (const added of choicesOf(other)) {
    const known = choices.findIndex((choice) => bare(choice) === bare(added) || isAlike(choice, added))
    if (known === -1) choices.push(added)
    else choices[known] = loosest(choices[known]!, added)
  }
  const [only, ...others] = choices
  if (others.length === 0) return { ...only, ...description }
  return { anyOf: choices, ...description }
}

function choicesOf(schema: Json): Json[] {
  return (schema.anyOf as Json[] | undefined) ?? [schema]
}

function isAlike({ type }: Json, other: Json): boolean {
  return type !== undefined && type !== 'object' && type === other.type
}

/** Of the same type: with the keywords that both have alike. */
function loosest(one: Json, other: Json): Json {
  if (bare(one) === bare(other)) return one
  const shared = commonOf([one, other])
  if (one.type !== 'array') return shared
  return { ...shared, type: 'array', items: eitherOf(one.items as Json, other.items as Json) }
}

/** Its text without words. */
function bare(schema: Json): string {
  return JSON.stringify(schema, (keyword, value) =>
    keyword === 'description' && typeof value === 'string' ? undefined : value,
  )
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** The keywords that all of them have alike. */
export function commonOf(all: Json[]): Json {
  const [first = {}, ...others] = all
  return Object.fromEntries(
    Object.entries(first).filter(([keyword, value]) => others.every((other) => same(other[keyword], value))),
  )
}
