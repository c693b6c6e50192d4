// Lists of dead letters, newest first.

import type { Millis } from '../base/clock.ts'
import { newestFirst } from '../base/ids.ts'
import type { PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'
import { boundsOf, type Filter, isSelective } from './filter.ts'
import {
  conditions,
  eachScan,
  lookStatement,
  matchParams,
  orderOf,
  type ScanName,
  scanOf,
  scanParams,
  scans,
} from './filter-store.ts'
import type { ItemRow } from './item.ts'
import { listed, table } from './store.ts'

type Listed = ItemRow & { bytes: number }

/**
 * Newest first, without payloads; `status` as it is shown at `now`. `rows_max` at most, and none after the first
 * that takes them to `bytes_max`. `reached` is the last item that was scanned when too few of `looked_max` matched
 * to fill the page; null at the end.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  now: Millis,
  { looked_max, before_id: after, ...page }: PageOfIds & { looked_max: number },
): Promise<{ rows: Listed[]; reached: string | null }> {
  const name = scanOf(filter)
  const bounds = boundsOf(filter)
  const before_id = after < bounds.before_id ? after : bounds.before_id
  const range = { ...scanParams(tenant_id, filter), from_id: bounds.from_id, before_id }
  if (name !== 'failed' && name !== 'claimed' && !isSelective(filter)) {
    const rows = await q.all(LIST[name], { ...range, ...page })
    return { rows: rows.sort(newestFirst), reached: null }
  }
  const { id, looked } = (await q.one(REACH[name], { ...range, looked_max }))!
  const reached = looked === looked_max ? id : null
  const looked_at = { ...range, from_id: reached ?? range.from_id, ...page }
  const rows = isSelective(filter)
    ? await q.all(LIST_MATCHING[name], { ...looked_at, ...matchParams(filter, now) })
    : await q.all(LIST[name], { ...looked_at, now })
  return { rows: rows.sort(newestFirst), reached }
}

const LIST = eachScan((name) => listStatement(name, `list_${name}`, ''))
const LIST_MATCHING = eachScan((name) => listStatement(name, `list_${name}_matching`, `and ${conditions}`))

function listStatement(name: ScanName, statement: string, condition: string): Statement<Listed> {
  const { where, shown } = scans[name]
  const texts = ['error', 'workflow_id']
  const is_shown = shown === '1 = 1' ? '' : `and ${shown}`
  return sql(
    `dlq.${statement}`,
    `select ${listed}, ${bytesOf(texts)} as bytes from dlq_items where ${inChunk({
      ...{ ...table, index: scans[name].index, order: orderOf(scans[name], ' desc'), only_read: true, texts },
      where: `${where} ${is_shown} ${condition}`,
    })}`,
  )
}

const REACH = eachScan((name) => lookStatement(`reach_${name}`, scans[name], ' desc'))
