// The schema of an answer: a flat JSON Schema (draft 2020-12) of a few keywords. All else is refused, so that every form can show
// it and no text takes long to check. No imports from db or http.

import type { Issue } from '../base/errors.ts'
import { limit } from '../base/limit.ts'

export const fields_max = limit(
  'checkpoints.answer_fields',
  20,
  'entries',
  'Fields of an answer_schema. Past it 400.',
)
const choices_max = limit(
  'checkpoints.answer_choices',
  50,
  'entries',
  'Values of one `enum` in an answer_schema. Past it 400.',
)
export const text_characters_max = limit(
  'checkpoints.answer_text',
  4_096,
  'characters',
  'A text in an answer, where its schema sets no lower limit. Past it 422.',
)
const about_characters_max = limit(
  'checkpoints.answer_about',
  1_024,
  'characters',
  'A `title`, a `description` or a value of `enum` in an answer_schema. Past it 400.',
)

const types = ['string', 'number', 'integer', 'boolean'] as const
const formats = ['date', 'date-time', 'email', 'uri'] as const
export type AnswerFormat = (typeof formats)[number]

type Scalar = string | number | boolean

export interface AnswerField {
  type: (typeof types)[number]
  title?: string
  description?: string
  enum?: (string | number)[]
  format?: AnswerFormat
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
}

export interface AnswerSchema {
  type: 'object'
  title?: string
  description?: string
  properties: Record<string, AnswerField>
  required?: string[]
}

const name_form = /^[A-Za-z0-9_-]{1,64}$/

/** The faults of a schema; none of one that is allowed. `at` is its place. */
export function schemaIssues(schema: unknown, at: string): Issue[] {
  if (!isObject(schema)) return [{ path: at, message: 'must be an object' }]
  const issues = unknownOf(schema, ['type', 'title', 'description', 'properties', 'required'], at)
  const { type, properties, required = [] } = schema
  if (type !== 'object') issues.push({ path: `${at}/type`, message: 'must be "object"' })
  issues.push(...aboutIssues(schema, at))
  if (!isObject(properties)) return [...issues, { path: `${at}/properties`, message: 'must be an object' }]
  const names = Object.keys(properties)
  if (names.length < 1 || names.length > fields_max)
    return [...issues, { path: `${at}/properties`, message: `must have 1 to ${fields_max} fields` }]
  for (const name of names) issues.push(...fieldIssues(name, properties[name], `${at}/properties/${name}`))
  const is_list =
    Array.isArray(required) &&
    required.every((name) => names.includes(name)) &&
    new Set(required).size === required.length
  if (!is_list) issues.push({ path: `${at}/required`, message: 'must list fields of properties, each once' })
  return issues
}

function fieldIssues(name: string, field: unknown, at: string): Issue[] {
  if (!name_form.test(name) || name === '__proto__')
    return [{ path: at, message: 'has a name that is not 1 to 64 of A-Z a-z 0-9 _ -' }]
  if (!isObject(field)) return [{ path: at, message: 'must be an object' }]
  const { type } = field
  if (!types.includes(type as AnswerField['type']))
    return [{ path: `${at}/type`, message: `must be one of ${types.join(', ')}` }]
  const issues = [...unknownOf(field, keywords[type as AnswerField['type']], at), ...aboutIssues(field, at)]
  if (field.format !== undefined && !formats.includes(field.format as 'date'))
    issues.push({ path: `${at}/format`, message: `must be one of ${formats.join(', ')}` })
  issues.push(
    ...rangeIssues(
      field,
      ['minLength', 'maxLength'],
      at,
      isLength,
      `must be a whole number from 0 to ${text_characters_max}`,
    ),
    ...rangeIssues(field, ['minimum', 'maximum'], at, Number.isFinite, 'must be a number'),
  )
  if (field.enum !== undefined && !isChoices(field.enum, type as AnswerField['type']))
    issues.push({
      path: `${at}/enum`,
      message: `must list 1 to ${choices_max} values of its type, each once`,
    })
  return issues
}

const about = ['type', 'title', 'description']
const keywords: Record<AnswerField['type'], string[]> = {
  string: [...about, 'enum', 'format', 'minLength', 'maxLength'],
  number: [...about, 'enum', 'minimum', 'maximum'],
  integer: [...about, 'enum', 'minimum', 'maximum'],
  boolean: about,
}

function unknownOf(value: Record<string, unknown>, known: readonly string[], at: string): Issue[] {
  const unknown = Object.keys(value).filter((name) => !known.includes(name))
  return unknown
    .slice(0, fields_max)
    .map((name) => ({ path: `${at}/${name}`, message: 'is not supported here' }))
}

function aboutIssues(value: Record<string, unknown>, at: string): Issue[] {
  return ['title', 'description']
    .filter((name) => value[name] !== undefined && !isShortText(value[name]))
    .map((name) => ({
      path: `${at}/${name}`,
      message: `must be text of at most ${about_characters_max} characters`,
    }))
}

function rangeIssues(
  field: Record<string, unknown>,
  [least, most]: [string, string],
  at: string,
  isBound: (value: unknown) => boolean,
  message: string,
): Issue[] {
  const wrong = [least, most].filter((name) => field[name] !== undefined && !isBound(field[name]))
  if (wrong.length > 0) return wrong.map((name) => ({ path: `${at}/${name}`, message }))
  if ((field[least] as number) > (field[most] as number))
    return [{ path: `${at}/${least}`, message: `must not be above ${most}` }]
  return []
}

function isLength(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= text_characters_max
}

function isChoices(value: unknown, type: AnswerField['type']): boolean {
  if (!Array.isArray(value) || value.length < 1 || value.length > choices_max) return false
  const fits = (choice: unknown) => (type === 'string' ? isShortText(choice) : isOfType(choice, type))
  return value.every(fits) && new Set(value).size === value.length
}

function isShortText(value: unknown): value is string {
  return isText(value) && value.length <= about_characters_max
}

/** Text that both engines store and every client can read: no NUL, no lone surrogate. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isOfType(value: unknown, type: AnswerField['type']): value is Scalar {
  if (type === 'string') return isText(value)
  if (type === 'boolean') return typeof value === 'boolean'
  return type === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
}
