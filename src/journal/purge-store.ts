// Statements that remove the journal of a tenant that is being purged.

import { inChunk } from '../db/chunk.ts'
import { sql, type Tx } from '../db/db.ts'
import { unnumbered } from './store.ts'

const PURGE = sql(
  'journal.purge',
  `delete from events where ${inChunk({
    ...{ table: 'events', key: 'position', index: 'events_seq', order: 'tenant_id, seq' },
    where: 'tenant_id = :tenant_id and seq is not null',
  })}`,
)
const PURGE_UNNUMBERED = sql(
  'journal.purge_unnumbered',
  `delete from events where ${inChunk({
    ...{ table: 'events', key: 'position', index: 'events_unnumbered', order: 'tenant_id, position' },
    where: unnumbered,
  })}`,
)
const PURGE_WORKFLOWS = sql(
  'journal.purge_workflows',
  `delete from workflows where ${inChunk({ table: 'workflows', key: 'tenant_id, workflow_id' })}`,
)
const PURGE_HEAD = sql('journal.purge_head', 'delete from event_heads where tenant_id = :tenant_id')

/** Removes rows of a tenant that is being purged; returns how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number): Promise<number> {
  const removed =
    (await tx.run(PURGE, { tenant_id, rows_max })) +
    (await tx.run(PURGE_UNNUMBERED, { tenant_id, rows_max })) +
    (await tx.run(PURGE_WORKFLOWS, { tenant_id, rows_max }))
  return removed + (await tx.run(PURGE_HEAD, { tenant_id }))
}
