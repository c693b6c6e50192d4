// Statements on the causes of dead letters.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql, type Tx } from '../db/db.ts'
import { boundsOf } from './filter.ts'
import { orderOf, scans } from './filter-store.ts'
import type { DlqStatus, ItemRow } from './item.ts'
import { table } from './store.ts'

interface CauseRow {
  cause: string | null
  source: ItemRow['source']
  /** 0: another status than the one that was asked for, at this time. */
  shown: 0 | 1
  letters: number
  oldest_id: string
  latest_id: string
}

const CAUSES = {
  failed: causesStatement('failed'),
  claimed: causesStatement('claimed'),
  resolved: causesStatement('resolved'),
  archived: causesStatement('archived'),
}

function causesStatement(status: DlqStatus): Statement<CauseRow> {
  const { index, where, shown } = scans[status]
  return sql(
    `dlq.causes_${status}`,
    `select cause, source, shown, count(*) as letters, min(id) as oldest_id, max(id) as latest_id
       from (select id, cause, source, case when ${shown} then 1 else 0 end as shown
               from dlq_items {by ${index}} where ${where}
              order by ${orderOf(scans[status], ' desc')} limit :looked_max) as next_items
      group by cause, source, shown`,
  )
}

/** The causes of the newest `looked_max` items of this status, in no order. */
export function causes(q: Reader, tenant_id: string, status: DlqStatus, now: Millis, looked_max: number) {
  const params = { tenant_id, ...boundsOf({}), looked_max }
  const by_time = status === 'failed' || status === 'claimed'
  return q.all(CAUSES[status], by_time ? { ...params, now } : params)
}

// As much of the error as its first line may need.
const UNCAUSED = sql<{ tenant_id: string; id: string; error: string }>(
  'dlq.uncaused',
  `select tenant_id, id, substr(error, 1, 2000) as error from dlq_items where ${inChunk({
    ...{ ...table, index: 'dlq_items_uncaused', order: table.key, only_read: true, where: 'cause is null' },
  })}`,
)

const SET_CAUSE = sql(
  'dlq.set_cause',
  'update dlq_items set cause = :cause where tenant_id = :tenant_id and id = :id and cause is null',
)

/** Items from before there were causes, with the beginning of their error. */
export function uncaused(q: Reader, rows_max: number, bytes_max: number) {
  return q.all(UNCAUSED, { rows_max, bytes_max })
}

export function setCause(tx: Tx, tenant_id: string, id: string, cause: string) {
  return tx.run(SET_CAUSE, { tenant_id, id, cause })
}
