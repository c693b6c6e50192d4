// A request body is read here without being parsed: any-JSON fields are stored as the text that came in, and
// JSON.parse would lose 30-digit numbers, 1e400, key order and duplicate keys.

import { limit } from './limit.ts'

/** How deep a body may nest; the body object itself is level 1. */
export const levels_max = limit('json.levels', 64, 'levels', 'How deeply a body may be nested. Past it 400.')

/**
 * Decoded member name -> the exact JSON text of its value. The texts are slices: while one of them is held,
 * so is the memory of the whole document.
 */
export type Members = Map<string, string>

export type Scan = { ok: true; members: Members } | { ok: false; why: 'syntax' | 'depth' | 'not_an_object' }

/**
 * Splits a JSON object into its members, after a strict check of the whole document (RFC 8259, sections 2-7).
 *
 * Each member's text runs from the first to the last character of its value, without the white space around
 * it. Of members with the same decoded name, the last one counts. Strings may hold escaped NULs and lone
 * surrogates (section 8.2); a caller that needs plain text has to refuse them.
 *
 * Never throws. What is not JSON is `syntax`, however deep it nests; then comes `not_an_object`; then
 * `depth`, for more than `levels` levels. Nesting takes no call stack.
 *
 * `isWanted` is asked for every member; what it refuses is not kept. A body of 1 MiB may have 100,000 members.
 */
export function scanObject(
  text: string,
  isWanted: (name: string) => boolean = always,
  levels: number = levels_max,
): Scan {
  const members: Members = new Map()
  const outer: number[] = []
  let closer = NONE
  let deepest = 0
  let name = ''
  let from = 0
  const top = pastSpace(text, 0)
  let at = top

  for (;;) {
    // Here a value begins, or inside an object the name before it.
    if (closer === CLOSE_OBJECT) {
      const name_end = codeAt(text, at) === QUOTE ? stringEnd(text, at) : BAD
      if (name_end === BAD) return { ok: false, why: 'syntax' }
      const colon = pastSpace(text, name_end)
      if (codeAt(text, colon) !== COLON) return { ok: false, why: 'syntax' }
      if (outer.length === 1) name = decodeName(text, at, name_end)
      at = pastSpace(text, colon + 1)
      if (outer.length === 1) from = at
    }

    const first = codeAt(text, at)
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
      outer.push(closer)
      closer = first + 2 // in ASCII, both closers stand two after their openers
      if (outer.length > deepest) deepest = outer.length
      at = pastSpace(text, at + 1)
      if (codeAt(text, at) !== closer) continue
      closer = outer.pop() ?? NONE
      at++
    } else {
      at = scalarEnd(text, at, first)
      if (at === BAD) return { ok: false, why: 'syntax' }
    }

    // Here a value has just ended; so may the containers around it.
    for (;;) {
      if (outer.length === 1 && closer === CLOSE_OBJECT && isWanted(name)) {
        members.set(name, text.slice(from, at))
      }
      at = pastSpace(text, at)
      const next = codeAt(text, at)
      if (closer === NONE) {
        if (next !== END) return { ok: false, why: 'syntax' }
        if (codeAt(text, top) !== OPEN_OBJECT) return { ok: false, why: 'not_an_object' }
        return deepest > levels ? { ok: false, why: 'depth' } : { ok: true, members }
      }
      if (next === COMMA) break
      if (next !== closer) return { ok: false, why: 'syntax' }
      closer = outer.pop() ?? NONE
      at++
    }
    at = pastSpace(text, at + 1)
  }
}

function always(): boolean {
  return true
}

/** The JSON text of a string. One that needs no escapes is half the price of JSON.stringify. */
export function quoted(text: string): string {
  return plain_string.test(text) ? `"${text}"` : JSON.stringify(text)
}

const plain_string = /^[ !#-[\]-~]{0,128}$/

/**
 * The text of strictly valid UTF-8 (RFC 3629), null for anything else. A byte order mark stays, as U+FEFF, so
 * that what follows is refused as a syntax error (RFC 8259, section 8.1, lets a parser refuse or ignore it).
 */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The end of the string, number or literal at `at`, or BAD. */
function scalarEnd(text: string, at: number, first: number): number {
  if (first === QUOTE) return stringEnd(text, at)
  if (first === MINUS || isDigit(first)) return numberEnd(text, at)
  if (first === LOWER_T && text.startsWith('true', at)) return at + 4
  if (first === LOWER_F && text.startsWith('false', at)) return at + 5
  if (first === LOWER_N && text.startsWith('null', at)) return at + 4
  return BAD
}

/** Section 7. `at` is the opening quote; the end is just past the closing one. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i + 1
    if (code < SPACE) return BAD
    if (code === BACKSLASH) {
      i = escapeEnd(text, i + 1)
      if (i === BAD) return BAD
    }
  }
  return BAD
}

/** `at` is the character after the backslash; the answer is the escape's last character. */
function escapeEnd(text: string, at: number): number {
  const code = codeAt(text, at)
  if (code !== LOWER_U) return isShortEscape(code) ? at : BAD
  for (let i = at + 1; i <= at + 4; i++) if (!isHexDigit(codeAt(text, i))) return BAD
  return at + 4
}

/** Section 6: no leading zero, no plus sign, digits on both sides of the point. */
function numberEnd(text: string, at: number): number {
  if (codeAt(text, at) === MINUS) at++
  at = codeAt(text, at) === ZERO ? at + 1 : digitsEnd(text, at)
  if (at !== BAD && codeAt(text, at) === POINT) at = digitsEnd(text, at + 1)
  if (at === BAD) return BAD
  const code = codeAt(text, at)
  if (code !== LOWER_E && code !== UPPER_E) return at
  const sign = codeAt(text, at + 1)
  return digitsEnd(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1)
}

/** Past one or more digits. */
function digitsEnd(text: string, at: number): number {
  let end = at
  while (isDigit(codeAt(text, end))) end++
  return end > at ? end : BAD
}

function decodeName(text: string, from: number, to: number): string {
  const plain = text.slice(from + 1, to - 1)
  return plain.includes('\\') ? JSON.parse(text.slice(from, to)) : plain
}

/** Section 2: these four and no other white space. */
function pastSpace(text: string, at: number): number {
  for (;;) {
    const code = codeAt(text, at)
    if (code !== SPACE && code !== LF && code !== CR && code !== TAB) return at
    at++
  }
}

/** charCodeAt gives NaN past the end, and one NaN seen makes the compiled loops two to four times slower. */
function codeAt(text: string, at: number): number {
  return at < text.length ? text.charCodeAt(at) : END
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

function isHexDigit(code: number): boolean {
  return isDigit(code) || (code >= UPPER_A && code <= UPPER_F) || (code >= LOWER_A && code <= LOWER_F)
}

function isShortEscape(code: number): boolean {
  return (
    code === LOWER_N ||
    code === QUOTE ||
    code === BACKSLASH ||
    code === SLASH ||
    code === LOWER_B ||
    code === LOWER_F ||
    code === LOWER_R ||
    code === LOWER_T
  )
}

const BAD = -1
const END = -1
const NONE = 0
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const SLASH = 0x2f
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_A = 0x41
const UPPER_E = 0x45
const UPPER_F = 0x46
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const LOWER_A = 0x61
const LOWER_B = 0x62
const LOWER_E = 0x65
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_R = 0x72
const LOWER_T = 0x74
const LOWER_U = 0x75
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
