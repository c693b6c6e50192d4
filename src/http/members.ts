// The members of a body and the parameters of a query: each from its text to a value, or to an issue.

import { ApiError, type Issue, invalid } from '../base/errors.ts'
import { decodeUtf8, type Members, scanObject } from '../base/json.ts'
import { RawJson } from '../contract/schemas.ts'

/** A body or query, as far as it was read. */
export interface Read {
  value: Record<string, unknown>
  issues: Issue[]
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
  { value, issues }: Read,
  name: string,
  text: string,
  schema: Marks & { maxLength?: number },
): void {
  const parsed: unknown = JSON.parse(text)
  if (parsed === null) {
    // In an optional field null counts as absent; a required one is then missing.
    if (schema['x-null']) value[name] = null
    return
  }
  const odd = pathsOfOddText(parsed, `/${name}`)
  if (odd.length > 0) {
    for (const path of odd) issues.push({ path, message: not_plain })
    if (typeof parsed === 'string') return
  }
  if (typeof parsed === 'object') {
    value[name] = withoutNulls(parsed)
    return
  }
  const bytes_max = schema['x-bytes-max']
  if (bytes_max !== undefined && typeof parsed === 'string' && Buffer.byteLength(parsed) > bytes_max) {
    throw new ApiError('PAYLOAD_TOO_LARGE')
  }
  if (typeof parsed === 'string' && isFarTooLong(parsed, schema)) {
    issues.push({ path: `/${name}`, message: tooLong(schema) })
    return
  }
  value[name] = schema['x-trim'] && typeof parsed === 'string' ? parsed.trim() : parsed
}

/** Where a value, or a member of it, is text that could not be stored. */
function pathsOfOddText(value: unknown, path: string): string[] {
  if (typeof value === 'string') return isPlainText(value) ? [] : [path]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => pathsOfOddText(member, `${path}/${name}`))
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
