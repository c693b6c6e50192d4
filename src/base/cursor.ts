// Page cursors: opaque, signed, and bound to the tenant and the path that they were made for.

import { equalBytes, mac } from './seal.ts'

export type Position = (string | number)[]

/** Where a cursor is valid: one tenant, one path (`/v1/kv/state`). */
export interface CursorScope {
  key: Buffer
  tenant_id: string
  path: string
}

const tag_bytes = 12

export function encodeCursor(scope: CursorScope, position: Position): string {
  const text = JSON.stringify(position)
  return Buffer.concat([tagOf(scope, text), Buffer.from(text)]).toString('base64url')
}

/** The position, or null for a text that `encodeCursor` did not make in this scope. */
export function decodeCursor(scope: CursorScope, cursor: string): Position | null {
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length <= tag_bytes || bytes.toString('base64url') !== cursor) return null
  const text = bytes.subarray(tag_bytes).toString()
  return equalBytes(bytes.subarray(0, tag_bytes), tagOf(scope, text)) ? (JSON.parse(text) as Position) : null
}

function tagOf(scope: CursorScope, text: string): Buffer {
  return mac(scope.key, `${scope.tenant_id}\n${scope.path}\n${text}`).subarray(0, tag_bytes)
}
