// The schemas of arguments in the part of JSON Schema that providers of models, and the frameworks that convert tools for them,
// take whole. A tool list with one schema outside of it is refused or loses arguments.

import type { Schema } from './schema.ts'

/**
 * Any JSON, by its types: without one, Gemini refuses the tool, AutoGen the whole list, and several clients send the value as
 * text. Gemini wants `items` in an array, and nothing beside `anyOf`: the description is that of the first. null is taken as well;
 * where it is named, converters put "nullable" beside `anyOf`.
 */
function anyJson({ description, ...rest }: Schema): Schema {
  const said = description === undefined ? {} : { description }
  return {
    ...rest,
    anyOf: [
      { type: 'object', ...said },
      { type: 'array', items: {} },
      ...['string', 'number', 'boolean'].map((type) => ({ type })),
    ],
  }
}

/**
 * The same schema with one type in each place: a list of texts says that it is text, and what may be null says so no more, since
 * null counts as absent there. An object of any members says that it has some, or LangChain makes it a text for Gemini.
 */
export function portable(schema: Schema): Schema {
  const { type, properties, items, ...rest } = schema
  const one = Array.isArray(type) ? type.find((name) => name !== 'null') : type
  if (one === undefined && !rest.enum) return anyJson(schema)
  return {
    type: one ?? 'string',
    ...rest,
    ...(one === 'object' && !properties ? { additionalProperties: true } : {}),
    ...(properties ? { properties: all(properties) } : {}),
    ...(items ? { items: portable(items) } : {}),
  }
}

function all(properties: Record<string, Schema>): Record<string, Schema> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, portable(schema)]))
}
