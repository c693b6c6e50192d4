// Every statement that moves an effect. Each is guarded by the statuses that effect.ts lets it come from.

import type { Millis } from '../base/clock.ts'
import { type Reader, sql, type Tx } from '../db/db.ts'
import { type EffectStatus, type moves as Moves, moves, type refusals, type WholeEffect } from './effect.ts'

export const listed_columns = `id, status, type, key, agent_id, workflow_id, on_unknown, lease_ms, lease_ms_max, payload_hash,
     effective_hash, checkpoint_id, permit_expires_at, refused_as, question_id, fence, lease_token_hash, lease_until,
     held_by, resolved_by, finished_at, created_at, updated_at, note, error`
const columns = `${listed_columns}, payload, effective_payload, result`

const here = 'tenant_id = :tenant_id and id = :id'

/** The condition of a move. */
function from(...names: (keyof typeof Moves)[]): string {
  const statuses = new Set(names.flatMap((name): readonly EffectStatus[] => moves[name].from))
  return `status in (${[...statuses].map((status) => `'${status}'`).join(', ')})`
}

/** An effect that ends: its texts are kept for kept_ms from now. */
const ended = 'finished_at = :now, updated_at = :now, forget_at = kept_ms + :now'
const no_lease = 'lease_token_hash = null, lease_until = null'
/** Back to where it can be started. */
const startable = `case when checkpoint_id is null then 'ready' else 'approved' end`

// One statement for the pair, and for the policies that no effect may go around: `policies_known` for one that was made with
// them in mind.
const INSERT = sql<WholeEffect>(
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
   on conflict (tenant_id, key, type) do nothing
   returning ${columns}`,
)

const FIND = sql<WholeEffect>('effects.find', `select ${columns} from effects where ${here}`)

const FIND_PAIR = sql<WholeEffect>(
  'effects.find_pair',
  `select ${columns} from effects {by effects_pair}
    where tenant_id = :tenant_id and type = :type and key = :key`,
)

/** As long as asked for, or as its claim said, and not longer than its policy allowed then. */
const lease_ms = `case when :lease_ms > coalesce(lease_ms_max, :lease_ms) then lease_ms_max
                       when :lease_ms = 0 then lease_ms else :lease_ms end`
const lease = `lease_until = :at + ${lease_ms}, updated_at = :now`
const new_lease = `status = 'running', fence = fence + 1, lease_token_hash = :lease_token_hash, held_by = :agent_id, ${lease}`

// Of any number of racers exactly one: the others find it running.
const START = sql<WholeEffect>(
  'effects.start',
  `update effects set ${new_lease}
    where ${here} and ${from('start')} and (permit_expires_at is null or permit_expires_at > :now)
      and (:payload_hash = '' or :payload_hash = coalesce(effective_hash, payload_hash))
      and (checkpoint_id is not null or :policies_known = 1 or :policies_known = 0 and not exists
           (select 1 from effect_policies
             where effect_policies.tenant_id = :tenant_id and effect_policies.type in (effects.type, '*')
               and approval = 'required'))
   returning ${columns}`,
)

const PROPOSE = sql<WholeEffect>(
  'effects.propose',
  `update effects set status = 'awaiting_approval', checkpoint_id = :checkpoint_id, ${no_lease}, updated_at = :now
    where ${here} and ${from('propose')} and checkpoint_id is null
   returning ${columns}`,
)

const APPROVE = sql<WholeEffect>(
  'effects.approve',
  `update effects
      set status = 'approved', permit_expires_at = :permit_expires_at, effective_hash = :effective_hash,
          effective_payload = :effective_payload, kept_bytes = kept_bytes + :more_bytes, updated_at = :now
    where ${here} and ${from('approve')} and checkpoint_id = :checkpoint_id
   returning ${columns}`,
)

const refused = `status = 'rejected', refused_as = :refused_as, ${ended}`

const REFUSE = sql<WholeEffect>(
  'effects.refuse',
  `update effects set ${refused}
    where ${here} and ${from('refuse')} and checkpoint_id = :checkpoint_id
   returning ${columns}`,
)

const EXPIRE_PERMIT = sql<WholeEffect>(
  'effects.expire_permit',
  `update effects set ${refused}, ${no_lease}
    where ${here} and ${from('expire_permit')} and permit_expires_at <= :now
   returning ${columns}`,
)

const held = 'lease_token_hash = :lease_token_hash'

const EXTEND = sql<WholeEffect>(
  'effects.extend',
  `update effects set ${lease}
    where ${here} and ${from('extend')} and ${held} and lease_until > :at
   returning ${columns}`,
)

// A lease that was settled has no end any more; one that ran out has it in the past, and its holder may still report. While a
// person is asked what became of it, the question is withdrawn first: a decision takes the rows in the same order.
const reported = `${held} and lease_until is not null and question_id is null`

const succeeded = `status = 'succeeded', result = :result, kept_bytes = kept_bytes + :more_bytes, lease_until = null, ${ended}`

const SUCCEED = sql<WholeEffect>(
  'effects.succeed',
  `update effects set ${succeeded} where ${here} and status = 'running' and ${reported} returning ${columns}`,
)

const SUCCEED_LATE = sql<WholeEffect>(
  'effects.succeed_late',
  `update effects set ${succeeded} where ${here} and ${from('succeed')} and ${reported} returning ${columns}`,
)

const FAIL = sql<WholeEffect>(
  'effects.fail',
  `update effects set status = 'failed', error = :error, lease_until = null, ${ended}
    where ${here} and ${from('fail')} and ${reported}
   returning ${columns}`,
)

const RELEASE = sql<WholeEffect>(
  'effects.release',
  `update effects set status = ${startable}, error = :error, lease_until = null, updated_at = :now
    where ${here} and ${from('fail_retry', 'fail_retry_with_permit')} and ${reported}
   returning ${columns}`,
)

const RESOLVE = sql<WholeEffect>(
  'effects.resolve',
  `update effects
      set status = :status, result = :result, error = :error, kept_bytes = kept_bytes + :more_bytes,
          resolved_by = :resolved_by, ${no_lease}, ${ended}
    where ${here} and ${from('resolve_succeeded', 'resolve_failed')} and question_id is null
   returning ${columns}`,
)

const RESOLVE_RETRY = sql<WholeEffect>(
  'effects.resolve_retry',
  `update effects
      set status = ${startable}, resolved_by = :resolved_by, ${no_lease}, updated_at = :now
    where ${here} and ${from('resolve_retry', 'resolve_retry_with_permit')} and question_id is null
   returning ${columns}`,
)

const END_QUESTION = sql(
  'effects.end_question',
  `update effects set question_id = null where ${here} and question_id = :question_id`,
)

export interface NewEffect {
  id: string
  status: 'running' | 'awaiting_approval'
  type: string
  key: string
  agent_id: string
  workflow_id: string | null
  on_unknown: string
  lease_ms: Millis
  lease_ms_max: Millis | null
  payload_hash: string
  checkpoint_id: string | null
  permit_expires_at: Millis | null
  fence: number
  lease_token_hash: string | null
  lease_until: Millis | null
  held_by: string | null
  kept_ms: Millis | null
  kept_bytes: number
  note: string | null
  payload: string
  /** 1: the policies were read. 0: null is returned when one might apply. */
  policies_known: 0 | 1
}

/** Null when the pair is there already, or a policy might apply. */
export function insert(tx: Tx, tenant_id: string, effect: NewEffect) {
  return tx.one(INSERT, { tenant_id, ...effect, now: tx.now })
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
  /** 0: as long as its claim said. */
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

/** Null unless it is ready and has no approval. */
export function propose(tx: Tx, tenant_id: string, id: string, checkpoint_id: string) {
  return tx.one(PROPOSE, { tenant_id, id, checkpoint_id, now: tx.now })
}

interface Permit {
  permit_expires_at: Millis | null
  effective_hash: string | null
  effective_payload: string | null
  more_bytes: number
}

/** Null unless it waits for this checkpoint. */
export function approve(tx: Tx, tenant_id: string, id: string, checkpoint_id: string, permit: Permit) {
  return tx.one(APPROVE, { tenant_id, id, checkpoint_id, ...permit, now: tx.now })
}

type Refusal = (typeof refusals)[number]

/** Null unless it waits for this checkpoint. */
export function refuse(tx: Tx, tenant_id: string, id: string, checkpoint_id: string, refused_as: Refusal) {
  return tx.one(REFUSE, { tenant_id, id, checkpoint_id, refused_as, now: tx.now })
}

/** Null unless its permit is over. */
export function expirePermit(tx: Tx, tenant_id: string, id: string) {
  return tx.one(EXPIRE_PERMIT, { tenant_id, id, refused_as: 'expired' satisfies Refusal, now: tx.now })
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

interface Success {
  lease_token_hash: string
  /** JSON text. */
  result: string | null
  more_bytes: number
}

/** Null unless it is running under this lease. */
export function succeed(tx: Tx, tenant_id: string, id: string, success: Success) {
  return tx.one(SUCCEED, { tenant_id, id, ...success, now: tx.now })
}

/** The same after the lease has run out, as long as nobody has decided otherwise. */
export function succeedLate(tx: Tx, tenant_id: string, id: string, success: Success) {
  return tx.one(SUCCEED_LATE, { tenant_id, id, ...success, now: tx.now })
}

interface Failure {
  lease_token_hash: string
  error: string
}

/** Null unless this lease may report it; so is `release`. */
export function fail(tx: Tx, tenant_id: string, id: string, failure: Failure) {
  return tx.one(FAIL, { tenant_id, id, ...failure, now: tx.now })
}

export function release(tx: Tx, tenant_id: string, id: string, failure: Failure) {
  return tx.one(RELEASE, { tenant_id, id, ...failure, now: tx.now })
}

interface Resolution {
  status: 'succeeded' | 'failed'
  result: string | null
  error: string | null
  more_bytes: number
  resolved_by: string
}

/** Null unless it may be resolved, and nobody is asked. */
export function resolve(tx: Tx, tenant_id: string, id: string, resolution: Resolution) {
  return tx.one(RESOLVE, { tenant_id, id, ...resolution, now: tx.now })
}

export function resolveRetry(tx: Tx, tenant_id: string, id: string, resolved_by: string) {
  return tx.one(RESOLVE_RETRY, { tenant_id, id, resolved_by, now: tx.now })
}

/** Nobody is asked any more what became of it. */
export function endQuestion(tx: Tx, tenant_id: string, id: string, question_id: string) {
  return tx.run(END_QUESTION, { tenant_id, id, question_id })
}
