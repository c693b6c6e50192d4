// The job that widens the approvers of a checkpoint while nobody has decided it.

import type { Dependencies } from '../contract/dependencies.ts'
import type { Tx } from '../db/db.ts'
import { textBytes } from '../db/stored.ts'
import type { LocalKind } from '../jobs/kind.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import { aboutOf } from './about.ts'
import type { CheckpointRow } from './checkpoint.ts'
import { events } from './events.ts'
import { escalate, lock } from './settlement-store.ts'
import { nextEscalationAt, stepsOf, widened } from './steering.ts'

export const escalation_job: LocalKind = {
  name: 'escalation',
  starts_at_once: false,
  logged_as: null,
  message: null,
  async settle(tx, dependencies, job) {
    const { tenant_id, source_id: id } = job
    const row = await lock(tx, tenant_id, id)
    const due_at = row && nextEscalationAt(row)
    if (!row || due_at === null) {
      await jobs.complete(tx, job)
      return null
    }
    // Another node has made the step for which this lease was.
    if (due_at > tx.now) {
      await jobs.repeat(tx, dependencies.jobs, job, due_at)
      return null
    }
    const next_at = nextEscalationAt({ ...row, escalated: row.escalated + 1 })
    const held = await (next_at === null
      ? jobs.complete(tx, job)
      : jobs.repeat(tx, dependencies.jobs, job, Math.max(next_at, tx.now)))
    if (!held) return null
    await widen(tx, tenant_id, row)
    return null
  },
}

async function widen(tx: Tx, tenant_id: string, row: CheckpointRow): Promise<void> {
  const step = stepsOf(row)[row.escalated]!
  const approvers = widened(row, step)
  tx.stores(tenant_id, textBytes(approvers) - textBytes(row.approvers))
  await escalate(tx, tenant_id, row.id, approvers)
  await journal.emit(tx, events['checkpoint.escalated'], {
    ...aboutOf(tenant_id, row),
    data: { step: row.escalated + 1, approvers: step.approvers?.join(' ') ?? null },
  })
}

/** The first step of a new checkpoint that has any. */
export async function enqueueEscalation(
  tx: Tx,
  dependencies: { jobs: Pick<Dependencies['jobs'], 'wake'> },
  tenant_id: string,
  row: CheckpointRow,
): Promise<void> {
  const next_at = nextEscalationAt(row)
  if (next_at === null) return
  await jobs.enqueue(tx, dependencies.jobs, { tenant_id, kind: escalation_job, source_id: row.id, next_at })
}
