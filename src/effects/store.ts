// Statements that insert, find, start and extend effects. Each move is guarded by the statuses that effect.ts allows.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx, writesRow } from '../db/db.ts'
import { type EffectStatus, type moves as Moves, moves, type WholeEffect } from './effect.ts'

export const listed_columns = `id, status, type, key, agent_id, workflow_id, on_unknown, lease_ms, lease_ms_max, payload_hash,
     effective_hash, checkpoint_id, permit_expires_at, revoked, refused_as, question_id, fence, lease_token_hash, lease_until,
     held_by, resolved_by, finished_at, created_at, updated_at, note, error`
/** Columns that may be large. */
export const texts = ['payload', 'effective_payload', 'result', 'error', 'note']
export const columns = `${listed_columns}, payload, effective_payload, result`

export const here = 'tenant_id = :tenant_id and id = :id'

/** The condition of a move. */
export function from(...names: (keyof typeof Moves)[]): string {
  const statuses = new Set(names.flatMap((name): readonly EffectStatus[] => moves[name].from))
  return `status in (${[...statuses].map((status) => `'${status}'`).join(', ')})`
}

/** An effect that ends: its texts are kept for kept_ms from now. */
export const ended = 'held = 0, finished_at = :now, updated_at = :now, forget_at = kept_ms + :now'
export const no_lease = 'lease_token_hash = null, lease_until = null'
/** Back to where it can be started. */
export const startable = `case when checkpoint_id is null then 'ready' else 'approved' end`

// One statement for the pair, and for the policies, which no effect may bypass: `policies_known` is 1 once they were read.
const INSERT = writesRow<{ id: string }>(
  'effects.insert',
  `insert into effects
     (tenant_id, id, status, type, key, agent_id, workflow_id, on_unknown, lease_ms, lease_ms_max, payload_hash,
      checkpoint_id, permit_expires_at, fence, lease_token_hash, lease_until, held_by, kept_ms, kept_bytes, created_at, updated_at, note,
      payload)
   select :tenant_id, :id, :status, :type, :key, :agent_id, :workflow_id, :on_unknown, :lease_ms, :lease_ms_max,
          :payload_hash, :checkpoint_id, :permit_expires_at, :fence, :lease_token_hash, :lease_until, :held_by, :kept_ms, :kept_bytes, :now,
          :now, :note, :payload
    where :policies_known = 1 or not exists
          (select 1 from effect_policies
            where effect_policies.tenant_id = :tenant_id and effect_policies.type in (:type, '*')
              and (approval = 'required' or lease_seconds_max is not null))
   on conflict (tenant_id, key, type) do nothing`,
  'id', // Citus counts the rows that were selected, and returns those that were inserted
  `effects where ${here}`,
)

const FIND = sql<WholeEffect>('effects.find', `select ${columns} from effects where ${here}`)

const FIND_PAIR = sql<WholeEffect>(
  'effects.find_pair',
  `select ${columns} from effects {by effects_pair}
    where tenant_id = :tenant_id and type = :type and key = :key`,
)

/** As long as asked for, or as the lease before, and not longer than its policy allowed then. */
const lease_ms = `case when :lease_ms > coalesce(lease_ms_max, :lease_ms) then lease_ms_max
                       when :lease_ms = 0 then lease_ms else :lease_ms end`
const lease = `lease_until = :at + ${lease_ms}, updated_at = :now`
export const new_lease = `status = 'running', fence = fence + 1, lease_token_hash = :lease_token_hash, held_by = :agent_id, held = 0,
          resolved_by = null, lease_ms = ${lease_ms}, ${lease}`

/** Not under the token of a lease that was released: that is a late repeat of the call that got it. */
export const new_token = '(lease_until is not null or lease_token_hash is distinct from :lease_token_hash)'

// Of any number of racers exactly one: the others find it running.
const START = sql<WholeEffect>(
  'effects.start',
  `update effects set ${new_lease}
    where ${here} and ${from('start')} and ${new_token} and revoked = 0 and (permit_expires_at is null or permit_expires_at > :now)
      and (:payload_hash = '' or :payload_hash = coalesce(effective_hash, payload_hash))
      and (checkpoint_id is not null or :policies_known = 1 or :policies_known = 0 and not exists
           (select 1 from effect_policies
             where effect_policies.tenant_id = :tenant_id and effect_policies.type in (effects.type, '*')
               and approval = 'required'))
   returning ${columns}`,
)

export const held = 'lease_token_hash = :lease_token_hash'

const EXTEND = sql<WholeEffect>(
  'effects.extend',
  `update effects set ${lease}
    where ${here} and ${from('extend')} and ${held} and lease_until > :at
   returning ${columns}`,
)

/** Members that a new effect does not have yet. */
const later = {
  ...{ effective_hash: null, effective_payload: null, refused_as: null, question_id: null },
  revoked: 0,
  ...{ resolved_by: null, finished_at: null, error: null, result: null },
}

export interface NewEffect extends Omit<WholeEffect, keyof typeof later | 'created_at' | 'updated_at'> {
  status: 'running' | 'awaiting_approval'
  payload: string
  kept_ms: Millis | null
  kept_bytes: number
  /** 1: the policies were read. 0: null is returned when one might apply. */
  policies_known: 0 | 1
}

/** Null when the pair is there already, or a policy might apply. The row is as it was given, and is not read again. */
export async function insert(tx: Tx, tenant_id: string, effect: NewEffect): Promise<WholeEffect | null> {
  const inserted = await tx.one(INSERT, { tenant_id, ...effect, now: tx.now })
  return inserted === null ? null : { ...effect, ...later, created_at: tx.now, updated_at: tx.now }
}

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}

export function findPair(q: Reader, tenant_id: string, type: string, key: string) {
  return q.one(FIND_PAIR, { tenant_id, type, key })
}

export interface NewLease {
  agent_id: string
  lease_token_hash: string
  /** 0: as long as the lease before, or as its claim said. */
  lease_ms: Millis
  /** Of the bytes that the start is for; empty: any. */
  payload_hash: string
  /** 1: none asks for an approval. 2: nothing starts without one. 0: the policies say. */
  policies_known: 0 | 1 | 2
}

/** Null unless it may be started now. */
export function start(tx: Tx, tenant_id: string, id: string, lease: NewLease) {
  return tx.one(START, { tenant_id, id, ...lease, at: tx.now, now: tx.now })
}

/** Null unless this lease holds `at` that time. */
export function extend(
  tx: Tx,
  tenant_id: string,
  id: string,
  lease: { lease_token_hash: string; lease_ms: Millis; at: Millis },
) {
  return tx.one(EXTEND, { tenant_id, id, ...lease, now: tx.now })
}
