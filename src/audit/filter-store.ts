// The filters of a list, and the choice of the one whose index is scanned.

import { type Reader, type Statement, sql } from '../db/db.ts'

/** The filters of the log, each with an index of its own. */
export const filter_names = ['workflow_id', 'action', 'actor'] as const
export type FilterName = (typeof filter_names)[number]
export type Filters = Partial<Record<FilterName, string>>

export interface Bounds {
  after_seq: number
  before_seq: number
}

interface Leader {
  name: FilterName
  /** The last of its next `looked_max` entries; null when it has no more than these. */
  reached: number | null
}

/**
 * The filter to scan by: of several, the one whose next `looked_max` entries reach back farthest. Null without filters.
 */
export async function leaderOf(
  q: Reader,
  tenant_id: string,
  filters: Filters,
  bounds: Bounds,
  looked_max: number,
): Promise<Leader | null> {
  const names = filterNames(filters)
  if (names.length < 2) return names.length === 0 ? null : { name: names[0]!, reached: null }
  const leaders: Leader[] = []
  for (const name of names) {
    const params = { tenant_id, [name]: filters[name]!, ...bounds, looked_max }
    const { seq, looked } = (await q.one(REACH[name], params))!
    if (looked < looked_max) return { name, reached: null }
    leaders.push({ name, reached: seq })
  }
  return leaders.reduce((best, leader) => (leader.reached! < best.reached! ? leader : best))
}

export function filterNames(filters: Filters): FilterName[] {
  return filter_names.filter((name) => filters[name] !== undefined)
}

// As ranges, and ordered by all columns of one index: with equal signs an engine may scan the log itself, and skip all
// entries for which the filter does not hold.
export const led = (name: FilterName) =>
  `${name} is not null and (tenant_id, ${name}, seq) > (:tenant_id, :${name}, :after_seq)
      and (tenant_id, ${name}, seq) < (:tenant_id, :${name}, :before_seq)`
export const orderOf = (name: FilterName) => `tenant_id desc, ${name} desc, seq desc`
export const indexOf = (name: FilterName) => `audit_entries_${name === 'workflow_id' ? 'workflow' : name}`

const REACH = Object.fromEntries(filter_names.map((name) => [name, reachStatement(name)])) as Record<
  FilterName,
  Statement<{ seq: number; looked: number }>
>

function reachStatement(name: FilterName) {
  return sql<{ seq: number; looked: number }>(
    `audit.reach_${name}`,
    `select min(seq) as seq, count(*) as looked
       from (select seq from audit_entries {by ${indexOf(name)}} where ${led(name)}
              order by ${orderOf(name)} limit :looked_max) as next_entries`,
  )
}
