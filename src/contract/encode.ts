// Answers as text. Stored JSON is joined in as it is; nothing of it is parsed.

import { quoted } from '../base/json.ts'
import { RawJson } from './schemas.ts'

/** JSON text of an answer. Field names are our own and need no escaping. */
export function encode(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(encode).join(',')}]`
  let text = ''
  for (const name in value) {
    const field = (value as Record<string, unknown>)[name]
    text += `${text === '' ? '{' : ','}"${name}":${encode(field)}`
  }
  return text === '' ? '{}' : `${text}}`
}
