// Statements on the causes of dead letters.

import type { Millis } from '../base/clock.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'
import { boundsOf } from './filter.ts'
import { byIndex, orderOf, scans } from './filter-store.ts'
import type { DlqStatus, ItemRow } from './item.ts'

interface CauseRow {
  cause: string
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
  const { where, shown } = scans[status]
  return sql(
    `dlq.causes_${status}`,
    `select cause, source, shown, count(*) as letters, min(id) as oldest_id, max(id) as latest_id
       from (select id, cause, source, case when ${shown} then 1 else 0 end as shown
               from dlq_items ${byIndex(scans[status])} where ${where}
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
