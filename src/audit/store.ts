// Every statement on audit_heads and audit_entries. None changes an entry; one removes
// those of a tenant that is purged.

import type { Millis } from '../base/clock.ts'
import { idBound } from '../base/ids.ts'
import { inChunk } from '../db/chunk.ts'
import { type Reader, type Statement, sql, type Tx, unnamed } from '../db/db.ts'

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
const NEXT = sql<{ seq: number; last_at: Millis }>(
  'audit.next',
  `update audit_heads set seq = seq + 1, last_at = case when last_at > :now then last_at else :now end
    where tenant_id = :tenant_id
   returning seq, last_at`,
)

const INSERT = sql(
  'audit.insert',
  `insert into audit_entries
     (tenant_id, seq, id, action, workflow_id, actor, metadata, agent_id, request_id, created_at)
   values
     (:tenant_id, :seq, :id, :action, :workflow_id, :actor, :metadata, :agent_id, :request_id, :created_at)`,
)

const columns = 'id, seq, action, workflow_id, actor, metadata, agent_id, request_id, created_at'

const FIND = sql<EntryRow>(
  'audit.find',
  `select ${columns} from audit_entries where tenant_id = :tenant_id and id = :id`,
)

export function begin(tx: Tx, tenant_id: string) {
  return tx.run(BEGIN, { tenant_id })
}

/** The next number of this tenant's log, gap-free because it is given back when the transaction fails. */
export async function next(tx: Tx, tenant_id: string) {
  return (await tx.one(NEXT, { tenant_id, now: tx.now }))!
}

export function insert(tx: Tx, tenant_id: string, row: EntryRow) {
  return tx.run(INSERT, { tenant_id, ...row })
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

export interface Filters {
  workflow_id?: string
  action?: string
  actor?: string
  /** From this instant on. */
  from?: Millis
  /** Before this instant. */
  to?: Millis
  /** Only entries with a smaller seq: where the page before ended. */
  before_seq?: number
}

// Ids begin with the time, and seq and created_at rise together. So one step in the index of ids finds a seq close
// to a bound in time, and the comparison of created_at makes it exact.
const conditions: Record<keyof Filters, string> = {
  workflow_id: 'workflow_id = :workflow_id',
  action: 'action = :action',
  actor: 'actor = :actor',
  from: `created_at >= :from and seq > coalesce((select seq from audit_entries
           where tenant_id = :tenant_id and id < :from_id order by id desc limit 1), 0)`,
  to: `created_at < :to and seq < coalesce((select seq from audit_entries
         where tenant_id = :tenant_id and id >= :to_id order by id limit 1), :seq_max)`,
  before_seq: 'seq < :before_seq',
}

const lists = new Map<string, Statement<EntryRow>>()

/** Newest first. */
export function list(q: Reader, tenant_id: string, filters: Filters, rows_max: number) {
  const bounds = {
    from_id: idBound('log', filters.from ?? 0),
    to_id: idBound('log', filters.to ?? 0),
    seq_max: Number.MAX_SAFE_INTEGER,
  }
  const statement = listStatement(Object.keys(filters) as (keyof Filters)[])
  return q.all(statement, { tenant_id, ...filters, ...bounds, rows_max })
}

/** One statement per set of filters, at most 64. */
export function listStatement(filters: (keyof Filters)[]): Statement<EntryRow> {
  const name = ['audit.list', ...filters.toSorted()].join('_')
  const known = lists.get(name)
  if (known) return known
  const where = ['tenant_id = :tenant_id', ...filters.map((filter) => conditions[filter])].join(' and ')
  const statement = unnamed<EntryRow>(
    name,
    `select ${columns} from audit_entries where ${where} order by seq desc limit :rows_max`,
  )
  lists.set(name, statement)
  return statement
}

// The log ends with its tenant, and only then.
const PURGE = sql(
  'audit.purge',
  `delete from audit_entries where ${inChunk({
    ...{
      table: 'audit_entries',
      key: 'tenant_id, seq',
      index: null,
      order: 'tenant_id, seq',
      texts: ['metadata'],
    },
    where: 'tenant_id = :tenant_id',
  })}`,
)
const PURGE_HEAD = sql('audit.purge_head', 'delete from audit_heads where tenant_id = :tenant_id')

/** Removes rows of a tenant that is being purged; answers how many. */
export async function purge(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number): Promise<number> {
  return (await tx.run(PURGE, { tenant_id, rows_max, bytes_max })) + (await tx.run(PURGE_HEAD, { tenant_id }))
}
