// Policies: an admin says what effects of a type need.

import './errors.ts'
import { ApiError, type Issue, invalid } from '../base/errors.ts'
import type { AdminCaller } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import { causeOf } from '../contract/event.ts'
import * as credentials from '../credentials/service.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { row_bytes, rowBytes, textBytes } from '../db/stored.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { events } from './events.ts'
import { approversOf, type PolicyRow } from './policy.ts'
import * as store from './policy-store.ts'

/** Throws EFFECT_POLICY_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, type: string): Promise<PolicyRow> {
  const policy = await store.find(q, tenant_id, type)
  if (!policy) throw new ApiError('EFFECT_POLICY_NOT_FOUND')
  return policy
}

/** Effects that are under way keep what they began with. Throws QUOTA_EXCEEDED for one policy too many. */
export function set(
  db: Db,
  caller: AdminCaller,
  dependencies: { plans: Plans },
  settings: store.Settings,
): Promise<PolicyRow> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    await requireApprovers(tx, tenant_id, settings)
    const policy = await put(tx, caller, dependencies.plans, settings)
    const { approval, required_approvals, lease_seconds_max } = policy
    await journal.emit(tx, events['effect_policy.updated'], {
      ...aboutOf(caller, policy.type),
      data: {
        ...{ approval, required_approvals, lease_seconds_max },
        approvers: approversOf(policy)?.join(' ') ?? null,
      },
    })
    return policy
  })
}

/** Throws VALIDATION_FAILED for a policy that nobody could satisfy. */
async function requireApprovers(tx: Tx, tenant_id: string, settings: store.Settings): Promise<void> {
  const approvers = approversOf(settings)
  if (approvers === null) return
  const issues: Issue[] = []
  for (const [i, approver] of approvers.entries()) {
    const message = approver === 'admin' ? null : await credentials.voterIssue(tx, tenant_id, approver)
    if (message) issues.push({ path: `/approvers/${i}`, message })
  }
  if (settings.required_approvals > approvers.length)
    issues.push({
      path: '/required_approvals',
      message: `must not exceed the number of approvers, ${approvers.length}`,
    })
  if (issues.length > 0) throw invalid(...issues)
}

async function put(tx: Tx, caller: AdminCaller, plans: Plans, settings: store.Settings): Promise<PolicyRow> {
  const { tenant_id } = caller
  const { type, approvers } = settings
  for (;;) {
    const before = await store.find(tx, tenant_id, type)
    const bytes = before ? textBytes(approvers) - textBytes(before.approvers) : rowBytes(type, approvers)
    quotas.reserveBytes(tx, caller, plans, bytes)
    const policy = before
      ? await store.update(tx, tenant_id, settings, before)
      : await store.insert(tx, tenant_id, settings)
    if (policy && !before) await quotas.reserve(tx, caller, plans, 'effect_policies')
    if (policy) return policy
    // Another call came between: what was reserved for this one is not needed.
    tx.stores(tenant_id, -bytes)
  }
}

/** Throws EFFECT_POLICY_NOT_FOUND. */
export function remove(db: Db, caller: AdminCaller, type: string): Promise<void> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    const removed = await store.remove(tx, tenant_id, type)
    if (!removed) throw new ApiError('EFFECT_POLICY_NOT_FOUND')
    tx.stores(tenant_id, -row_bytes - textBytes(removed.type) - textBytes(removed.approvers))
    await quotas.release(tx, tenant_id, 'effect_policies', 1)
    await journal.emit(tx, events['effect_policy.deleted'], { ...aboutOf(caller, type), data: {} })
  })
}

function aboutOf(caller: AdminCaller, type: string) {
  return { tenant_id: caller.tenant_id, cause: causeOf(caller), subject_id: type }
}
