// Lists of keys and of namespaces.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { beginOf, type TextRange } from '../base/text-range.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import { looked_max } from '../contract/page.ts'
import type { Reader } from '../db/db.ts'
import { behindForbidden, boundOf, isForbiddenNamespace, isReservedKey, type Place } from './entry.ts'
import * as store from './store.ts'

const scanned_rows_max = limit('kv.namespaces_passed', 500, 'rows', 'Rows that one page of namespaces reads.')

/**
 * Live keys of the range in bytewise order. `reached` is the last key that was scanned when too few live ones were found
 * to fill the page; null at the end of the range, or when there are `rows_max` of them.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  namespace: string,
  { prefix, after }: TextRange,
  now: Millis,
  rows_max: number,
): Promise<{ rows: store.ScannedRow[]; reached: string | null }> {
  const rows: store.ScannedRow[] = []
  let reached = after
  let looked = 0
  for (let step = rows_max; looked < looked_max; step = scanned_rows_max) {
    const begin = { namespace, key: beginOf({ prefix, after: reached }) }
    const scanned = await store.scan(q, tenant_id, begin, now, step)
    for (const row of scanned) {
      if (row.namespace !== namespace || !row.key.startsWith(prefix)) return { rows, reached: null }
      if (row.live === 1 && !isReservedKey(row.key)) rows.push(row)
      if (rows.length === rows_max) return { rows, reached: null }
    }
    if (scanned.length < step) return { rows, reached: null }
    looked += scanned.length
    reached = scanned.at(-1)!.key
  }
  return { rows, reached }
}

/**
 * Namespaces with a live key that the caller may read, in bytewise order: a look-up each, however many keys they hold. `next` is where the next page
 * begins, null at the end; a page is shorter than asked for when many keys have just expired or been deleted.
 */
export async function namespaces(
  q: Reader,
  caller: AgentCaller | AdminCaller,
  after: Place,
  now: Millis,
  names_max: number,
): Promise<{ names: string[]; next: Place | null }> {
  const names: string[] = []
  let place = after
  let skipped = 0
  let rows_max = 1
  while (skipped < looked_max) {
    const rows = await store.scan(q, caller.tenant_id, boundOf(place), now, rows_max)
    const found = rows.findIndex(
      ({ namespace, live }) => live === 1 || isForbiddenNamespace(namespace, caller),
    )
    if (found === -1) {
      if (rows.length < rows_max) return { names, next: null }
      skipped += rows.length
      place = rows.at(-1)!
      rows_max = scanned_rows_max
      continue
    }
    const { namespace } = rows[found]!
    skipped += found
    rows_max = 1
    if (isForbiddenNamespace(namespace, caller)) {
      place = behindForbidden(namespace, caller)
      continue
    }
    // The page is full, and there is a next one.
    if (names.length === names_max) return { names, next: { namespace: names.at(-1)!, key: null } }
    names.push(namespace)
    place = { namespace, key: null }
  }
  return { names, next: place }
}
