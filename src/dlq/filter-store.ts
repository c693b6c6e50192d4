// Scans of dead letters by a filter. Each walks one index, and checks the rest of the filter in its rows: a look is
// bounded by the rows that it passes, whatever it finds.

import type { Millis } from '../base/clock.ts'
import { of_shard, type Params, sql } from '../db/db.ts'
import type { Filter } from './filter.ts'
import type { DlqStatus } from './item.ts'
import { claimable } from './store.ts'

/** An index that is walked, and the rows of it between `:from_id` and `:before_id`. */
export interface Scan {
  index: string | null
  /** The columns of the index that decide the order. */
  columns: readonly string[]
  where: string
  /** Holds for those of the rows that are asked for. */
  shown: string
}

const is_claimed = `status = 'claimed' and locked_until > :now`

export const scans = {
  any: {
    index: null,
    columns: ['id'],
    where: 'tenant_id = :tenant_id and id >= :from_id and id < :before_id',
    shown: '1 = 1',
  },
  failed: {
    index: 'dlq_items_open',
    columns: ['tenant_id', 'id', 'status'],
    where: `tenant_id = :tenant_id and status in ('failed', 'claimed') and id >= :from_id and id < :before_id`,
    shown: claimable,
  },
  claimed: {
    ...between('status is not null', 'status', 'dlq_items_status', `'claimed'`),
    shown: 'locked_until > :now',
  },
  resolved: { ...between('status is not null', 'status', 'dlq_items_status', `'resolved'`), shown: '1 = 1' },
  archived: { ...between('status is not null', 'status', 'dlq_items_status', `'archived'`), shown: '1 = 1' },
  /** Failed ones of a cause. */
  cause: {
    ...between(`status in ('failed', 'claimed')`, 'cause', 'dlq_items_cause', ':cause'),
    shown: claimable,
  },
  source_id: {
    ...between('source_id is not null', 'source_id', 'dlq_items_source_id', ':source_id'),
    shown: `(:status = 'any' or (:status = 'failed' and ${claimable}) or (:status = 'claimed' and ${is_claimed})
          or (status = :status and status in ('resolved', 'archived')))`,
  },
} as const satisfies Record<string, Scan>

export type ScanName = keyof typeof scans

// As ranges: with equal signs PostgreSQL may walk an index without the column, and pass all rows of another value.
function between(indexed: string, column: string, index: string, value: string) {
  const place = `(tenant_id, ${column}, id)`
  return {
    index,
    columns: ['tenant_id', column, 'id'],
    where: `${of_shard} ${indexed} and ${place} >= (:tenant_id, ${value}, :from_id)
        and ${place} < (:tenant_id, ${value}, :before_id)`,
  }
}

export function orderOf({ columns }: Scan, direction: '' | ' desc'): string {
  return columns.map((column) => column + direction).join(', ')
}

export const eachScan = <T>(make: (name: ScanName) => T) =>
  Object.fromEntries((Object.keys(scans) as ScanName[]).map((name) => [name, make(name)])) as Record<
    ScanName,
    T
  >

export function byIndex({ index }: Scan): string {
  return index === null ? '' : `{by ${index}}`
}

/** The place at which a look at the next `:looked_max` rows ends, and their number; null when there is none. */
export function lookStatement(statement: string, scan: Scan, direction: '' | ' desc') {
  return sql<{ id: string | null; looked: number }>(
    `dlq.${statement}`,
    `select ${direction === '' ? 'max' : 'min'}(id) as id, count(*) as looked
       from (select id from dlq_items ${byIndex(scan)} where ${scan.where}
              order by ${orderOf(scan, direction)} limit :looked_max) as next_items`,
  )
}

/** The part of a filter that no index leads to. */
export const conditions = `(:any_source = 1 or source = :source) and (:any_cause = 1 or cause = :cause)
        and (:any_workflow_id = 1 or workflow_id = :workflow_id)`

/** The scan for a filter. Few rows have the same source_id. */
export function scanOf({ status, source_id, cause }: Filter): ScanName {
  if (source_id !== undefined) return 'source_id'
  return status === 'failed' && cause !== undefined ? 'cause' : (status ?? 'any')
}

/** The parameters of `where` are in these, save the bounds of ids. */
export function scanParams(tenant_id: string, filter: Filter): Params {
  const name = scanOf(filter)
  return name === 'cause' || name === 'source_id' ? { tenant_id, [name]: filter[name]! } : { tenant_id }
}

/** The parameters of `shown` and of `conditions`. */
export function matchParams({ status, source, cause, workflow_id, source_id }: Filter, now: Millis): Params {
  const seen: Params =
    source_id === undefined ? {} : { status: status ?? ('any' satisfies DlqStatus | 'any') }
  return {
    ...seen,
    now,
    any_source: source === undefined ? 1 : 0,
    source: source ?? '',
    any_cause: cause === undefined ? 1 : 0,
    cause: cause ?? '',
    any_workflow_id: workflow_id === undefined ? 1 : 0,
    workflow_id: workflow_id ?? '',
  }
}
