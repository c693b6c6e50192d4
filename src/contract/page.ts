// Keyset pages: one row more than the page holds is read, to see if there is a next page.

import { decodeCursor, encodeCursor, type Position } from '../base/cursor.ts'
import { invalid } from '../base/errors.ts'
import { past_all_ids } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from './caller.ts'
import { encode } from './encode.ts'
import type { Context } from './route.ts'
import { page_limit_default, page_limit_max, RawJson } from './schemas.ts'

export const page_bytes_max = limit(
  'pages.bytes',
  1_048_576,
  'bytes',
  'Bounds memory, and how long others wait: a page of a list ends before the item that would take its JSON past this. It has at least one item.',
)

export const looked_max = limit(
  'pages.looked_at_rows',
  500,
  'rows',
  'Bounds how long others wait: a page that has looked at this many rows without being full is short, or empty, with a cursor to continue.',
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
  /** Where they have `bytes`, a look that its bytes have ended has `bytes_max` of them at least. */
  rows: Row[]
  itemOf: (row: Row) => Item
  positionOf: (row: Row) => Position
  /** The position at which a look ended before the page was full; null when it reached the end. */
  reached?: Position | null
}

/** A page of what was found, `{items, next_cursor}`, with no more items than fit. */
export function pageOf<Row extends object, Item>(
  context: PageContext,
  request: PageRequest,
  { rows, itemOf, positionOf, reached = null }: Found<Row, Item>,
): { items: RawJson[]; next_cursor: string | null } {
  const page = new PageItems()
  for (const row of rows.slice(0, request.rows_max - 1)) if (!page.add(itemOf(row))) break
  const { items } = page
  const more = items.length < rows.length || bytesOf(rows) > page_bytes_max
  const next = more ? positionOf(rows[items.length - 1]!) : reached
  return pageUpTo(context, items, next, request.order)
}

/**
 * The first items, as many as fit into a page and one at least, each as its text: a control character of a row is six bytes
 * of a page.
 */
export class PageItems {
  readonly items: RawJson[] = []
  #bytes = 0

  /** False when it does not fit: the page ends before it. */
  add(item: unknown): boolean {
    const text = encode(item)
    this.#bytes += Buffer.byteLength(text) + 1 // a comma
    if (this.items.length > 0 && this.#bytes > page_bytes_max) return false
    this.items.push(new RawJson(text))
    return true
  }
}

/** Of the texts of rows as they are stored. */
function bytesOf(rows: { bytes?: number }[]): number {
  return rows.reduce((sum, { bytes = 0 }) => sum + bytes, 0)
}

/** A page with its own position of the next one; null when there is none. */
export function pageUpTo<Item>(context: PageContext, items: Item[], next: Position | null, order = '') {
  return { items, next_cursor: next && encodeCursor(scopeOf(context, order), next) }
}

function scopeOf({ caller, dependencies, path }: PageContext, order: string) {
  const of_order = order === '' ? '' : `?${order}`
  return { key: dependencies.keys.cursor, tenant_id: caller.tenant_id, path: path() + of_order }
}
