// The filters of a list, and the choice of the one whose index is scanned.

import { of_shard, type Reader, type Statement, sql } from '../db/db.ts'

/** The filters by a whole text, each with an index of its own. */
export const filter_names = ['workflow_id', 'action', 'actor'] as const
export type FilterName = (typeof filter_names)[number]
export type Filters = Partial<Record<FilterName | 'action_prefix' | 'agent_id', string>>

export interface Bounds {
  after_seq: number
  before_seq: number
}

export interface Scan {
  /** Null: the log itself. */
  name: FilterName | null
  /** The last of its next `looked_max` entries; null when it has no more than these, or when all it has are shown. */
  reached: number | null
}

/** True with a filter that has no index: the entries themselves are looked at. */
function looksAtEntries({ action_prefix, agent_id }: Filters): boolean {
  return action_prefix !== undefined || agent_id !== undefined
}

/** True when a scan by this filter, or of the log for null, checks others. */
export function isFiltered(name: FilterName | null, filters: Filters): boolean {
  return looksAtEntries(filters) || filterNames(filters).some((other) => other !== name)
}

/**
 * The filter to scan by: of several, the one whose next `looked_max` entries reach back farthest. The log itself when
 * there is none.
 */
export async function scanOf(
  q: Reader,
  tenant_id: string,
  filters: Filters,
  bounds: Bounds,
  looked_max: number,
): Promise<Scan> {
  const names = filterNames(filters)
  const [first = null] = names
  if (!isFiltered(first, filters)) return { name: first, reached: null }
  const scans: { name: FilterName | null; reached: number }[] = []
  for (const name of names.length === 0 ? [null] : names) {
    const own = name === null ? {} : { [name]: filters[name]! }
    const { seq, looked } = (await q.one(REACH[name ?? 'log'], { tenant_id, ...own, ...bounds, looked_max }))!
    if (looked < looked_max) return { name, reached: null }
    scans.push({ name, reached: seq })
  }
  return scans.reduce((best, scan) => (scan.reached < best.reached ? scan : best))
}

function filterNames(filters: Filters): FilterName[] {
  return filter_names.filter((name) => filters[name] !== undefined)
}

// As ranges, and ordered by all columns of one index: with equal signs an engine may scan the log itself, and skip all
// entries for which the filter does not hold.
export const led = (name: FilterName) =>
  `${of_shard} ${name} is not null and (tenant_id, ${name}, seq) > (:tenant_id, :${name}, :after_seq)
      and (tenant_id, ${name}, seq) < (:tenant_id, :${name}, :before_seq)`
export const orderOf = (name: FilterName) => `tenant_id desc, ${name} desc, seq desc`
export const indexOf = (name: FilterName) => `audit_entries_${name.replace('_id', '')}`
export const in_log = 'tenant_id = :tenant_id and seq > :after_seq and seq < :before_seq'
export const log_order = 'tenant_id desc, seq desc'

type Reached = Statement<{ seq: number; looked: number }>

const REACH = {
  log: reachStatement('log', '', in_log, log_order),
  ...(Object.fromEntries(
    filter_names.map((name) => [
      name,
      reachStatement(name, `{by ${indexOf(name)}}`, led(name), orderOf(name)),
    ]),
  ) as Record<FilterName, Reached>),
}

function reachStatement(name: string, by: string, where: string, order: string): Reached {
  return sql(
    `audit.reach_${name}`,
    `select min(seq) as seq, count(*) as looked
       from (select seq from audit_entries ${by} where ${where}
              order by ${order} limit :looked_max) as next_entries`,
  )
}
