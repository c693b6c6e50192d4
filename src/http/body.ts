// The body of a request: from its bytes to text, then members, then a checked value.

import type { Static, TObject, TSchema } from 'typebox'
import type { Validator } from 'typebox/compile'
import { parseTime } from '../base/clock.ts'
import { ApiError, type Issue, invalid } from '../base/errors.ts'
import { limit } from '../base/limit.ts'
import type { Awaitable } from '../db/db.ts'
import type { IgnoredNames } from './ignored.ts'
import {
  type AnyJsonMember,
  isFarTooLong,
  isPlainText,
  type Marks,
  membersOf,
  not_plain,
  percentDecoded,
  type Read,
  readAnyJson,
  readTyped,
  splitPair,
  tooLong,
} from './members.ts'
import { withNestedLimits } from './nested-limits.ts'

/** Accepts `application/json`, `*+json`, `text/plain` or nothing, without an encoding. Throws UNSUPPORTED_MEDIA_TYPE. */
export function requireJson(headers: Headers): void {
  const type = headers.get('content-type')
  if (type !== null && type !== 'application/json' && !isJsonType(type))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE')
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity')
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE')
}

function isJsonType(type: string): boolean {
  const essence = type.split(';', 1)[0]!.trim().toLowerCase()
  return (
    essence === '' ||
    essence === 'application/json' ||
    essence === 'text/plain' ||
    /^[^/\s]+\/[^/\s]+\+json$/.test(essence)
  )
}

/** The default of the library is 8. */
const errors_max = limit(
  'http.body_errors',
  64,
  'entries',
  'Faults of one body or query that the answer lists: more than all fields of a body can have together.',
)

/** Loaded when the first schema is needed, which keeps it out of the start. */
async function compiler() {
  const [{ Compile }, { Settings }, formats] = await Promise.all([
    import('typebox/compile'),
    import('typebox/system'),
    import('typebox/format'),
  ])
  Settings.Set({ maxErrors: errors_max })
  formats.Set('date-time', (text) => parseTime(text) !== null)
  return Compile
}

/** Reads the body or query of a route, by its schema. */
export class Reader<S extends TObject> {
  readonly #any_json = new Map<string, AnyJsonMember>()
  readonly #typed = new Map<string, TSchema & Marks & { type?: string; maxLength?: number }>()
  readonly #required: readonly string[]
  readonly #schema: TObject
  #validator: Validator | null = null
  #compiling: Promise<Validator> | null = null

  constructor(schema: S) {
    this.#required = (schema as TSchema & { required?: string[] }).required ?? []
    const properties: Record<string, TSchema> = {}
    for (const [name, property] of Object.entries(schema.properties as Record<string, TSchema & Marks>)) {
      const { 'x-any-json': kind, 'x-bytes-max': bytes_max } = property
      properties[name] = kind ? {} : property
      if (kind) this.#any_json.set(name, { bytes_max: bytes_max!, object_only: kind === 'object' })
      else this.#typed.set(name, withNestedLimits(property))
    }
    this.#schema = { ...schema, properties } as TObject
  }

  /** Loads and compiles ahead of the first request. */
  async prepare(): Promise<Validator> {
    this.#compiling ??= compiler().then((Compile) => {
      this.#validator = Compile(this.#schema)
      return this.#validator
    })
    return this.#compiling
  }

  /**
   * The typed value of a body. Throws INVALID_JSON, VALIDATION_FAILED with every issue, PAYLOAD_TOO_LARGE for a
   * member. `ignored` gets the names of members that the schema does not know, as many as are shown. At once unless the
   * schema is still to be compiled.
   */
  body(bytes: Uint8Array, ignored: IgnoredNames): Awaitable<Static<S>> {
    if (bytes.length === 0 && this.#required.length === 0) return {} as Static<S>
    const members = membersOf(bytes, (name) => {
      if (this.#any_json.has(name) || this.#typed.has(name)) return true
      ignored.add(name)
      return false
    })
    const read: Read = { value: {}, issues: [], place_characters: 0 }
    for (const [name, text] of members) {
      const any_json = this.#any_json.get(name)
      if (any_json) readAnyJson(read, name, text, any_json)
      else readTyped(read, name, text, this.#typed.get(name)!)
    }
    return this.#checkedOnceCompiled(read, '/')
  }

  /** The typed value of a query string (without its `?`), as soon as `body`. A repeated name counts once, the last. */
  query(text: string): Awaitable<Static<S>> {
    const value: Record<string, unknown> = {}
    const issues: Issue[] = []
    for (const [name, raw] of new Map(text.split('&').map(splitPair))) {
      const schema = this.#typed.get(name)
      if (!schema) continue
      const decoded = percentDecoded(raw)
      if (decoded === null || !isPlainText(decoded))
        issues.push({ path: `query.${name}`, message: not_plain })
      else if (isFarTooLong(decoded, schema)) issues.push({ path: `query.${name}`, message: tooLong(schema) })
      else if (schema.type === 'integer') value[name] = integer_form.test(decoded) ? Number(decoded) : decoded
      else if (schema.type === 'number') value[name] = number_form.test(decoded) ? Number(decoded) : decoded
      else value[name] = decoded
    }
    return this.#checkedOnceCompiled({ value, issues }, 'query.')
  }

  /** `prefix`: what the path of an issue begins with, before the name of the member. */
  #checkedOnceCompiled(read: Pick<Read, 'value' | 'issues'>, prefix: string): Awaitable<Static<S>> {
    if (this.#validator) return this.#checked(this.#validator, read, prefix)
    return this.prepare().then((validator) => this.#checked(validator, read, prefix))
  }

  #checked(
    validator: Validator,
    { value, issues }: Pick<Read, 'value' | 'issues'>,
    prefix: string,
  ): Static<S> {
    if (issues.length === 0 && validator.Check(value)) return value as Static<S>
    const named = new Set(issues.map(({ path }) => path))
    for (const issue of issuesOf(validator, value, prefix)) {
      if (!named.has(issue.path)) issues.push(issue) // the first of a field is enough: 1.5 is not an integer, with any minimum
      named.add(issue.path)
    }
    throw invalid(...issues)
  }
}

/** An integer as people write one; 60.0 is one. */
const integer_form = /^-?\d+(\.0+)?$/

/** As JSON writes a number (RFC 8259 section 6). */
const number_form = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

function issuesOf(validator: Validator, value: unknown, prefix: string): Issue[] {
  return validator.Errors(value).flatMap((error) => {
    const params = error.params as {
      requiredProperties?: string[]
      additionalProperties?: unknown
      allowedValues?: unknown[]
    }
    if (params.requiredProperties) {
      return params.requiredProperties.map((name) => ({ path: prefix + name, message: 'is required' }))
    }
    const name = error.instancePath.slice(1)
    // Of an object that names all its members; the object itself is another error, which says no more.
    if (error.keyword === 'boolean') return [{ path: prefix + name, message: 'is not known' }]
    if (params.additionalProperties) return []
    const allowed = params.allowedValues ? ` (${params.allowedValues.join(', ')})` : ''
    return [{ path: prefix + name, message: error.message + allowed }]
  })
}
