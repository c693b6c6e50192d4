// JSON as text, for numbers that a double does not hold.

import { isMadeBy } from './copies.ts'

/** JSON text that is sent as it stands, wherever a value is taken: `new RawJson('123456789012345678901')`. */
export class RawJson {
  /** @internal */
  static readonly waystation_class = 'RawJson'

  /** Throws SyntaxError when the text is not JSON. */
  constructor(readonly text: string) {
    JSON.parse(text)
  }
}

/** As ES2026 has it; the types, and older runtimes, do not know it yet. */
const { isRawJSON } = JSON as { isRawJSON?: (value: unknown) => value is { rawJSON: string } }

/**
 * As JSON.stringify, save that RawJson is written as its text and a bigint with all its digits. Throws TypeError for what has no
 * JSON, NaN and Infinity included.
 */
export function encodeJson(value: unknown): string {
  const text = isNotFinite(value) ? undefined : textOf(value)
  if (text === undefined) throw new TypeError(`${String(value)} is not a JSON value`)
  return text
}

/** NaN or Infinity. */
export function isNotFinite(value: unknown): boolean {
  return typeof value === 'number' && !Number.isFinite(value)
}

/** `name`: of the member that has it, its index in an array, empty for the whole value. */
function textOf(given: unknown, name = ''): string | undefined {
  const value = replaced(given, name)
  if (isMadeBy(RawJson, value)) return value.text
  if (typeof value === 'bigint') return String(value)
  if (isRawJSON?.(value)) return value.rawJSON
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) {
    return `[${Array.from(value, (item, index) => textOf(item, String(index)) ?? 'null').join(',')}]`
  }
  if (isBoxed(value)) return JSON.stringify(value)
  const members = Object.entries(value).flatMap(([name, member]) => {
    const text = textOf(member, name)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${members.join(',')}}`
}

/** The value, or the one that its toJSON returns. That one is not asked again: it may be the value itself, or a copy of it. */
function replaced(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  return 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON(name) : value
}

function isBoxed(value: object): boolean {
  return value instanceof String || value instanceof Number || value instanceof Boolean
}

/** The exact text of a member of a JSON object, of the last one of that name; undefined when it has none. */
export function memberText(object: string, name: string): string | undefined {
  let found: string | undefined
  for (const member of membersOf(object.trim())) if (member.name === name) found = member.text
  return found
}

export interface JsonMember {
  /** The member's name, or its index in an array. */
  name: string
  /** Its value, as JSON text. */
  text: string
}

/** The members of an object, the items of an array, in their order. `text` is valid JSON without space around it. */
export function membersOf(text: string): JsonMember[] {
  const is_object = text[0] === '{'
  const members: JsonMember[] = []
  let at = skipSpace(text, 1)
  while (at < text.length - 1) {
    let name = String(members.length)
    if (is_object) {
      const end = endOfString(text, at)
      name = JSON.parse(text.slice(at, end)) as string
      at = skipSpace(text, skipSpace(text, end) + 1)
    }
    const end = endOfValue(text, at)
    members.push({ name, text: text.slice(at, end) })
    at = skipSpace(text, skipSpace(text, end) + 1)
  }
  return members
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && text.charCodeAt(at) <= 32) at += 1
  return at
}

const [quote, backslash, comma, open_list, close_list, open_object, close_object] = [...'"\\,[]{}'].map((c) =>
  c.charCodeAt(0),
) as [number, number, number, number, number, number, number]

/** The position after the closing quote of the string that begins here. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  for (;;) {
    const character = text.charCodeAt(at)
    if (character === quote || at >= text.length) return at + 1
    at += character === backslash ? 2 : 1
  }
}

function endOfValue(text: string, from: number): number {
  let depth = 0
  let at = from
  while (at < text.length) {
    const character = text.charCodeAt(at)
    if (character === quote) {
      at = endOfString(text, at)
      if (depth === 0) return at
      continue
    }
    const closes = character === close_list || character === close_object
    if (depth === 0 && (closes || character === comma || character <= 32)) return at
    if (character === open_list || character === open_object) depth += 1
    if (closes) depth -= 1
    at += 1
    if (depth === 0 && closes) return at
  }
  return at
}
