// Rows of a table that are removed together: few enough, and small enough, that requests need not wait for them.

interface Chunk {
  table: string
  /** Columns that name a row within `where`. */
  key: string
  /** What has to be there: an index that begins with the columns of `where` and goes on with these. */
  order: string
  /** The columns that may be large. */
  texts: readonly string[]
  where: string
  /** Rows that others hold are passed over. */
  skip_locked?: boolean
}

/**
 * The keys of the first rows: `:rows_max` at most, and none after those that come to `:bytes_max`, so that there is
 * always one. The lengths are read without the texts, on both engines. Materialized, because PostgreSQL may look the
 * keys up anew for each row of the tenant while it has no statistics.
 */
export function chunkOf({ table, key, order, texts, where, skip_locked = false }: Chunk): string {
  const bytes = texts.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ')
  return `with first_rows as
     (select ${unique(key, order)}, ${bytes} as bytes from ${table} where ${where} order by ${order} limit :rows_max
      ${skip_locked ? '{skip_locked}' : ''}),
   measured as
     (select ${key},
             coalesce(sum(bytes) over (order by ${order} rows between unbounded preceding and 1 preceding), 0) as before
        from first_rows),
   picked as materialized (select ${key} from measured where before < :bytes_max)
   select ${key} from picked`
}

function unique(...lists: string[]): string {
  return [...new Set(lists.flatMap((list) => list.split(', ')))].join(', ')
}
