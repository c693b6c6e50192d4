// Keyset pages: one row more than asked for tells whether there is a next one.

import { decodeCursor, encodeCursor, type Position } from '../base/cursor.ts'
import { invalid } from '../base/errors.ts'
import type { TenantFacts } from './caller.ts'
import type { Context } from './route.ts'
import { page_limit_default, page_limit_max } from './schemas.ts'

export interface PageRequest {
  /** Rows to read: one more than the page holds. */
  rows_max: number
  /** Where the page before ended; null on the first. */
  after: Position | null
}

type PageContext = Pick<Context<TenantFacts>, 'caller' | 'services' | 'path'>

/** Throws VALIDATION_FAILED for a cursor that this path did not give to this tenant. */
export function pageRequest(context: PageContext, query: { limit?: number; cursor?: string }): PageRequest {
  const limit = Math.min(query.limit ?? page_limit_default, page_limit_max)
  if (query.cursor === undefined) return { rows_max: limit + 1, after: null }
  const after = decodeCursor(scopeOf(context), query.cursor)
  if (!after) throw invalid({ path: 'query.cursor', message: 'is not a cursor of this list' })
  return { rows_max: limit + 1, after }
}

/** `{items, next_cursor}` from the rows that `pageRequest` asked for. */
export function pageOf<Row, Item>(
  context: PageContext,
  request: PageRequest,
  rows: Row[],
  itemOf: (row: Row) => Item,
  positionOf: (row: Row) => Position,
): { items: Item[]; next_cursor: string | null } {
  const full = rows.length === request.rows_max
  const shown = full ? rows.slice(0, -1) : rows
  return pageUpTo(context, shown.map(itemOf), full ? positionOf(shown.at(-1)!) : null)
}

/** A page that says itself where the next one begins; null: there is none. */
export function pageUpTo<Item>(context: PageContext, items: Item[], next: Position | null) {
  return { items, next_cursor: next && encodeCursor(scopeOf(context), next) }
}

function scopeOf({ caller, services, path }: PageContext) {
  return { key: services.cursor_key, tenant_id: caller.tenant_id, path: path() }
}
