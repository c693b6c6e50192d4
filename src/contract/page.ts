// Keyset pages: one row more than the page holds is read, to see if there is a next page.

import { decodeCursor, encodeCursor, type Position } from '../base/cursor.ts'
import { invalid } from '../base/errors.ts'
import { past_all_ids } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from './caller.ts'
import type { Context } from './route.ts'
import { page_limit_default, page_limit_max } from './schemas.ts'

export const page_bytes_max = limit(
  'pages.bytes',
  1_048_576,
  'bytes',
  'Memory, and the time that others wait: a page of a list ends before the row that would take it past this. It has one row at least.',
)

export const looked_max = limit(
  'pages.looked_at_rows',
  500,
  'rows',
  'The time that others wait: a page that has looked at so many rows without being full is short, or empty, with a cursor to continue.',
)

export interface PageRequest {
  /** Rows to read: one more than the page holds. */
  rows_max: number
  /** Bytes to read: the row that passes this is the last, and shows that there are more. */
  bytes_max: number
  /** Where the page before ended; null on the first. */
  after: Position | null
  /** Of a list that has several: a cursor is valid in its own alone. Empty or absent: the first. */
  order?: string
}

type PageContext = Pick<Context<TenantFacts>, 'caller' | 'dependencies' | 'path'>

/** Throws VALIDATION_FAILED for a cursor that was not made for this path, order and tenant. */
export function pageRequest(
  context: PageContext,
  query: { limit?: number; cursor?: string },
  order = '',
): PageRequest {
  const items_max = Math.min(query.limit ?? page_limit_default, page_limit_max)
  const most = { rows_max: items_max + 1, bytes_max: page_bytes_max + 1, order }
  if (query.cursor === undefined) return { ...most, after: null }
  const after = decodeCursor(scopeOf(context, order), query.cursor)
  if (!after) throw invalid({ path: 'query.cursor', message: 'is not a cursor of this list' })
  return { ...most, after }
}

/** The part of a list by ids, newest first, that `pageRequest` asked for. */
export function pageOfIds({ rows_max, bytes_max, after }: PageRequest) {
  return { rows_max, bytes_max, before_id: after ? String(after[0]) : past_all_ids }
}

export type PageOfIds = ReturnType<typeof pageOfIds>

/** The rows that `pageRequest` asked for, and how they are shown. */
interface Found<Row, Item> {
  /** Where they have `bytes`, no more of them are shown than fit. */
  rows: Row[]
  itemOf: (row: Row) => Item
  positionOf: (row: Row) => Position
  /** The position at which a look ended before the page was full; null when it reached the end. */
  reached?: Position | null
}

/** A page of what was found, `{items, next_cursor}`. */
export function pageOf<Row extends object, Item>(
  context: PageContext,
  request: PageRequest,
  { rows, itemOf, positionOf, reached = null }: Found<Row, Item>,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, fitting(rows, request.rows_max - 1))
  const more = shown.length < rows.length || endedByBytes(rows)
  const next = more ? positionOf(shown.at(-1)!) : reached
  return pageUpTo(context, shown.map(itemOf), next, request.order)
}

/** A first row that alone is more than a page ends the look: whether others follow was not seen. */
function endedByBytes([first]: { bytes?: number }[]): boolean {
  return (first?.bytes ?? 0) > page_bytes_max
}

/** How many of the rows a page holds. */
function fitting(rows: { bytes?: number }[], rows_max: number): number {
  let bytes = 0
  for (let i = 0; i < rows.length && i < rows_max; i++) {
    bytes += rows[i]!.bytes ?? 0
    if (i > 0 && bytes > page_bytes_max) return i
  }
  return Math.min(rows.length, rows_max)
}

/** A page with its own position of the next one; null when there is none. */
export function pageUpTo<Item>(context: PageContext, items: Item[], next: Position | null, order = '') {
  return { items, next_cursor: next && encodeCursor(scopeOf(context, order), next) }
}

function scopeOf({ caller, dependencies, path }: PageContext, order: string) {
  const of_order = order === '' ? '' : `?${order}`
  return { key: dependencies.keys.cursor, tenant_id: caller.tenant_id, path: path() + of_order }
}
