// Every statement on agents.

import type { Millis } from '../base/clock.ts'
import { beginOf, type TextRange } from '../base/text-range.ts'
import type { AgentMode } from '../contract/caller.ts'
import type { PageRequest } from '../contract/page.ts'
import { bytesOf, inChunk } from '../db/chunk.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'

export interface AgentRow {
  agent_id: string
  description: string | null
  callback_base_url: string | null
  /** Of the key without an end; null when the operator has ended all keys of the tenant. */
  last_four: string | null
  created_at: Millis
  mode: AgentMode
  paused_at: Millis | null
  paused_reason: string | null
}

/** Of a new agent. */
export const unpaused = { mode: 'full', paused_at: null, paused_reason: null } as const

const INSERT = sql(
  'agents.insert',
  `insert into agents (tenant_id, agent_id, description, callback_base_url, created_at)
   values (:tenant_id, :agent_id, :description, :callback_base_url, :now)
   on conflict do nothing`,
)

// The key is asked for each agent: in a join PostgreSQL may read all keys of the tenant first.
const columns = `agent_id, description, callback_base_url, created_at, mode, paused_at, paused_reason,
          (select c.last_four from credentials c
            where c.tenant_id = :tenant_id and c.kind = 'agent' and c.subject = agents.agent_id and c.expires_at is null
            limit 1) as last_four`

const FIND = sql<AgentRow>(
  'agents.find',
  `select ${columns} from agents where tenant_id = :tenant_id and agent_id = :agent_id`,
)

const texts = ['description', 'callback_base_url', 'paused_reason']
const LIST = sql<AgentRow & { bytes: number }>(
  'agents.list',
  `select ${columns}, ${bytesOf(texts)} as bytes from agents where ${inChunk({
    ...{ table: 'agents', key: 'tenant_id, agent_id', index: 'agents_newest', only_read: true, texts },
    order: 'created_at desc, agent_id desc',
    where: 'tenant_id = :tenant_id and (created_at, agent_id) < (:created_at, :agent_id)',
  })}`,
)

// The update takes the row's lock, so that two rotations, or a rotation and a removal, go one after the other.
const MARK_ROTATED = sql(
  'agents.mark_rotated',
  'update agents set key_rotated_at = :now where tenant_id = :tenant_id and agent_id = :agent_id',
)

const PAUSE = sql(
  'agents.pause',
  `update agents set paused_at = :now, paused_reason = :reason
    where tenant_id = :tenant_id and agent_id = :agent_id and paused_at is null`,
)

const RESUME = sql(
  'agents.resume',
  `update agents set paused_at = null, paused_reason = null
    where tenant_id = :tenant_id and agent_id = :agent_id and paused_at is not null`,
)

const SET_MODE = sql(
  'agents.set_mode',
  'update agents set mode = :mode where tenant_id = :tenant_id and agent_id = :agent_id and mode <> :mode',
)

const LOCK = sql<Pick<AgentRow, 'mode' | 'paused_at'>>(
  'agents.lock',
  'update agents set mode = mode where tenant_id = :tenant_id and agent_id = :agent_id returning mode, paused_at',
)

const DELETE = sql<{ bytes: number }>(
  'agents.delete',
  `delete from agents where tenant_id = :tenant_id and agent_id = :agent_id
   returning octet_length(agent_id) + coalesce(octet_length(description), 0)
             + coalesce(octet_length(callback_base_url), 0) as bytes`,
)

export type NewAgent = Pick<AgentRow, 'agent_id' | 'description' | 'callback_base_url'>

/** False when the name is taken. */
export async function insert(tx: Tx, tenant_id: string, agent: NewAgent): Promise<boolean> {
  return (await tx.run(INSERT, { tenant_id, ...agent, now: tx.now })) === 1
}

export function find(q: Reader, tenant_id: string, agent_id: string) {
  return q.one(FIND, { tenant_id, agent_id })
}

/** Newest first, `rows_max` at most, and none after the first that takes them to `bytes_max`. */
export async function list(q: Reader, tenant_id: string, { rows_max, bytes_max, after }: PageRequest) {
  const [created_at, agent_id] = after ?? [Number.MAX_SAFE_INTEGER, '']
  const rows = await q.all(LIST, {
    tenant_id,
    created_at: created_at!,
    agent_id: agent_id!,
    rows_max,
    bytes_max,
  })
  return rows.sort(
    (one, other) => other.created_at - one.created_at || (other.agent_id < one.agent_id ? -1 : 1),
  )
}

const IDS = sql<{ agent_id: string }>(
  'agents.ids',
  `select agent_id from agents where tenant_id = :tenant_id and agent_id >= :first order by agent_id limit :values_max`,
)

/** The next ids that begin with the prefix, in bytewise order, `ids_max` at most. */
export async function idsFrom(
  q: Reader,
  tenant_id: string,
  range: TextRange,
  ids_max: number,
): Promise<string[]> {
  const rows = await q.all(IDS, { tenant_id, first: beginOf(range), values_max: ids_max })
  return rows.map(({ agent_id }) => agent_id).filter((agent_id) => agent_id.startsWith(range.prefix))
}

/** First step of a rotation. False when there is no such agent. */
export async function markRotated(tx: Tx, tenant_id: string, agent_id: string): Promise<boolean> {
  return (await tx.run(MARK_ROTATED, { tenant_id, agent_id, now: tx.now })) === 1
}

/** False when it is paused, or there is no such agent. */
export async function pause(tx: Tx, tenant_id: string, agent_id: string, reason: string | null) {
  return (await tx.run(PAUSE, { tenant_id, agent_id, reason, now: tx.now })) === 1
}

/** False when it is not paused, or there is no such agent. */
export async function resume(tx: Tx, tenant_id: string, agent_id: string) {
  return (await tx.run(RESUME, { tenant_id, agent_id })) === 1
}

/** False when that is its mode, or there is no such agent. */
export async function setMode(tx: Tx, tenant_id: string, agent_id: string, mode: AgentMode) {
  return (await tx.run(SET_MODE, { tenant_id, agent_id, mode })) === 1
}

/** Its mode and its pause, which no other transaction changes before this one ends. Null when there is no such agent. */
export function lock(tx: Tx, tenant_id: string, agent_id: string) {
  return tx.one(LOCK, { tenant_id, agent_id })
}

/** The bytes of its texts; null when there is none. */
export function remove(tx: Tx, tenant_id: string, agent_id: string) {
  return tx.one(DELETE, { tenant_id, agent_id })
}

export const purge = purging('agents.purge', { table: 'agents', key: 'tenant_id, agent_id' })
