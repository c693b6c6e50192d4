// The purge of a tenant, table by table.

import { type Chunk, inChunk } from './chunk.ts'
import { type Awaitable, sql, type Tx } from './db.ts'

interface Purged extends Omit<Chunk, 'where'> {
  /** Absent: all rows of the tenant. */
  where?: string
}

type RemoveRows = (tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) => Awaitable<number>

const of_tenant = 'tenant_id = :tenant_id'

/** Defines the removal of a table's rows of a tenant that is being purged; it returns how many. */
export function purging(name: string, { where = of_tenant, ...chunk }: Purged): RemoveRows {
  const statement = sql(name, `delete from ${chunk.table} where ${inChunk({ ...chunk, where })}`)
  return (tx, tenant_id, rows_max, bytes_max) => tx.run(statement, { tenant_id, rows_max, bytes_max })
}

/** The same of a table with few rows of a tenant: all at once, and none that another transaction is changing is left out. */
export function purgingAll(name: string, table: string): RemoveRows {
  const statement = sql(name, `delete from ${table} where ${of_tenant}`)
  return (tx, tenant_id) => tx.run(statement, { tenant_id })
}
