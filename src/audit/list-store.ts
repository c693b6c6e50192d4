// Lists of entries, newest first, with any set of filters.

import type { Millis } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'
import {
  type Bounds,
  type FilterName,
  type Filters,
  filter_names,
  filterNames,
  indexOf,
  leaderOf,
  led,
  orderOf,
} from './filter-store.ts'
import { columns, type EntryRow } from './store.ts'

export interface Range {
  filters: Filters
  /** From this instant on. */
  from?: Millis
  /** Before this instant. */
  to?: Millis
  /** Only entries with a smaller seq: where the page before ended. */
  before_seq?: number
}

/** Texts whose lengths count as bytes of a page. */
export const texts = ['metadata', 'action', 'actor', 'workflow_id']

// The first entries are few enough to be of any size: only when they are small are the others measured as well.
const first_rows_max = limit(
  'audit.first_rows',
  32,
  'rows',
  'Entries of a page that are read whatever their size; further ones only while these are small.',
)

export interface Listed {
  rows: (EntryRow & { bytes: number })[]
  /** The last seq that was scanned when the page is not full; null: all were. */
  reached: number | null
}

/**
 * Newest first, `rows_max` at most, and none after the first that takes them to `bytes_max`. Of several filters the
 * index of one is scanned (filter-store.ts): only when each is frequent does the scan end before the page is full.
 */
export async function list(
  q: Reader,
  tenant_id: string,
  { filters, ...range }: Range,
  { rows_max, bytes_max, looked_max }: { rows_max: number; bytes_max: number; looked_max: number },
): Promise<Listed> {
  const bounds = await boundsOf(q, tenant_id, range)
  const leader = await leaderOf(q, tenant_id, filters, bounds, looked_max)
  const name = leader?.name ?? null
  const others = filterNames(filters).filter((other) => other !== name)
  const statement = LISTS.get(listKey(name, others))!
  const after_seq = leader?.reached ? Math.max(bounds.after_seq, leader.reached - 1) : bounds.after_seq
  const params = { tenant_id, ...filters, ...bounds, after_seq, bytes_max }
  const reached = leader?.reached ?? null
  const few = Math.min(rows_max, first_rows_max)
  const first = await q.all(statement, { ...params, rows_max: few })
  if (first.length < few || few === rows_max || sizeOf(first) >= bytes_max)
    return { rows: newestFirst(first), reached }
  return { rows: newestFirst(await q.all(statement, { ...params, rows_max })), reached }
}

async function boundsOf(q: Reader, tenant_id: string, range: Omit<Range, 'filters'>): Promise<Bounds> {
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

type ListStatement = Statement<EntryRow & { bytes: number }>

/** A statement for each set of filters and the one of them that is scanned by; without any, one for the whole log. */
const LISTS = new Map<string, ListStatement>()
for (const set of [[], ...sets(filter_names)]) {
  for (const leader of set.length === 0 ? [null] : set) {
    const others = set.filter((name) => name !== leader)
    LISTS.set(listKey(leader, others), listStatement(leader, others))
  }
}

/** Every set of these that is not empty. */
function sets([first, ...others]: readonly FilterName[]): FilterName[][] {
  if (first === undefined) return []
  const smaller = sets(others)
  return [[first], ...smaller, ...smaller.map((set) => [first, ...set])]
}

function listKey(leader: FilterName | null, others: FilterName[]): string {
  return ['list', ...(leader ? [leader] : []), ...others].join('_')
}

function listStatement(leader: FilterName | null, others: FilterName[]): ListStatement {
  // Each is checked in an index that holds the answer: the rows themselves may be large.
  const checked = others.map(
    (other) => `and (select 1 from audit_entries as same {by ${indexOf(other)}}
            where same.tenant_id = :tenant_id and same.${other} = :${other} and same.seq = audit_entries.seq) = 1`,
  )
  return sql(
    `audit.${listKey(leader, others)}`,
    `select ${columns}, ${bytesOf(texts)} as bytes from audit_entries where ${inChunk({
      ...{ table: 'audit_entries', key: 'tenant_id, seq', only_read: true, texts },
      index: leader && indexOf(leader),
      order: leader ? orderOf(leader) : 'tenant_id desc, seq desc',
      where: leader
        ? [led(leader), ...checked].join(' ')
        : 'tenant_id = :tenant_id and seq > :after_seq and seq < :before_seq',
    })}`,
  )
}

function newestFirst<Row extends EntryRow>(rows: Row[]): Row[] {
  return rows.sort((one, other) => other.seq - one.seq)
}

function sizeOf(rows: { bytes: number }[]): number {
  return rows.reduce((sum, { bytes }) => sum + bytes, 0)
}
