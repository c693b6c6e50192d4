// Counts again what a tenant stores. This list is what storage_bytes means: of each row of these tables the texts that
// it names, and row_bytes.

import { limit } from '../base/limit.ts'
import { type Db, type Reader, type Statement, sql, type Turn } from './db.ts'
import { add, row_bytes } from './stored.ts'

interface Counted {
  table: string
  /** The primary key after tenant_id, and a value before the first of each column. */
  key: [column: string, before: string | number][]
  texts: string[]
}

export const counted: readonly Counted[] = [
  {
    table: 'kv_entries',
    key: [
      ['namespace', ''],
      ['key', ''],
    ],
    texts: ['namespace', 'key', 'value'],
  },
  {
    table: 'audit_entries',
    key: [['seq', 0]],
    texts: ['action', 'workflow_id', 'actor', 'metadata', 'agent_id', 'request_id'],
  },
  { table: 'dlq_items', key: [['id', '']], texts: ['payload', 'error', 'workflow_id'] },
  { table: 'schedules', key: [['id', '']], texts: ['callback_url', 'callback_payload'] },
  {
    table: 'checkpoints',
    key: [['id', '']],
    texts: ['title', 'prompt', 'callback_url', 'callback_payload', 'reason'],
  },
  {
    table: 'attempts',
    key: [
      ['source', ''],
      ['source_id', ''],
      ['seq', -1],
    ],
    texts: [],
  },
  { table: 'inboxes', key: [['id', '']], texts: ['label', 'forward_url'] },
  {
    table: 'inbox_messages',
    key: [
      ['inbox_id', ''],
      ['seq', 0],
    ],
    texts: [],
  },
  { table: 'idempotency_keys', key: [['key_hash', '']], texts: ['answer'] },
  { table: 'agents', key: [['agent_id', '']], texts: ['agent_id', 'description', 'callback_base_url'] },
  { table: 'approval_keys', key: [['approval_key_id', '']], texts: ['label'] },
]

const rows_max = limit(
  'storage.recounted_rows',
  5_000,
  'rows',
  'Rows that one statement of a recount of stored bytes reads, so that requests wait for no more than one.',
)

type Row = { bytes: number } & Record<string, string | number>

const pages = counted.map((item) => ({ ...item, statement: pageOf(item) }))

/** The bytes of a row's texts, in SQL: without reading them, on both engines. An inbox's message has its size in a column. */
export function bytesIn({ table, texts }: Counted): string {
  const own =
    table === 'inbox_messages' ? ['size'] : texts.map((text) => `coalesce(octet_length(${text}), 0)`)
  return ['0', ...own].join(' + ')
}

function pageOf(item: Counted): Statement<Row> {
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

/** The bytes of all rows of the tenant. */
async function countAll(q: Reader, tenant_id: string): Promise<number> {
  let bytes = 0
  for (const { key, statement } of pages) {
    let after = Object.fromEntries(key)
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
 * Puts a tenant's counter right; writes may go on meanwhile. Counter and rows are read in one state of the database, and
 * the counter changes by the difference. On PostgreSQL what nodes have not written yet makes it that much wrong.
 * Answers what the counter was off by.
 */
export async function recount(db: Db, tenant_id: string): Promise<number> {
  await db.write(turn, (tx) => tx.run(MAKE, { tenant_id }))
  const missing = await db.read(turn, async (q) => {
    const known = (await q.one(COUNTER, { tenant_id }))?.used ?? 0
    return (await countAll(q, tenant_id)) - known
  })
  if (missing !== 0) await db.write(turn, (tx) => add(tx, tenant_id, missing))
  return missing
}

/** One after the other; one that fails is reported, and the others are counted all the same. Answers how many failed. */
export async function recountEach<Tenant extends { tenant_id: string }>(
  db: Db,
  tenants: readonly Tenant[],
  report: (tenant: Tenant, missing: number | Error) => void,
): Promise<number> {
  let failed = 0
  for (const tenant of tenants) {
    const missing = await recount(db, tenant.tenant_id).catch((error: Error) => error)
    if (missing instanceof Error) failed += 1
    report(tenant, missing)
  }
  return failed
}
