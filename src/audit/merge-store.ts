// Entries of a few actions in one order.

import { limit } from '../base/limit.ts'
import { bytesOf } from '../db/chunk.ts'
import { type Awaitable, of_shard, type Reader, sql } from '../db/db.ts'
import { type Bounds, indexOf, orderOf } from './filter-store.ts'
import { columns, type EntryRow } from './store.ts'
import { textsOf } from './values-store.ts'

export type ListedRow = EntryRow & { bytes: number }

/** Texts whose lengths count as bytes of a page. */
export const texts = ['metadata', 'action', 'actor', 'workflow_id']

export const merged_max = limit(
  'audit.merged_actions',
  16,
  'entries',
  'Actions that begin with an `action_prefix` and whose entries are read in one order. With more of them the log itself is looked through, `pages.looked_at_rows` a page.',
)

const value = "case when texts.value is null then '' else texts.value end"

/**
 * The newest entry of one of these actions that is older than the one before. SQLite walks a range of rows only up to the
 * first column that is compared with another column, and so not with what an expression answers. PostgreSQL takes a coalesce for
 * one that may show its argument, and walks no index by it behind row-level security.
 */
const next_of_action = `(select seq from audit_entries {by ${indexOf('action')}}
                where ${of_shard} (tenant_id, action, seq) > (:tenant_id, ${value}, :after_seq)
                  and (tenant_id, action, seq) < (:tenant_id, ${value},
                                                    case when walk.at_seq is null then 0 else walk.at_seq end)
                order by ${orderOf('action')} limit 1)`
const bytes_of_last = `(select ${bytesOf(texts)} from audit_entries as sized
                where tenant_id = :tenant_id and seq = walk.at_seq)`

// From one entry to the next, until there are enough rows or bytes. The outer join keeps its order: what was walked is
// looked up, on both engines.
const LIST = sql<ListedRow>(
  'audit.list_actions',
  `with recursive ${textsOf('action')},
     walk (at_seq, place, before) as
       (select coalesce(:before_seq, seq), 0, 0 from audit_heads where tenant_id = :tenant_id
         union all
        select (select max(${next_of_action}) from texts
                 where substr(value, 1, :prefix_characters) = :first),
               place + 1, case when place = 0 then 0 else before + ${bytes_of_last} end
          from walk where walk.at_seq is not null and place < :rows_max and before < :bytes_max)
   select ${columns}, ${bytesOf(texts)} as bytes
     from walk left join audit_entries on tenant_id = :tenant_id and seq = walk.at_seq
    where place > 0 and walk.at_seq is not null and before < :bytes_max`,
)

/**
 * The newest of the actions that begin with this prefix, `merged_max` at most: `rows_max` of their entries at most, and
 * none after the first that takes them to `bytes_max`.
 */
export function listOfActions(
  q: Reader,
  tenant_id: string,
  action_prefix: string,
  { after_seq, before_seq, rows_max, bytes_max }: Bounds & { rows_max: number; bytes_max: number },
): Awaitable<ListedRow[]> {
  const named = {
    first: action_prefix,
    prefix_characters: charactersOf(action_prefix),
    values_max: merged_max,
  }
  return q.all(LIST, { tenant_id, ...named, after_seq, before_seq, rows_max, bytes_max })
}

/** As substr counts them, on both engines. */
export function charactersOf(text: string): number {
  return Array.from(text).length
}
