// Counts what a tenant stores from its rows: the tables and texts that features declare are what storage_bytes means.

import { limit } from '../base/limit.ts'
import { type Db, type Reader, type Statement, sql, type Turn } from './db.ts'
import { add, row_bytes } from './stored.ts'

/** A table whose rows count as stored bytes: the texts of each row, and row_bytes for the row itself. */
export interface StoredTable {
  table: string
  /** The primary key after tenant_id, and a value before the first of each column. */
  key: readonly (readonly [column: string, before: string | number])[]
  texts: readonly string[]
  /** A column that already holds the bytes of the row's texts. */
  size?: string
}

const rows_max = limit(
  'storage.recounted_rows',
  5_000,
  'rows',
  'Rows that one statement of a recount of stored bytes reads, so that requests wait for no more than one.',
)

type Row = { bytes: number } & Record<string, string | number>

/** The tables with the statements that read them; made once. */
export type Recounted = readonly { key: StoredTable['key']; statement: Statement<Row> }[]

export function recounted(tables: readonly StoredTable[]): Recounted {
  return tables.map((item) => ({ key: item.key, statement: pageOf(item) }))
}

/** The bytes of a row's texts, in SQL: without reading them, on both engines. */
export function bytesIn({ texts, size }: StoredTable): string {
  const own = texts.map((text) => `coalesce(octet_length(${text}), 0)`)
  return ['0', ...own, ...(size === undefined ? [] : [size])].join(' + ')
}

function pageOf(item: StoredTable): Statement<Row> {
  const columns = item.key.map(([column]) => column)
  return sql<Row>(
    `recount.${item.table}`,
    `select ${columns.join(', ')}, ${bytesIn(item)} as bytes from ${item.table}
      where tenant_id = :tenant_id and (${columns.join(', ')}) > (${columns.map((column) => `:${column}`).join(', ')})
      order by ${columns.join(', ')} limit :rows_max`,
  )
}

const COUNTER = sql<{ used: number }>(
  'recount.counter',
  `select used from quota_usage where tenant_id = :tenant_id and quota = 'storage_bytes'`,
)

const MAKE = sql(
  'recount.make',
  `insert into quota_usage (tenant_id, quota, used, version_floor) values (:tenant_id, 'storage_bytes', 0, 0)
   on conflict (tenant_id, quota) do nothing`,
)

/** Returns the bytes of all rows of the tenant. */
async function countAll(q: Reader, tables: Recounted, tenant_id: string): Promise<number> {
  let bytes = 0
  for (const { key, statement } of tables) {
    let after: Record<string, string | number> = Object.fromEntries(key)
    for (;;) {
      const rows = await q.all(statement, { tenant_id, ...after, rows_max })
      for (const row of rows) bytes += row.bytes + row_bytes
      const last = rows.at(-1)
      if (!last || rows.length < rows_max) break
      after = Object.fromEntries(key.map(([column]) => [column, last[column]!]))
    }
  }
  return bytes
}

/** No request waits for it, and a tenant of a million rows takes longer than one may. */
const turn: Turn = { key: 'recount', ms_max: null }

/**
 * Puts a tenant's counter right; writes may continue meanwhile. Counter and rows are read in one state of the database,
 * and the counter changes by the difference. On PostgreSQL it is wrong by what nodes have not written yet. Returns the
 * error of the counter.
 */
export async function recount(db: Db, tables: Recounted, tenant_id: string): Promise<number> {
  await db.write(turn, (tx) => tx.run(MAKE, { tenant_id }))
  const missing = await db.read(turn, async (q) => {
    const known = (await q.one(COUNTER, { tenant_id }))?.used ?? 0
    return (await countAll(q, tables, tenant_id)) - known
  })
  if (missing !== 0) await db.write(turn, (tx) => add(tx, tenant_id, missing))
  return missing
}

/** One after the other; one that fails is reported, and the others are counted. Returns how many failed. */
export async function recountEach<Tenant extends { tenant_id: string }>(
  db: Db,
  tables: Recounted,
  tenants: readonly Tenant[],
  report: (tenant: Tenant, missing: number | Error) => void,
): Promise<number> {
  let failed = 0
  for (const tenant of tenants) {
    const missing = await recount(db, tables, tenant.tenant_id).catch((error: Error) => error)
    if (missing instanceof Error) failed += 1
    report(tenant, missing)
  }
  return failed
}
