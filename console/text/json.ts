// JSON as it is stored. It is opened one level at a time and never parsed as a whole: numbers keep their digits, members
// their order and their repeats, and a megabyte costs only the part that is shown.

import { memberText } from '../../sdk/src/json.ts'

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

export function kindOf(text: string): JsonKind {
  const first = text[0]
  if (first === '{') return 'object'
  if (first === '[') return 'array'
  if (first === '"') return 'string'
  if (first === 'n') return 'null'
  return first === 't' || first === 'f' ? 'boolean' : 'number'
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The exact text of a member of an answer; null when its value is JSON null, by which an answer also says that it has none. */
export function exactMember(answer: string, name: string): string | null {
  const text = memberText(answer, name)
  return text === undefined || text === 'null' ? null : text
}

/** The SHA-256 of the four bytes `null`. */
const null_hash = '74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b'

/** The exact text of a payload by its hash: `null` for JSON null, and null for one that was removed. */
export function payloadText(member: string | null, hash: string): string | null {
  return member === null && hash === null_hash ? 'null' : member
}
