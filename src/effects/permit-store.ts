// Statements by which an effect gets its approval, or loses it.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { expired_counted_max } from '../quotas/service.ts'
import type { refusals, WholeEffect } from './effect.ts'
import {
  columns,
  ended,
  from,
  here,
  listed_columns,
  type NewLease,
  new_lease,
  new_token,
  no_lease,
  texts,
} from './store.ts'

const PROPOSE = sql<WholeEffect>(
  'effects.propose',
  `update effects set status = 'awaiting_approval', checkpoint_id = :checkpoint_id, ${no_lease}, updated_at = :now
    where ${here} and ${from('propose')} and checkpoint_id is null
   returning ${columns}`,
)

const START_UNDER = sql<WholeEffect>(
  'effects.start_under',
  `update effects set ${new_lease}, checkpoint_id = :checkpoint_id, permit_expires_at = :permit_expires_at
    where ${here} and ${from('start')} and ${new_token} and checkpoint_id is null
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

const is_over = '(revoked = 1 or permit_expires_at <= :now)'

const EXPIRE_PERMIT = sql<WholeEffect>(
  'effects.expire_permit',
  `update effects set ${refused}, ${no_lease}
    where ${here} and ${from('expire_permit')} and ${is_over} and lease_until is null
   returning ${columns}`,
)

const over_first = {
  ...{
    table: 'effects',
    key: 'tenant_id, id',
    index: 'effects_permit_over',
    order: 'tenant_id, permit_expires_at',
  },
  where: `${of_shard} status = 'approved' and lease_until is null and permit_expires_at is not null
            and tenant_id >= :tenant_id and (tenant_id, permit_expires_at) <= (:tenant_id, :now)`,
}

// Those that others hold are skipped: the counter is held, which a report takes behind its effect.
const EXPIRE_PERMITS = sql<WholeEffect>(
  'effects.expire_permits',
  `update effects set ${refused}, ${no_lease}
    where ${inChunk({ ...over_first, texts, skip_locked: true })}
   returning ${listed_columns}, null as payload, null as effective_payload, null as result`,
)

const COUNT_EXPIRED = sql<{ expired: number }>(
  'effects.count_expired',
  `select count(*) as expired
     from (select id from effects {by effects_permit_over}
             where ${over_first.where} order by ${over_first.order} limit :rows_max) as over_permits`,
)

// Its holder may still report.
const EXPIRE_UNREPORTED = sql<WholeEffect>(
  'effects.expire_unreported',
  `update effects set status = 'unknown', updated_at = :now
    where ${here} and ${from('expire_permit_unreported')} and ${is_over} and lease_until is not null
   returning ${columns}`,
)

const OPEN_UNDER = sql<{ id: string }>(
  'effects.open_under',
  `select id from effects {by effects_permit}
    where tenant_id = :tenant_id and checkpoint_id = :checkpoint_id and finished_at is null order by id`,
)

const END_PERMIT = sql<WholeEffect>(
  'effects.end_permit',
  `update effects set permit_expires_at = :now, revoked = 1, updated_at = :now
    where ${here} and finished_at is null and revoked = 0
   returning ${columns}`,
)

/** Null unless it is ready and has no approval. */
export function propose(tx: Tx, tenant_id: string, id: string, checkpoint_id: string) {
  return tx.one(PROPOSE, { tenant_id, id, checkpoint_id, now: tx.now })
}

/** The approval of another effect, of which a use was taken. */
export interface Under {
  checkpoint_id: string
  permit_expires_at: Millis | null
}

/** Null unless it is ready and has no approval. */
export function startUnder(tx: Tx, tenant_id: string, id: string, lease: NewLease & Under) {
  return tx.one(START_UNDER, { tenant_id, id, ...lease, at: tx.now, now: tx.now })
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

/** Null unless its permit is over, and no lease of it can be reported any more. */
export function expirePermit(tx: Tx, tenant_id: string, id: string) {
  return tx.one(EXPIRE_PERMIT, { tenant_id, id, refused_as: 'expired' satisfies Refusal, now: tx.now })
}

/** The first of those whose permit is over, and of which no lease can be reported any more, without their payloads. */
export function expirePermits(tx: Tx, tenant_id: string, rows_max: number, bytes_max: number) {
  const refused_as: Refusal = 'expired'
  return tx.all(EXPIRE_PERMITS, { tenant_id, refused_as, now: tx.now, rows_max, bytes_max })
}

/** Effects that count in the quota although nobody can start them any more; expired_counted_max at most. */
export async function countExpired(q: Reader, tenant_id: string, now: Millis): Promise<number> {
  return (await q.one(COUNT_EXPIRED, { tenant_id, now, rows_max: expired_counted_max }))!.expired
}

/** Null unless its permit is over, and its last lease ran out without a report. */
export function expireUnreported(tx: Tx, tenant_id: string, id: string) {
  return tx.one(EXPIRE_UNREPORTED, { tenant_id, id, now: tx.now })
}

/** The effects that have this approval and are not over: as many as it has uses at most. */
export function openUnder(tx: Tx, tenant_id: string, checkpoint_id: string) {
  return tx.all(OPEN_UNDER, { tenant_id, checkpoint_id })
}

/** Null when it is over, or its permit was ended before. */
export function endPermit(tx: Tx, tenant_id: string, id: string) {
  return tx.one(END_PERMIT, { tenant_id, id, now: tx.now })
}
