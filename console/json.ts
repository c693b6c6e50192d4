// JSON as it is stored: opened one level at a time, never parsed as a whole, so that numbers keep their digits, members
// their order and their repeats, and a megabyte costs only what is looked at.

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

export interface JsonMember {
  /** The member's name, or its place in an array. */
  name: string
  /** Its value, as JSON text. */
  text: string
}

const [quote, backslash, comma, open_list, close_list, open_object, close_object] = [...'"\\,[]{}'].map((c) =>
  c.charCodeAt(0),
) as [number, number, number, number, number, number, number]

export function kindOf(text: string): JsonKind {
  const first = text[0]
  if (first === '{') return 'object'
  if (first === '[') return 'array'
  if (first === '"') return 'string'
  if (first === 'n') return 'null'
  return first === 't' || first === 'f' ? 'boolean' : 'number'
}

/** The members of an object, the items of an array. `text` is valid JSON without space around it. */
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

/** Past the closing quote of the string that begins here. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  for (;;) {
    const character = text.charCodeAt(at)
    if (character === quote || at >= text.length) return at + 1
    at += character === backslash ? 2 : 1
  }
}

function endOfValue(text: string, from: number): number {
  let at = from
  for (let depth = 0; at < text.length; ) {
    const character = text.charCodeAt(at)
    if (character === quote) at = endOfString(text, at)
    else if (character === open_list || character === open_object) {
      depth += 1
      at += 1
      continue
    } else if (character === close_list || character === close_object) {
      if (depth === 0) return at
      depth -= 1
      at += 1
    } else if (depth === 0 && (character === comma || character <= 32)) return at
    else {
      at += 1
      continue
    }
    if (depth === 0) return at
  }
  return at
}
