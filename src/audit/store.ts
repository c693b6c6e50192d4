// Statements on audit_heads and audit_entries. None changes an entry; one removes those of a tenant that is purged.
// Lists are in list-store.ts.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx, writesRow } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export interface EntryRow {
  id: string
  seq: number
  action: string
  workflow_id: string | null
  actor: string
  /** JSON text. */
  metadata: string | null
  agent_id: string | null
  request_id: string
  created_at: Millis
}

const BEGIN = sql(
  'audit.begin',
  'insert into audit_heads (tenant_id, seq, last_at) values (:tenant_id, 0, 0)',
)

// Time never runs backwards inside a log, so that the order of seq is the order of time.
const NEXT = writesRow<{ seq: number; last_at: Millis }>(
  'audit.next',
  `update audit_heads set seq = seq + 1, last_at = case when last_at > :now then last_at else :now end
    where tenant_id = :tenant_id`,
  'seq, last_at',
  'audit_heads where tenant_id = :tenant_id',
)

const INSERT = sql(
  'audit.insert',
  `insert into audit_entries
     (tenant_id, seq, id, action, workflow_id, actor, metadata, agent_id, request_id, created_at)
   values
     (:tenant_id, :seq, :id, :action, :workflow_id, :actor, :metadata, :agent_id, :request_id, :created_at)`,
)

export const columns = 'id, seq, action, workflow_id, actor, metadata, agent_id, request_id, created_at'

const FIND = sql<EntryRow>(
  'audit.find',
  `select ${columns} from audit_entries where tenant_id = :tenant_id and id = :id`,
)

export function begin(tx: Tx, tenant_id: string) {
  return tx.run(BEGIN, { tenant_id })
}

/** The next number of this tenant's log, gap-free because it is rolled back when the transaction fails. */
export async function next(tx: Tx, tenant_id: string) {
  return (await tx.one(NEXT, { tenant_id, now: tx.now }))!
}

export function insert(tx: Tx, tenant_id: string, row: EntryRow) {
  return tx.run(INSERT, { tenant_id, ...row })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

// The log ends with its tenant, and only then.
const purgeEntries = purging('audit.purge', {
  ...{ table: 'audit_entries', key: 'tenant_id, seq', texts: ['metadata'] },
})
const PURGE_HEAD = sql('audit.purge_head', 'delete from audit_heads where tenant_id = :tenant_id')

/** Removes rows of a tenant that is being purged; returns how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number): Promise<number> {
  return (await purgeEntries(tx, tenant_id, rows_max, bytes_max)) + (await tx.run(PURGE_HEAD, { tenant_id }))
}
