// The body of a message: its bytes, and the kinds of text they may be.

import { isJson } from '../text/json.ts'

export type BodyKind = 'json' | 'form' | 'text' | 'hex'

export interface Body {
  bytes: Uint8Array
  /** Null when the bytes are not UTF-8. */
  text: string | null
  /** The ways to show it, the best first. Empty without a body. */
  kinds: BodyKind[]
}

export function bodyOf(base64: string, content_type: string): Body {
  const bytes = bytesOf(base64)
  const text = textOf(bytes)
  if (bytes.length === 0) return { bytes, text, kinds: [] }
  if (text === null || text.includes('\0')) return { bytes, text, kinds: ['hex'] }
  if (saysJson(text, content_type)) return { bytes, text, kinds: ['json', 'text', 'hex'] }
  if (form_type.test(content_type)) return { bytes, text, kinds: ['form', 'text', 'hex'] }
  return { bytes, text, kinds: ['text', 'hex'] }
}

const form_type = /^\s*application\/x-www-form-urlencoded\s*(;|$)/i
const json_type = /^\s*(application\/json|text\/json|[^/\s;]+\/[^/\s;]+\+json)\s*(;|$)/i

function bytesOf(base64: string): Uint8Array {
  const binary = atob(base64)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at)
  return bytes
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

function saysJson(text: string, content_type: string): boolean {
  const first = /[^ \t\r\n]/.exec(text)?.[0]
  return (first === '{' || first === '[' || json_type.test(content_type)) && isJson(text)
}

export const hex_row_bytes = 16

/** `00000010  48 65 6c 6c 6f …  |Hello…|`, this many rows. */
export function hexOf(bytes: Uint8Array, rows_max: number): string {
  const rows: string[] = []
  for (let at = 0; at < bytes.length && rows.length < rows_max; at += hex_row_bytes) {
    const row = [...bytes.subarray(at, at + hex_row_bytes)]
    const digits = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const signs = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    rows.push(`${at.toString(16).padStart(8, '0')}  ${digits.padEnd(hex_row_bytes * 3 - 1)}  |${signs}|`)
  }
  return rows.join('\n')
}
