// Shapes that several features share, and the marks that the request reader understands.

import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { limit } from '../base/limit.ts'
import type { Param } from './route.ts'

export const kib = 1_024
export const value_bytes_max = limit(
  'json.value_bytes',
  256 * kib,
  'bytes',
  'The JSON text of `value` and `callback_payload`. Past it 413.',
)
export const metadata_bytes_max = limit(
  'json.metadata_bytes',
  64 * kib,
  'bytes',
  'The JSON text of `metadata` in the audit log. Past it 413.',
)
export const label_characters_max = limit(
  'fields.label',
  256,
  'characters',
  '`title`, `label`, `workflow_id`, `actor` and the `name` of a schedule. Past it 400.',
)
export const action_characters_max = limit(
  'fields.action',
  128,
  'characters',
  '`action` in the audit log. Past it 400.',
)
const url_characters_max = limit('fields.url', 2_048, 'characters', 'URLs. Past it 400.')

/** The exact JSON text of a member, as it came in and as it goes out. */
export class RawJson {
  constructor(readonly text: string) {}
}

/** Of JSON that is stored as text. */
export function rawOrNull(text: string | null): RawJson | null {
  return text === null ? null : new RawJson(text)
}

/** Any JSON value, kept as text. Larger than `bytes_max` is 413. */
export function AnyJson(bytes_max: number, description: string) {
  return Type.Unsafe<RawJson>({ description, 'x-any-json': 'any', 'x-bytes-max': bytes_max })
}

/** The same for a JSON object (or null, which stands for none). */
export function AnyJsonObject(bytes_max: number, description: string) {
  return Type.Unsafe<RawJson>({
    type: ['object', 'null'],
    description,
    'x-any-json': 'object',
    'x-bytes-max': bytes_max,
  })
}

/** In answers: any JSON. */
export function Json(description: string) {
  return Type.Unsafe<RawJson | null>({ description })
}

/** In answers: an object, whose values are any JSON unless a schema says more. */
export function JsonObject(description: string, values?: TSchema) {
  const schema = values ? Type.Record(Type.String(), values) : { type: 'object' }
  return Type.Unsafe<RawJson>({ ...schema, description })
}

export function Nullable<S extends TSchema>(schema: S) {
  return Type.Unsafe<Static<S> | null>({ anyOf: [schema, { type: 'null' }] })
}

/** In bodies: a value, or null, which is not the same as an absent member. */
export function OrNull<S extends TSchema>(schema: S) {
  return Type.Unsafe<Static<S> | null>({ anyOf: [schema, { type: 'null' }], 'x-null': true })
}

/** A description, or also the component that a shape shares with others that differ from it in a few members. */
type About = string | Sharing

interface Sharing {
  about: string
  of: string
  /** The description of the component, where no shape has its very name. */
  shared?: string
}

/** An object of an answer: every field is always there. Its name is that of the type in generated clients. */
export function Shape<P extends TProperties>(name: string, about: About, properties: P): TObject<P> {
  return Type.Object(properties, named(name, about))
}

/** The same for an object whose name only the document has: a part of another, a page or a body. */
export function Part<P extends TProperties>(name: string, about: About, properties: P): TObject<P> {
  return Type.Object(properties, partNamed(name, about))
}

type Marks = Record<string, string>

/** The mark of a schema whose type has a name in generated clients. */
export function named(name: string, about: About): Marks {
  return { 'x-name': name, ...marksOf(about) }
}

export function partNamed(name: string, about: About): Marks {
  return { 'x-component': name, ...marksOf(about) }
}

/** Bodies of several routes that share a component. Each has the name of its operation. */
export function sharing(of: string, shared: string): Marks {
  return { 'x-of': of, 'x-of-about': shared }
}

function marksOf(about: About): Marks {
  if (typeof about === 'string') return { description: about }
  const { of, about: description, shared } = about
  return { description, 'x-of': of, ...(shared === undefined ? {} : { 'x-of-about': shared }) }
}

export function Text(characters_max: number, description: string, options: object = {}) {
  return Type.String({ maxLength: characters_max, description, ...options })
}

/** A URL to send to. The example shows what no JSON Schema can: a URL that may be called. */
export function Url(description: string) {
  return Text(url_characters_max, description, { examples: ['https://example.com/callbacks'] })
}

/** RFC 3339 date-time with an offset; answers are UTC with milliseconds. */
export function Time(description: string) {
  return Type.String({ format: 'date-time', description })
}

const id_form = /^[A-Za-z0-9_-]{1,64}$/

/**
 * An id in a path is never checked for form: a text that names nothing gets the unknown-id answer. A text that could
 * not be an id at all becomes '-', which is not one, so that no odd text reaches a database.
 */
export function idParam(description: string): Param {
  return {
    schema: Type.String({ description }),
    read: (decoded) => (id_form.test(decoded) ? decoded : '-'),
    message: '',
  }
}

export const page_limit_default = 50
export const page_limit_max = limit(
  'pages.rows',
  200,
  'rows',
  'Items on a page of a list under /v1. A larger `limit` counts as this.',
)

/** Query of every list under /v1. */
export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Items per page, default 50; more than 200 counts as 200.' }),
  ),
  cursor: Type.Optional(Type.String({ maxLength: 2_048, description: 'next_cursor of the previous page.' })),
}

/** `item` is a shape with a name. */
export function Page<S extends TSchema>(item: S) {
  const noun = String((item as { 'x-name'?: string })['x-name']).replace(/^Listed/, '')
  const shared = 'A page of a list, with the cursor of the next one.'
  return Part(
    `${noun}Page`,
    { of: 'Page', about: `A page of a list: each item is ${article(noun)} ${noun}.`, shared },
    {
      items: Type.Array(item),
      next_cursor: Nullable(
        Type.String({
          description: 'Pass it as cursor to get the next page, even after an empty one; null on the last.',
        }),
      ),
    },
  )
}

function article(noun: string): string {
  return /^[AEIO]/.test(noun) ? 'an' : 'a'
}

const grace_seconds_max = limit(
  'credentials.grace',
  604_800,
  'seconds',
  'How long a rotated key may keep working. Past it 400.',
)
/** Bodies of calls that act on a tenant or an agent. */
export const action_request = sharing(
  'ActionRequest',
  'Stops, resumes or deletes a tenant or an agent, or rotates a key.',
)

/** Body of every rotate-key. */
export const RotateBody = Part(
  'RotateKeyRequest',
  { of: 'ActionRequest', about: 'How long the old key still works.' },
  {
    grace_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: grace_seconds_max,
        description: 'How long the old key still works; 0, the default, ends it at once.',
      }),
    ),
  },
)
export const PreviousKey = Nullable(Time('When the previous key stops working; null when it already has.'))
