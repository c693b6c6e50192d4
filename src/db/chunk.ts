// Rows of a table that are read, changed or removed together: few enough, and small enough, that other requests need not
// wait for them.

import { of_shard } from './db.ts'

interface Chunk {
  table: string
  /** The primary key. */
  key: string
  /** Null, or absent, when the primary key itself has `order`. */
  index?: string | null
  /** The columns that the index begins with; absent: the primary key. */
  order?: string
  /** The columns that may be large; with them `:bytes_max` counts as well. */
  texts?: readonly string[]
  /** Absent: all rows of the tenant. */
  where?: string
  /** Rows that others hold are skipped; otherwise they are waited for, unless they are only read. */
  skip_locked?: boolean
  only_read?: boolean
}

const of_tenant = 'tenant_id = :tenant_id'

/**
 * A condition that holds for the first rows only: `:rows_max` at most, and none after those that come to `:bytes_max`,
 * so that there is always one. The lengths are read without the texts, on both engines.
 *
 * No other condition on the rows may stand beside it: with a second condition to choose from, an engine may walk all rows
 * of which that one holds, and look for each whether it is in the list.
 */
export function inChunk(chunk: Chunk): string {
  return `${of_shard} ${amongFirst(chunk)}`
}

/** The same, of all tenants. */
export function amongFirst(chunk: Chunk): string {
  const { table, key, index, order = key, texts, where = of_tenant } = chunk
  const rows = (columns: string) => `select ${columns} from ${table} ${index ? `{by ${index}}` : ''}
       where ${where} order by ${order} limit :rows_max ${lockOf(chunk)}`
  if (!texts) return `{rows_in ${key}}${rows(`{row ${key}}`)}{end}`
  return `{rows_in ${key}}
     with first_rows as
       (${rows(`{place} ${unique(key, order)}, ${bytesOf(texts)} as bytes`)}),
     measured as
       (select {row ${key}},
               coalesce(sum(bytes) over (order by ${order} rows between unbounded preceding and 1 preceding), 0) as before
          from first_rows)
     select {row ${key}} from measured where before < :bytes_max{end}`
}

/**
 * Locks the first rows: a statement before the one that changes them, where none of them may be left out. On PostgreSQL a
 * change lists the places of the rows that it has waited for in a version that it does not see, and skips them.
 */
export function lockFirst({ table, key, index, order = key, where = of_tenant }: Chunk): string {
  return `select ${key} from ${table} ${index ? `{by ${index}}` : ''}
       where ${where} order by ${order} limit :rows_max {locked}`
}

/**
 * A condition for the first rows of all tenants on a distributed database, which cannot list rows of several shards for
 * a change: `:rows_max`, and those that the last of them shares its place with. `order` is one column.
 */
export function upToLastOf({ table, order, where }: Record<'table' | 'order' | 'where', string>): string {
  return `${order} <= (select max(${order})
       from (select ${order} from ${table} where ${where} order by ${order} limit :rows_max) as first_rows)`
}

function lockOf({ skip_locked, only_read }: Chunk): string {
  if (only_read) return ''
  return skip_locked ? '{skip_locked}' : '{locked}'
}

/**
 * Rows of a tenant whose columns have the values of the parameters of their names, before an id, the newest first, by an
 * index on tenant, columns and id. `only` is the condition of a partial index. As ranges: with equal signs PostgreSQL may
 * walk an index without these columns, and pass all rows with other values.
 */
export function newestWith(index: string, columns: readonly string[], only?: string) {
  const led = ['tenant_id', ...columns]
  const names = [...led, 'id']
  const values = led.map((name) => `:${name}`).join(', ')
  return {
    index,
    order: names.map((name) => `${name} desc`).join(', '),
    where: `${of_shard} ${only === undefined ? '' : `${only} and`} (${names.join(', ')}) > (${values}, '')
        and (${names.join(', ')}) < (${values}, :before_id)`,
  }
}

/** Bytes of a row's texts, which neither engine reads for it. */
export function bytesOf(texts: readonly string[]): string {
  return texts.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ')
}

/** The columns of these lists, each once. */
function unique(...lists: string[]): string {
  const columns = lists.flatMap((list) => list.replaceAll(' desc', '').split(', '))
  return [...new Set(columns)].join(', ')
}
