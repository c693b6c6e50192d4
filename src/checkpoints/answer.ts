// An answer, checked against the schema that was asked for. No imports from db or http.

import { parseTime } from '../base/clock.ts'
import type { Issue } from '../base/errors.ts'
import {
  type AnswerField,
  type AnswerFormat,
  type AnswerSchema,
  fields_max,
  isObject,
  isOfType,
  text_characters_max,
} from './answer-schema.ts'

/**
 * The answer as it is stored, its fields in the order of the schema, so that equal answers have equal texts; or what is wrong
 * with it. A field that is null counts as absent.
 */
export function answerText(schema: AnswerSchema, given: unknown): { text: string } | { issues: Issue[] } {
  if (!isObject(given)) return { issues: [{ path: '/answer', message: 'must be an object' }] }
  const { properties, required = [] } = schema
  const issues: Issue[] = Object.keys(given)
    .filter((name) => !Object.hasOwn(properties, name))
    .slice(0, fields_max)
    .map((name) => ({ path: `/answer/${name}`, message: 'is not asked for' }))
  const members: string[] = []
  for (const [name, field] of Object.entries(properties)) {
    const value = Object.hasOwn(given, name) ? given[name] : null
    const wrong = value === null ? (required.includes(name) ? 'is required' : null) : fault(field, value)
    if (wrong !== null) issues.push({ path: `/answer/${name}`, message: wrong })
    else if (value !== null) members.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`)
  }
  return issues.length > 0 ? { issues } : { text: `{${members.join(',')}}` }
}

/** The fault of a value; null when it has none. */
function fault(field: AnswerField, value: unknown): string | null {
  const { type, minLength = 0, maxLength = text_characters_max, minimum, maximum } = field
  if (!isOfType(value, type)) return type === 'integer' ? 'must be a whole number' : `must be a ${type}`
  if (field.enum && !field.enum.includes(value as string | number))
    return `must be one of ${field.enum.join(', ')}`
  if (typeof value === 'number') {
    if (minimum !== undefined && value < minimum) return `must be ${minimum} or more`
    return maximum !== undefined && value > maximum ? `must be ${maximum} or less` : null
  }
  if (typeof value !== 'string') return null
  const most = Math.min(maxLength, text_characters_max)
  const characters = value.length > 2 * most ? Number.POSITIVE_INFINITY : [...value].length
  if (characters < minLength) return `must have ${minLength} characters or more`
  if (characters > most) return `must have ${most} characters or fewer`
  return field.format && !has_format[field.format](value) ? `must be a ${words[field.format]}` : null
}

const words = {
  date: 'date, as 2026-01-31',
  'date-time': 'time with an offset, such as 2026-01-31T12:00:00Z',
  email: 'mail address',
  uri: 'URL',
}

/** Each takes time in proportion to the length of the text. */
const has_format: Record<AnswerFormat, (text: string) => boolean> = {
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parseTime(`${text}T00:00:00Z`) !== null,
  'date-time': (text) => parseTime(text) !== null,
  email: (text) => /^[^\s<>()[\]\\,;:"@]{1,64}@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+$/.test(text),
  uri: (text) => /^[a-zA-Z][a-zA-Z0-9+.-]*:\S+$/.test(text) && URL.canParse(text),
}
