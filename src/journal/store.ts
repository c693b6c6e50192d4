// Statements that write events, number them and keep the sums of workflows.

import type { EventRow } from '../contract/event.ts'
import { acrossTenants, type Reader, sql, type Tx } from '../db/db.ts'
import { nextLookAfter } from './retention.ts'

export const columns =
  'seq, workflow_seq, id, type, subject_kind, subject_id, workflow_id, private_to, agent_id, actor, request_id, at, data'

const INSERT = sql(
  'journal.insert',
  `insert into events
     (tenant_id, id, type, subject_kind, subject_id, workflow_id, private_to, agent_id, actor, request_id, at, waiting, failing, data)
   values
     (:tenant_id, :id, :type, :subject_kind, :subject_id, :workflow_id, :private_to, :agent_id, :actor, :request_id, :at, :waiting, :failing, :data)`,
)

/** A new event: without numbers, and with what it changes of its workflow. */
export interface NewEvent extends Omit<EventRow, 'seq' | 'workflow_seq'> {
  waiting: number
  failing: number
}

// Its members are named, since a copy of all of them is slower, and every hot write leaves an event.
export function insert(tx: Tx, tenant_id: string, event: NewEvent) {
  return tx.run(INSERT, {
    tenant_id,
    id: event.id,
    type: event.type,
    subject_kind: event.subject_kind,
    subject_id: event.subject_id,
    workflow_id: event.workflow_id,
    private_to: event.private_to,
    agent_id: event.agent_id,
    actor: event.actor,
    request_id: event.request_id,
    at: event.at,
    waiting: event.waiting,
    failing: event.failing,
    data: event.data,
  })
}

export const unnumbered = 'tenant_id = :tenant_id and seq is null'

const ANY_UNNUMBERED = sql<{ found: number }>(
  'journal.any_unnumbered',
  `select 1 as found from events {by events_unnumbered} where ${unnumbered} limit 1`,
)

/** True when a committed event has no number yet. */
export async function anyUnnumbered(q: Reader, tenant_id: string): Promise<boolean> {
  return (await q.one(ANY_UNNUMBERED, { tenant_id })) !== null
}

// Changes nothing: on PostgreSQL the next statement then sees all that was committed before the lock was taken.
const LOCK = sql<{ seq: number }>(
  'journal.lock',
  `insert into event_heads (tenant_id, seq) values (:tenant_id, 0)
   on conflict (tenant_id) do update set seq = event_heads.seq
   returning seq`,
)

const NUMBER = sql<Pick<EventRow, 'workflow_seq'>>(
  'journal.number',
  `update events set seq = given_seq, workflow_seq = given_workflow_seq
     from (select next_rows.row as given_row,
                  :seq + row_number() over (order by next_rows.position) as given_seq,
                  case when next_rows.is_public = 1 then next_rows.counted
                    + row_number() over (partition by next_rows.workflow_id, next_rows.is_public order by next_rows.position) end
                    as given_workflow_seq
             from (select {row position} as row, position, workflow_id,
                          case when workflow_id is not null and private_to is null then 1 else 0 end as is_public,
                          coalesce((select workflows.events from workflows
                                     where workflows.tenant_id = :tenant_id and workflows.workflow_id = events.workflow_id), 0)
                            as counted
                     from events {by events_unnumbered}
                    where ${unnumbered} order by position limit :rows_max) as next_rows
          ) as numbered
    where ${unnumbered} and {row position} = given_row
   returning workflow_seq`,
)

const ADVANCE = sql(
  'journal.advance',
  `update event_heads
      set seq = :seq, look_at = case when look_at is null or (:at_once = 1 and look_at > :look_at) then :look_at else look_at end
    where tenant_id = :tenant_id`,
)

const COUNT = sql(
  'journal.count',
  `insert into workflows
     (tenant_id, workflow_id, events, waiting, failing, first_at, last_at, last_seq, last_type)
   select numbered.tenant_id, numbered.workflow_id, count, waits, fails, begun_at, ended_at, newest,
          (select type from events {by events_seq} where tenant_id = :tenant_id and seq = newest)
     from (select tenant_id, workflow_id, count(*) as count, sum(waiting) as waits, sum(failing) as fails,
                  min(at) as begun_at, max(at) as ended_at, max(seq) as newest
             from events {by events_seq}
            where tenant_id = :tenant_id and seq > :seq and workflow_id is not null and private_to is null
            group by tenant_id, workflow_id) as numbered
    where count > 0
   on conflict (tenant_id, workflow_id) do update
      set events = workflows.events + excluded.events, waiting = workflows.waiting + excluded.waiting,
          failing = workflows.failing + excluded.failing, last_at = excluded.last_at, last_seq = excluded.last_seq,
          last_type = excluded.last_type`,
)

/** Events that have just got their numbers: so many, behind this number. */
export interface Numbered {
  after: number
  count: number
}

/** Gives numbers to what is committed and has none, in the order of their positions, `rows_max` at most. */
export async function number(tx: Tx, tenant_id: string, rows_max: number): Promise<Numbered> {
  const after = await lockHead(tx, tenant_id)
  const rows = await tx.all(NUMBER, { tenant_id, seq: after, rows_max })
  const count = rows.length
  if (count === 0) return { after, count }
  const seq = after + count
  const { look_at, at_once } = nextLookAfter(after, seq, tx.now)
  await tx.run(ADVANCE, { tenant_id, seq, look_at, at_once: Number(at_once) })
  if (rows.some(({ workflow_seq }) => workflow_seq !== null)) await tx.run(COUNT, { tenant_id, seq: after })
  return { after, count }
}

/**
 * The last number that was given. Until the transaction ends no other is given: its first lock, or it deadlocks with the numbering
 * of events, which locks other rows after this one.
 */
export async function lockHead(tx: Tx, tenant_id: string): Promise<number> {
  return (await tx.one(LOCK, { tenant_id }))!.seq
}

const HEAD = sql<{ seq: number }>('journal.head', 'select seq from event_heads where tenant_id = :tenant_id')

/** The last number that was given; 0 when none was. */
export async function lastSeq(q: Reader, tenant_id: string): Promise<number> {
  return (await q.one(HEAD, { tenant_id }))?.seq ?? 0
}

const NEXT_TENANT = acrossTenants<{ tenant_id: string | null }>(
  'journal.next_unnumbered_tenant',
  'select min(tenant_id) as tenant_id from events {by events_unnumbered} where seq is null and tenant_id > :after',
)

/** The first tenant after this one that has events without a number; null when there is none. */
export async function nextUnnumberedTenant(q: Reader, after: string): Promise<string | null> {
  return (await q.one(NEXT_TENANT, { after }))?.tenant_id ?? null
}
