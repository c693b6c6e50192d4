// Statements that end leases, remove old texts, and purge.

import type { Millis } from '../base/clock.ts'
import { inChunk } from '../db/chunk.ts'
import { acrossTenants, of_shard, type Reader, sql, type Tx } from '../db/db.ts'
import { purging } from '../db/purge.ts'
import type { Due } from '../db/sweep-tenants.ts'
import type { FrozenDeadlines } from '../tenants/service.ts'
import type { WholeEffect } from './effect.ts'
import { listed_columns, texts } from './store.ts'

const table = { table: 'effects', key: 'tenant_id, id' }

const TENANTS_RUN_OUT = acrossTenants<Due>(
  'effects.tenants_run_out',
  `select tenant_id, count(*) as due, max(lease_until) as until from
     (select tenant_id, lease_until from effects {by effects_leased}
       where status = 'running' and held = 0 and lease_until <= :now and lease_until >= :due_from
       order by lease_until limit :rows_max) as due
    group by tenant_id`,
)

// An update writes the whole row again, payload included, so bytes are bounded as well.
const run_out_leases = {
  ...{ ...table, texts, index: 'effects_leased', order: 'lease_until', skip_locked: true },
  where: `${of_shard} status = 'running' and held = 0 and lease_until <= :due_until and tenant_id = :tenant_id`,
}

const after_run_out =
  "case when on_unknown <> 'retry' then 'unknown' when checkpoint_id is null then 'ready' else 'approved' end"

// The lease keeps its end and its token: its holder may still report. A lease ends that had run out before a freeze, or ran
// out after it was moved. The others hold until they are moved. One statement, so that no lease falls between the two.
const has_run_out = '(lease_until <= :frozen_at or (id <= :last_moved_id and lease_until <= :moved_now))'
const RUN_OUT = sql<WholeEffect>(
  'effects.run_out',
  `update effects
      set held = case when ${has_run_out} then 0 else 1 end,
          status = case when ${has_run_out} then ${after_run_out} else status end,
          updated_at = case when ${has_run_out} then :now else updated_at end
    where ${inChunk(run_out_leases)}
   returning ${listed_columns}, null as payload, null as effective_payload, null as result`,
)

const ASK = sql(
  'effects.ask',
  'update effects set question_id = :question_id where tenant_id = :tenant_id and id = :id',
)

const TENANTS_FORGETTING = acrossTenants<Due>(
  'effects.tenants_forgetting',
  `select tenant_id, count(*) as due, max(forget_at) as until from
     (select tenant_id, forget_at from effects {by effects_forget}
       where forget_at is not null and forget_at <= :now and forget_at >= :due_from
       order by forget_at limit :rows_max) as due
    group by tenant_id`,
)

const FORGET = sql<{ id: string; checkpoint_id: string | null; kept_bytes: number }>(
  'effects.forget',
  `update effects set payload = null, effective_payload = null, result = null, forget_at = null
    where ${inChunk({
      ...{
        ...table,
        texts,
        index: 'effects_forget',
        order: 'forget_at',
        skip_locked: true,
      },
      where: `${of_shard} forget_at is not null and forget_at <= :due_until and tenant_id = :tenant_id`,
    })}
   returning id, checkpoint_id, kept_bytes`,
)

/** Tenants of the `rows_max` leases that ran out first since `due_from`. */
export function tenantsRunOut(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_RUN_OUT, { now, due_from, rows_max })
}

/**
 * Ends the leases that had run out by `until`, beyond which nothing is walked; returns the effects without their payloads. `held`:
 * leases that would have run out while their tenant is frozen; they are marked, so that no sweep reads them again before they
 * are moved.
 */
export async function runOut(
  tx: Tx,
  { tenant_id, until: due_until }: Due,
  deadlines: FrozenDeadlines,
  rows_max: number,
  bytes_max: number,
): Promise<{ effects: WholeEffect[]; held: number }> {
  const params = { tenant_id, due_until, ...deadlines, now: tx.now, rows_max, bytes_max }
  const rows = await tx.all(RUN_OUT, params)
  const effects = rows.filter(({ status }) => status !== 'running')
  return { effects, held: rows.length - effects.length }
}

/** A person is asked what became of it. */
export function ask(tx: Tx, tenant_id: string, id: string, question_id: string) {
  return tx.run(ASK, { tenant_id, id, question_id })
}

/** Tenants of the `rows_max` effects whose texts are due for removal first since `due_from`. */
export function tenantsForgetting(q: Reader, now: Millis, due_from: Millis, rows_max: number) {
  return q.all(TENANTS_FORGETTING, { now, due_from, rows_max })
}

/** Removes payload and result; `kept_bytes` are the bytes that each had. */
export function forget(tx: Tx, { tenant_id, until }: Due, rows_max: number, bytes_max: number) {
  return tx.all(FORGET, { tenant_id, due_until: until, rows_max, bytes_max })
}

export const purge = [
  purging('effects.purge', { ...table, texts }),
  purging('effects.purge_policies', { table: 'effect_policies', key: 'tenant_id, type' }),
]

/** When the next one expires after `now`. */
export const NEXT_EXPIRY = acrossTenants<{ at: Millis }>(
  'effects.next_expiry',
  `select lease_until as at from effects {by effects_leased}
    where status = 'running' and held = 0 and lease_until > :now order by lease_until limit 1`,
)
