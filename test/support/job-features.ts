// Jobs as the features enqueue them, and what became of them.

import type { CheckpointRow } from '../../src/checkpoints/checkpoint.ts'
import * as checkpoints from '../../src/checkpoints/service.ts'
import type { AgentCaller } from '../../src/contract/caller.ts'
import { upkeep } from '../../src/db/db.ts'
import type { ScheduleRow } from '../../src/schedules/schedule.ts'
import * as schedules from '../../src/schedules/service.ts'
import type { Bench } from './job-bench.ts'
import { requested } from './requested.ts'

export const hook = 'http://hook.test'

/** Due now, unless told otherwise. */
export function schedule(
  { db, dependencies, clock }: Bench,
  caller: AgentCaller,
  over: Partial<Parameters<typeof schedules.create>[3]> = {},
): Promise<ScheduleRow> {
  const settings = {
    ...{
      callback_url: `${hook}/path`,
      callback_payload: '{"n": 1}',
      fire_at: clock.now(),
      dlq_on_failure: 0,
    },
    ...over,
  }
  return db.write((tx) => schedules.create(tx, caller, dependencies, settings))
}

/** All in one transaction. */
export function manySchedules(
  { db, dependencies, clock }: Bench,
  caller: AgentCaller,
  count: number,
  over: (i: number) => Partial<Parameters<typeof schedules.create>[3]> = () => ({}),
): Promise<void> {
  return db.write(upkeep, async (tx) => {
    for (let i = 0; i < count; i++) {
      await schedules.create(tx, caller, dependencies, { ...settings(clock.now()), ...over(i) })
    }
  })
}

function settings(fire_at: number) {
  return { callback_url: `${hook}/path`, callback_payload: '{"n": 1}', fire_at, dlq_on_failure: 0 }
}

/** Times out in an hour, unless told otherwise. */
export function checkpoint(
  { db, dependencies, clock }: Bench,
  caller: AgentCaller,
  over: Partial<Parameters<typeof checkpoints.create>[3]> = {},
): Promise<CheckpointRow> {
  const input = {
    ...{ title: 'May I?', prompt: null, callback_url: `${hook}/decided`, callback_payload: null },
    ...{ workflow_id: null, timeout_action: 'auto_reject' as const, expires_at: clock.now() + 3_600_000 },
    ...checkpoints.steeringOf({}),
    ...over,
  }
  return db.write((tx) => checkpoints.create(tx, caller, dependencies, input))
}

export function approve(
  { db, dependencies }: Bench,
  { tenant_id, plan, status }: AgentCaller,
  id: string,
): Promise<CheckpointRow> {
  return checkpoints.decide(db, { kind: 'admin', tenant_id, plan, status, ...requested }, dependencies, id, {
    status: 'approved',
    reason: null,
  })
}

export interface DeadLetter {
  payload: string
  error: string
  source: string
  source_id: string
  agent_id: string
  status: string
}

export function deadLetters(bench: Bench, tenant_id: string): Promise<DeadLetter[]> {
  return bench.rows<DeadLetter>(
    `select payload, error, source, source_id, agent_id, status from dlq_items where tenant_id = :tenant_id order by id`,
    { tenant_id },
  )
}

export interface LoggedAttempt {
  attempt: number
  error: string | null
  status_code: number | null
}

/** Oldest first. */
export function attemptsOf(bench: Bench, source_id: string): Promise<LoggedAttempt[]> {
  return bench.rows<LoggedAttempt>(
    'select attempt, error, status_code from attempts where source_id = :source_id order by seq',
    { source_id },
  )
}

export async function usedOf(bench: Bench, tenant_id: string, quota: string): Promise<number> {
  const [row] = await bench.rows<{ used: number }>(
    'select used from quota_usage where tenant_id = :tenant_id and quota = :quota',
    { tenant_id, quota },
  )
  return row!.used
}
