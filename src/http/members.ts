// The members of a body and the parameters of a query: each from its text to a value, or to an issue.

import { ApiError, type Issue, invalid } from '../base/errors.ts'
import { decodeUtf8, type Members, scanObject } from '../base/json.ts'
import { limit } from '../base/limit.ts'
import { RawJson } from '../contract/schemas.ts'
import { requireNestedRoom, type WithNestedLimits } from './nested-limits.ts'

/** A body or query, as far as it was read. */
export interface Read {
  value: Record<string, unknown>
  issues: Issue[]
  /** Of the places of the odd texts that are listed. */
  place_characters: number
}

export interface AnyJsonMember {
  bytes_max: number
  object_only: boolean
}

export interface Marks {
  'x-trim'?: boolean
  'x-any-json'?: 'any' | 'object'
  'x-bytes-max'?: number
  /** Null is a value of its own: see `OrNull`. */
  'x-null'?: boolean
}

/** The part of a schema that bounds how many parts a value has. */
interface Sized {
  maxItems?: number
  items?: Sized
  properties?: Record<string, Sized>
  additionalProperties?: unknown
}

const unknown_members_max = limit(
  'http.unknown_members',
  100,
  'entries',
  'Unknown members, within an object that allows none, that are listed one by one. An object with more is refused as a whole.',
)

const odd_texts_max = limit(
  'http.odd_texts',
  10_000,
  'entries',
  'Texts with NUL or a lone surrogate that are listed when a body is refused.',
)

const place_characters_max = limit(
  'http.odd_text_places',
  262_144,
  'characters',
  'Places of texts with NUL or a lone surrogate that are listed: each repeats the names that lead to it, which may be long. The first is listed in any case.',
)

const shown_place_characters_max = limit(
  'http.odd_text_place',
  1_024,
  'characters',
  'The place of one of these texts. A longer one is cut, because a name in it may be as long as the body.',
)

export const not_plain = 'must be well-formed text without NUL'

export function membersOf(bytes: Uint8Array, isWanted: (name: string) => boolean): Members {
  const text = decodeUtf8(bytes)
  if (text === null) throw new ApiError('INVALID_JSON')
  const scan = scanObject(text, isWanted)
  if (scan.ok) return scan.members
  if (scan.why === 'syntax') throw new ApiError('INVALID_JSON')
  throw invalid({
    path: '',
    message: scan.why === 'depth' ? 'is nested deeper than 64 levels' : 'must be an object',
  })
}

export function readAnyJson(
  { value, issues }: Read,
  name: string,
  text: string,
  { bytes_max, object_only }: AnyJsonMember,
): void {
  if (object_only && text === 'null') return
  if (object_only && text[0] !== '{') {
    issues.push({ path: `/${name}`, message: 'must be an object' })
    return
  }
  if (text.length * 3 > bytes_max && Buffer.byteLength(text) > bytes_max)
    throw new ApiError('PAYLOAD_TOO_LARGE')
  value[name] = new RawJson(text)
}

export function readTyped(
  read: Read,
  name: string,
  text: string,
  schema: Marks & Sized & WithNestedLimits & { maxLength?: number },
): void {
  const { value, issues } = read
  if (schema.nested_limits) requireNestedRoom(text, schema.nested_limits)
  const parsed: unknown = JSON.parse(text)
  if (parsed === null) {
    // In an optional field null counts as absent; a required one is then missing.
    if (schema['x-null']) value[name] = null
    return
  }
  const sized = withinSize(parsed, schema, `/${name}`, issues)
  if (sized === undefined) return
  const has_odd = addOddTexts(sized, [name], read)
  if (has_odd && typeof sized === 'string') return
  if (typeof sized === 'object') {
    value[name] = withoutNulls(sized!)
    return
  }
  const bytes_max = schema['x-bytes-max']
  if (bytes_max !== undefined && typeof sized === 'string' && Buffer.byteLength(sized) > bytes_max) {
    throw new ApiError('PAYLOAD_TOO_LARGE')
  }
  if (typeof sized === 'string' && isFarTooLong(sized, schema)) {
    issues.push({ path: `/${name}`, message: tooLong(schema) })
    return
  }
  value[name] = schema['x-trim'] && typeof sized === 'string' ? sized.trim() : sized
}

/**
 * The value without what is far larger than its schema allows, which is an issue: nothing then goes through each part of
 * it. Undefined when that is the whole value.
 */
function withinSize(value: unknown, schema: Sized, path: string, issues: Issue[]): unknown {
  if (Array.isArray(value)) {
    const { maxItems = value.length, items } = schema
    if (value.length > maxItems) {
      issues.push({ path, message: `must not have more than ${maxItems} items` })
      return undefined
    }
    if (!items?.properties) return value
    return value.map((item, i) => withinSize(item, items, `${path}/${i}`, issues) ?? null)
  }
  if (typeof value !== 'object' || value === null || !schema.properties) return value
  const known = Object.keys(schema.properties)
  if (
    schema.additionalProperties === false &&
    Object.keys(value).length > known.length + unknown_members_max
  ) {
    issues.push({ path, message: `must not have more than ${known.length} members` })
    return undefined
  }
  const members = value as Record<string, unknown>
  for (const name of known) {
    if (!Object.hasOwn(members, name)) continue
    const kept = withinSize(members[name], schema.properties[name]!, `${path}/${name}`, issues)
    if (kept === undefined) delete members[name]
  }
  return members
}

type Place = (string | number)[]

/** Notes where a value, or a part of it, is text that could not be stored. A path is made only for these. */
function addOddTexts(value: unknown, place: Place, read: Read): boolean {
  if (typeof value === 'string') {
    if (isPlainText(value)) return false
    addOddText(place, read)
    return true
  }
  if (typeof value !== 'object' || value === null) return false
  const depth = place.length
  let has_odd = false
  const look = (name: string | number, part: unknown) => {
    place[depth] = name
    if (addOddTexts(part, place, read)) has_odd = true
  }
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) look(i, value[i])
  else for (const name in value) look(name, (value as Record<string, unknown>)[name])
  place.length = depth
  return has_odd
}

function addOddText(place: Place, read: Read): void {
  if (read.issues.length >= odd_texts_max || read.place_characters > place_characters_max) return
  const path = `/${place.join('/')}`
  read.place_characters += path.length
  read.issues.push({ path: path.slice(0, shown_place_characters_max).toWellFormed(), message: not_plain })
}

/** In an object, too, null counts as absent. */
function withoutNulls(value: object): object {
  if (Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

/**
 * Longer than `maxLength` allows however it is counted, a character being two units at most: refused before a
 * pattern or a format reads a megabyte of it.
 */
export function isFarTooLong(
  text: string,
  { maxLength, 'x-trim': trimmed }: Marks & { maxLength?: number },
): boolean {
  return maxLength !== undefined && (trimmed ? text.trim() : text).length > 2 * maxLength
}

export function tooLong({ maxLength }: { maxLength?: number }): string {
  return `must not have more than ${maxLength} characters`
}

/** No NUL, which PostgreSQL refuses, and no lone surrogate, which UTF-8 cannot hold. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

export function splitPair(pair: string): [name: string, raw: string] {
  const at = pair.indexOf('=')
  return at === -1
    ? [percentDecoded(pair) ?? '', '']
    : [percentDecoded(pair.slice(0, at)) ?? '', pair.slice(at + 1)]
}

/** application/x-www-form-urlencoded (WHATWG URL), but strict: null for a bad escape or bytes that are not UTF-8. */
export function percentDecoded(raw: string): string | null {
  try {
    return decodeURIComponent(raw.replaceAll('+', ' '))
  } catch {
    return null
  }
}
