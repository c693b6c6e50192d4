// Counts what a tenant stores from its rows: the tables and texts that features declare are what storage_bytes means.

import { limit } from '../base/limit.ts'
import { sleep } from '../base/sleep.ts'
import { type Db, type Reader, type Statement, sql, type Turn } from './db.ts'
import { unwritten_bytes_max } from './late-count.ts'
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

/** The counter and the bytes of all rows, in one state of the database. */
interface Look {
  counter: number
  rows: number
}

/** On PostgreSQL every node has written what it had counted after this time. */
const written_ms = 2_500

/** Of a tenant whose bytes change all the time. */
const looks_max = limit(
  'storage.recount_looks',
  4,
  'attempts',
  'How often a recount on PostgreSQL looks at a tenant that never stops storing.',
)

async function look(db: Db, tables: Recounted, tenant_id: string): Promise<Look> {
  return db.read(turn, async (q) => {
    const counter = (await q.one(COUNTER, { tenant_id }))?.used ?? 0
    return { counter, rows: await countAll(q, tables, tenant_id) }
  })
}

/**
 * One more look at a tenant, after those in `looks`. Returns by how much its counter was put right; null when it is to be looked
 * at again. On PostgreSQL what nodes have not written yet is missing too, and would count twice: so a counter is
 * put right when nothing has changed for long enough. Where that never happens, what nodes may hold is left.
 */
async function step(db: Db, tables: Recounted, tenant_id: string, looks: Look[]): Promise<number | null> {
  if (looks.length === 0) await db.write(turn, (tx) => tx.run(MAKE, { tenant_id }))
  const found = await look(db, tables, tenant_id)
  const before = looks.at(-1)
  looks.push(found)
  const is_settled =
    db.engine === 'sqlite' || (before?.counter === found.counter && before.rows === found.rows)
  let missing = missingIn(found)
  if (missing !== 0 && !is_settled) {
    if (looks.length < looks_max) return null
    missing = looks.map(missingIn).reduce((one, other) => (Math.abs(other) < Math.abs(one) ? other : one))
    if (Math.abs(missing) <= unwritten_bytes_max) return 0
  }
  if (missing !== 0) await db.write(turn, (tx) => add(tx, tenant_id, missing))
  return missing
}

function missingIn({ counter, rows }: Look): number {
  return rows - counter
}

/** Puts a tenant's counter right; writes may continue meanwhile. Returns the error of the counter. */
export async function recount(db: Db, tables: Recounted, tenant_id: string): Promise<number> {
  const looks: Look[] = []
  for (;;) {
    const missing = await step(db, tables, tenant_id, looks)
    if (missing !== null) return missing
    await sleep(written_ms)
  }
}

/** The same for many; one that fails is reported, and the others are counted. Returns how many failed. */
export async function recountEach<Tenant extends { tenant_id: string }>(
  db: Db,
  tables: Recounted,
  tenants: readonly Tenant[],
  report: (tenant: Tenant, missing: number | Error) => void,
): Promise<number> {
  let failed = 0
  const waiting = new Map(tenants.map((tenant) => [tenant, [] as Look[]]))
  for (;;) {
    for (const [tenant, looks] of waiting) {
      const missing = await step(db, tables, tenant.tenant_id, looks).catch((error: Error) => error)
      if (missing === null) continue
      waiting.delete(tenant)
      if (missing instanceof Error) failed += 1
      report(tenant, missing)
    }
    if (waiting.size === 0) return failed
    await sleep(written_ms)
  }
}
