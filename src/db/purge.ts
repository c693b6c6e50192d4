// The purge of a tenant, table by table.

import { inChunk } from './chunk.ts'
import { type Awaitable, sql, type Tx } from './db.ts'

interface Purged {
  table: string
  /** The primary key, which begins with the tenant. */
  key: string
  /** The columns that may be large; with them the bytes count as well. */
  texts?: readonly string[]
}

type RemoveRows = (tx: Tx, tenant_id: string, rows_max: number, bytes_max?: number) => Awaitable<number>

/** Defines the removal of a table's rows of a tenant that is being purged; it returns how many. */
export function purging(name: string, { table, key, texts }: Purged): RemoveRows {
  const measured = texts ? { texts } : {}
  const chunk = { table, key, ...measured, index: null, order: key, where: 'tenant_id = :tenant_id' }
  const statement = sql(name, `delete from ${table} where ${inChunk(chunk)}`)
  return (tx, tenant_id, rows_max, bytes_max = 0) => tx.run(statement, { tenant_id, rows_max, bytes_max })
}
