// How large the tables are, for the operator.

import { type Db, unnamed, unnamedAcrossTenants } from './db.ts'
import { sizeOf } from './space.ts'

export interface TableSize {
  table: string
  rows: number
  /** With its indexes; null where the engine does not say. */
  bytes: number | null
}

// Differs because PostgreSQL keeps both numbers, the rows as an estimate, and SQLite has to count.
const SIZES_POSTGRES = unnamed<{ table: string; rows: number; bytes: number }>(
  'sizes.tables',
  `select relname as "table", cast(greatest(reltuples, 0) as bigint) as rows, pg_total_relation_size(c.oid) as bytes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') order by 3 desc, 1`,
)
const TABLES_SQLITE = unnamed<{ name: string }>(
  'sizes.tables',
  `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name`,
)

/** The largest first, on PostgreSQL with estimated rows. */
export async function tableSizes(db: Db): Promise<TableSize[]> {
  if (db.engine === 'postgres') return db.all(SIZES_POSTGRES, {})
  const found: TableSize[] = []
  for (const { name } of await db.all(TABLES_SQLITE, {})) {
    const count = unnamedAcrossTenants<{ rows: number }>(
      'sizes.count',
      `select count(*) as rows from ${name}`,
    )
    found.push({ table: name, rows: (await db.one(count, {}))!.rows, bytes: null })
  }
  return found.toSorted((a, b) => b.rows - a.rows)
}

const SIZE_POSTGRES = unnamed<{ bytes: number }>(
  'sizes.database',
  'select pg_database_size(current_database()) as bytes',
)

/** `path`: of a SQLite file; with its log. */
export async function databaseBytes(db: Db, path: string | null): Promise<number> {
  if (path === null) return (await db.one(SIZE_POSTGRES, {}))!.bytes
  return sizeOf(path) + sizeOf(`${path}-wal`)
}
