// The form of an answer, made from the schema that the agent sent.

import type { Signal } from '@preact/signals'
import { issuesOf, type Problem } from '../api/client.ts'
import { isoOf } from '../text/time.ts'
import { shown } from '../text/words.ts'
import { Check, Field, Select } from '../ui/form.tsx'

export interface AnswerField {
  type: 'string' | 'number' | 'integer' | 'boolean'
  title?: string
  description?: string
  enum?: (string | number)[]
  format?: 'date' | 'date-time' | 'email' | 'uri'
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
}

export interface AnswerSchema {
  title?: string
  description?: string
  properties: Record<string, AnswerField>
  required?: string[]
}

/** The text of each field, the place of its choice, or whether its box is ticked. */
export type Typed = Record<string, string | boolean>

/** Where its fields stand in the body of a decision. */
const answer_path = '/answer/'

/** A text that long is written in several lines. */
const long_characters = 120

interface AnswerFormProps {
  schema: AnswerSchema
  typed: Signal<Typed>
  /** By field. */
  errors: Record<string, string>
}

export function AnswerForm({ schema, typed, errors }: AnswerFormProps) {
  return (
    <fieldset class="answer stack">
      <legend class="label">{shown(schema.title ?? 'Your answer')}</legend>
      {schema.description && <p class="muted">{shown(schema.description)}</p>}
      {Object.entries(schema.properties).map(([name, field]) => (
        <Control
          key={name}
          {...{ name, field }}
          required={schema.required?.includes(name) ?? false}
          value={memberOf(typed.value, name) ?? ''}
          error={memberOf(errors, name)}
          onInput={(value) => {
            typed.value = { ...typed.value, [name]: value }
          }}
        />
      ))}
    </fieldset>
  )
}

/** A field may be called `constructor`, which every object has. */
function memberOf<T>(of: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(of, name) ? of[name] : undefined
}

interface ControlProps {
  name: string
  field: AnswerField
  required: boolean
  value: string | boolean
  error: string | undefined
  onInput: (value: string | boolean) => void
}

function Control({ name, field, required, value, error, onInput }: ControlProps) {
  const title = shown(field.title ?? name)
  const hint = hintOf(field)
  if (field.type === 'boolean')
    return <Check label={title} {...{ hint, error, onInput }} checked={value === true} />
  const label = required ? title : `${title} (optional)`
  const text = String(value)
  if (field.enum) {
    // By its place: a choice may be empty, or white space.
    const options = field.enum.map((choice, i) => ({ value: String(i), label: labelOf(choice) }))
    const none = { value: '', label: required ? 'Choose…' : 'None' }
    return <Select {...{ label, hint, error, onInput }} value={text} options={[none, ...options]} />
  }
  const rows =
    field.type === 'string' && !field.format && (field.maxLength ?? 4_096) > long_characters ? 3 : 1
  return (
    <Field
      {...{ label, hint, error, onInput, required, rows }}
      name={`${answer_path}${name}`}
      type={inputOf(field)}
      value={text}
      // The keyboard of an iPhone for them has no minus.
      {...((field.minimum ?? -1) >= 0 && { inputmode: 'decimal' as const })}
      {...(field.type === 'string' &&
        field.maxLength !== undefined && { characters_max: 2 * field.maxLength })}
    />
  )
}

function labelOf(choice: string | number): string {
  const text = String(choice)
  return shown(text.trim() === '' ? JSON.stringify(text) : text)
}

function inputOf({ type, format }: AnswerField) {
  if (type !== 'string') return 'text'
  const inputs = { date: 'date', 'date-time': 'datetime-local', email: 'email', uri: 'url' } as const
  return format ? inputs[format] : 'text'
}

/** The description, and the bounds in words. */
function hintOf({
  type,
  description,
  minimum,
  maximum,
  minLength,
  maxLength,
}: AnswerField): string | undefined {
  const words =
    type === 'string'
      ? bounds('Characters:', minLength, maxLength)
      : bounds(type === 'integer' ? 'A whole number' : 'A number', minimum, maximum)
  const parts = [description && shown(description), type !== 'boolean' && words].filter((part) => part)
  return parts.length > 0 ? parts.join(' ') : undefined
}

function bounds(what: string, least: number | undefined, most: number | undefined): string {
  if (least !== undefined && most !== undefined) return `${what} from ${least} to ${most}.`
  if (most !== undefined) return `${what} up to ${most}.`
  return least === undefined ? '' : `${what} from ${least}.`
}

/** The answer as it is sent; what is empty is left out. The service checks it. */
export function answerOf({ properties }: AnswerSchema, typed: Typed): Record<string, unknown> {
  const answer: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(properties)) {
    const value = memberOf(typed, name)
    if (field.type === 'boolean') answer[name] = value === true
    else if (!value || typeof value !== 'string') continue
    else if (field.enum) answer[name] = field.enum[Number(value)]
    else if (value.trim() !== '') answer[name] = typedValue(field, value)
  }
  return answer
}

function typedValue({ type, format }: AnswerField, text: string): unknown {
  // Text that is not exactly one number is sent as it is, and refused.
  if (type !== 'string') return numberFault(type, text) === undefined ? Number(text) : text
  if (format !== 'date-time') return format ? text.trim() : text
  return isoOf(text) ?? text
}

export const half_text = 'The date is not complete: fill in the rest, or empty it.'

/** More of them, and a number may not be kept as it was written. */
const digits_max = 15

/** "1,000" is one or a thousand, by the country: it is refused. */
function numberFault(type: AnswerField['type'], text: string): string | undefined {
  const written = text.trim()
  if (type === 'integer' && !/^-?\d+$/.test(written))
    return 'Write a whole number with digits only, such as 1000.'
  if (!/^-?\d+(\.\d+)?$/.test(written))
    return 'Write a number with digits and at most one point, such as 1000 or 0.5.'
  const digits = written.replace(/[-.]/g, '').replace(/^0+/, '')
  return digits.length > digits_max && String(Number(written)) !== written
    ? `Write at most ${digits_max} digits.`
    : undefined
}

/** Fields with numbers that can be read in two ways, or not at all, and those in which `half`, paths, have a part of a date. */
export function faultsOf(
  { properties }: AnswerSchema,
  typed: Typed,
  half: readonly string[],
): Record<string, string> {
  const faults: Record<string, string> = {}
  for (const [name, { type, enum: choices }] of Object.entries(properties)) {
    const value = memberOf(typed, name)
    if (half.includes(`${answer_path}${name}`) && !value) faults[name] = half_text
    if (type === 'string' || choices || typeof value !== 'string' || value.trim() === '') continue
    const fault = numberFault(type, value)
    if (fault !== undefined) faults[name] = fault
  }
  return faults
}

/** The faults that the service found, by field. */
export function errorsOf(problem: Problem): Record<string, string> {
  const of_answer = issuesOf(problem).filter(({ path }) => path.startsWith(answer_path))
  return Object.fromEntries(
    of_answer.map(({ path, message }) => [path.slice(answer_path.length), `It ${shown(message)}.`]),
  )
}
