// The text of an event that its leaf is made of: JSON by RFC 8785.

import { Refused } from './refused.ts'

/** Members sorted by their UTF-16 code units, no white space. Throws for what an event never holds: fractions, large numbers, lists. */
export function canonical(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return textOf(value)
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || Object.is(value, -0))
      throw new Refused(`an event holds ${value}, which is not a whole number`)
    return String(value)
  }
  if (typeof value !== 'object' || Array.isArray(value)) throw new Refused('an event holds a list')
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${textOf(name)}:${canonical(member)}`).join(',')}}`
}

function textOf(text: string): string {
  if (!text.isWellFormed()) throw new Refused('an event holds half a character')
  return JSON.stringify(text)
}
