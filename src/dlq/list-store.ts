// Lists of dead letters, newest first.

import type { Millis } from '../base/clock.ts'
import { newestFirst } from '../base/ids.ts'
import type { PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk, ofStatus } from '../db/chunk.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'
import type { DlqStatus, ItemRow } from './item.ts'
import { claimable, listed, table } from './store.ts'

type Listed = ItemRow & { bytes: number }

/**
 * Newest first, without payloads; `status` as it is shown at `now`. `rows_max` at most, and none after the first
 * that takes them to `bytes_max`. `reached` is the last item that was scanned when too few of `looked_max` had this
 * status to fill the page; null at the end.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  status: DlqStatus | undefined,
  now: Millis,
  { looked_max, ...page }: PageOfIds & { looked_max: number },
): Promise<{ rows: Listed[]; reached: string | null }> {
  if (status !== 'failed' && status !== 'claimed') {
    const rows = await q.all(LIST[status ?? 'any'], { tenant_id, ...page })
    return { rows: rows.sort(newestFirst), reached: null }
  }
  const { id, looked } = (await q.one(REACH[status], { tenant_id, before_id: page.before_id, looked_max }))!
  const reached = looked === looked_max ? id : null
  const rows = await q.all(LIST[status], { tenant_id, ...page, from_id: reached ?? '', now })
  return { rows: rows.sort(newestFirst), reached }
}

const by_status = (status: DlqStatus) => ofStatus('dlq_items_status', `'${status}'`)
const scans = {
  any: { index: null, order: 'id desc', where: 'tenant_id = :tenant_id and id < :before_id' },
  failed: {
    index: 'dlq_items_open',
    order: 'tenant_id desc, id desc, status desc',
    where: `tenant_id = :tenant_id and status in ('failed', 'claimed') and id < :before_id`,
  },
  claimed: by_status('claimed'),
  resolved: by_status('resolved'),
  archived: by_status('archived'),
}

const LIST = {
  any: listStatement('any', ''),
  failed: listStatement('failed', `and id >= :from_id and ${claimable}`),
  claimed: listStatement('claimed', 'and id >= :from_id and locked_until > :now'),
  resolved: listStatement('resolved', ''),
  archived: listStatement('archived', ''),
}

function listStatement(status: DlqStatus | 'any', condition: string): Statement<Listed> {
  const { index, order, where } = scans[status]
  const texts = ['error', 'workflow_id']
  return sql(
    `dlq.list_${status}`,
    `select ${listed}, ${bytesOf(texts)} as bytes from dlq_items where ${inChunk({
      ...{ ...table, index, order, only_read: true, texts, where: `${where} ${condition}` },
    })}`,
  )
}

const REACH = { failed: reachStatement('failed'), claimed: reachStatement('claimed') }

function reachStatement(status: 'failed' | 'claimed') {
  const { index, order, where } = scans[status]
  return sql<{ id: string; looked: number }>(
    `dlq.reach_${status}`,
    `select min(id) as id, count(*) as looked
       from (select id from dlq_items {by ${index}} where ${where} order by ${order} limit :looked_max) as next_items`,
  )
}
