// Lists of entries, newest first, with any set of filters.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Params, type Reader, type Statement, sql } from '../db/db.ts'
import {
  type Bounds,
  type FilterName,
  type Filters,
  filter_names,
  in_log,
  indexOf,
  isFiltered,
  led,
  log_order,
  orderOf,
  scanOf,
} from './filter-store.ts'
import { charactersOf, type ListedRow, listOfActions, merged_max, texts } from './merge-store.ts'
import { columns } from './store.ts'
import { valuesOf } from './values-store.ts'

export interface Range {
  filters: Filters
  /** From this instant on. */
  from?: Millis
  /** Before this instant. */
  to?: Millis
  /** Only entries with a smaller seq: where the page before ended. */
  before_seq?: number
}

// The first entries are few enough to be of any size: only when they are small are the others measured as well.
const first_rows_max = limit(
  'audit.first_rows',
  32,
  'rows',
  'Entries of a page that are read whatever their size; further ones only while these are small.',
)

export interface Listed {
  rows: ListedRow[]
  /** The last seq that was scanned when the page is not full; null: all were. */
  reached: number | null
}

interface Most {
  rows_max: number
  bytes_max: number
  looked_max: number
}

/**
 * Newest first, `rows_max` at most, and none after the first that takes them to `bytes_max`. Of several filters the
 * index of one is scanned (filter-store.ts): only when each is frequent does the scan end before the page is full.
 */
export async function list(q: Reader, tenant_id: string, range: Range, most: Most): Promise<Listed> {
  const filters = await settled(q, tenant_id, range.filters)
  if (!filters) return { rows: [], reached: null }
  const bounds = await boundsOf(q, tenant_id, range)
  if (filters.merges) {
    const rows = await listOfActions(q, tenant_id, filters.action_prefix!, { ...bounds, ...most })
    return { rows: newestFirst(rows), reached: null }
  }
  return scanned(q, tenant_id, filters, bounds, most)
}

/**
 * The filters, with the action instead of a prefix with which only one begins. `merges`: nothing but the prefix of a few
 * actions. Null when no entry can match.
 */
async function settled(
  q: Reader,
  tenant_id: string,
  filters: Filters,
): Promise<(Filters & { merges?: boolean }) | null> {
  const { action_prefix = '', ...others } = filters
  if (action_prefix === '') return others
  if (others.action !== undefined) return others.action.startsWith(action_prefix) ? others : null
  const place = { prefix: action_prefix, after: null }
  const actions = await valuesOf(q, tenant_id, 'action', place, merged_max + 1)
  if (actions.length === 0) return null
  if (actions.length === 1) return { ...others, action: actions[0]! }
  return { ...filters, merges: actions.length <= merged_max && !isFiltered(null, others) }
}

async function scanned(
  q: Reader,
  tenant_id: string,
  filters: Filters,
  bounds: Bounds,
  { rows_max, bytes_max, looked_max }: Most,
): Promise<Listed> {
  const { name, reached } = await scanOf(q, tenant_id, filters, bounds, looked_max)
  const statement = LISTS[name ?? 'log'][isFiltered(name, filters) ? 'filtered' : 'plain']
  const after_seq = reached === null ? bounds.after_seq : Math.max(bounds.after_seq, reached - 1)
  const params = {
    tenant_id,
    ...given(filters),
    ...prefixOf(filters.action_prefix),
    ...bounds,
    after_seq,
    bytes_max,
  }
  const few = Math.min(rows_max, first_rows_max)
  const first = await q.all(statement, { ...params, rows_max: few })
  if (first.length < few || few === rows_max || sizeOf(first) >= bytes_max)
    return { rows: newestFirst(first), reached }
  return { rows: newestFirst(await q.all(statement, { ...params, rows_max })), reached }
}

/** Each filter, and 0 for one that is absent. */
function given(filters: Filters): Params {
  return Object.fromEntries(
    [...filter_names, 'agent_id' as const].flatMap((name) => [
      [name, filters[name] ?? ''],
      [`has_${name}`, filters[name] === undefined ? 0 : 1],
    ]),
  )
}

function prefixOf(action_prefix = '') {
  return { action_prefix, prefix_characters: charactersOf(action_prefix) }
}

async function boundsOf(q: Reader, tenant_id: string, range: Range): Promise<Bounds> {
  const { from, to, before_seq = past_all_seqs } = range
  const after_seq = from === undefined ? 0 : (await firstAt(q, tenant_id, from)) - 1
  const end = to === undefined ? past_all_seqs : await firstAt(q, tenant_id, to)
  return { after_seq, before_seq: Math.min(before_seq, end) }
}

const past_all_seqs = Number.MAX_SAFE_INTEGER

// seq has no gaps, and created_at rises with it: halving the log finds the position in some twenty reads. In order,
// so that PostgreSQL has no other index to choose.
const at_middle = `(select created_at from audit_entries
                 where tenant_id = :tenant_id and seq >= (before_it + from_it) / 2 order by seq limit 1) < :at`
const FIRST_AT = sql<{ seq: number }>(
  'audit.first_at',
  `select min(from_it) as seq
     from
       (with recursive halves (before_it, from_it) as
          (select last_seq - last_seq, last_seq + 1
             from (select coalesce((select seq from audit_entries
                                     where tenant_id = :tenant_id order by seq desc limit 1), 0) as last_seq) as ends
           union all
           select case when ${at_middle} then (before_it + from_it) / 2 else before_it end,
                  case when ${at_middle} then from_it else (before_it + from_it) / 2 end
             from halves where from_it - before_it > 1)
        select from_it from halves) as found`,
)

/** The first entry of this instant, or after it; the next that will be when there is none. */
async function firstAt(q: Reader, tenant_id: string, at: Millis): Promise<number> {
  return (await q.one(FIRST_AT, { tenant_id, at }))!.seq
}

type ListStatement = Statement<ListedRow>

/** By each filter alone, and with others that are checked; the same for the whole log. */
const LISTS = Object.fromEntries(
  [null, ...filter_names].map((name) => [
    name ?? 'log',
    { plain: listStatement(name, []), filtered: listStatement(name, checksBeside(name)) },
  ]),
) as Record<FilterName | 'log', { plain: ListStatement; filtered: ListStatement }>

/** Conditions that hold where their filter is absent. Beside a whole action there is no prefix. */
function checksBeside(scanned: FilterName | null): string[] {
  const begins = `and (:prefix_characters = 0 or substr(action, 1, :prefix_characters) = :action_prefix)`
  const by_agent = 'and (:has_agent_id = 0 or agent_id = :agent_id)'
  if (scanned === null) return [begins, by_agent]
  // Each is checked in an index that holds the answer: the rows themselves may be large.
  const checks = filter_names
    .filter((name) => name !== scanned)
    .map(
      (name) => `and (:has_${name} = 0 or (select 1 from audit_entries as same {by ${indexOf(name)}}
            where same.tenant_id = :tenant_id and same.${name} = :${name} and same.seq = audit_entries.seq) = 1)`,
    )
  return [...checks, ...(scanned === 'action' ? [] : [begins]), by_agent]
}

function listStatement(name: FilterName | null, checks: string[]): ListStatement {
  const named = ['audit.list', ...(name ? [name] : []), ...(checks.length > 0 ? ['filtered'] : [])].join('_')
  return sql(
    named,
    `select ${columns}, ${bytesOf(texts)} as bytes from audit_entries where ${inChunk({
      ...{ table: 'audit_entries', key: 'tenant_id, seq', only_read: true, texts },
      index: name && indexOf(name),
      order: name ? orderOf(name) : log_order,
      where: [name ? led(name) : in_log, ...checks].join(' '),
    })}`,
  )
}

function newestFirst(rows: ListedRow[]): ListedRow[] {
  return rows.sort((one, other) => other.seq - one.seq)
}

function sizeOf(rows: { bytes: number }[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0)
}
