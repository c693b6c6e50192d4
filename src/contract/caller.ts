// The caller of a request. Derived by the server from the presented key; a client never names its tenant.

import type { StoredCounter } from '../db/db.ts'

export interface TenantFacts {
  tenant_id: string
  plan: string
  status: 'active' | 'pending_deletion'
  /** The counter of stored bytes when the tenant was looked up, at most a second ago. Absent: none. */
  stored?: StoredCounter
  /** The operator's limit for this tenant alone. Null or absent: the plan's. */
  storage_bytes_max?: number | null
}

export interface AdminCaller extends TenantFacts {
  kind: 'admin'
}

export interface AgentCaller extends TenantFacts {
  kind: 'agent'
  agent_id: string
}

export interface ApprovalCaller extends TenantFacts {
  kind: 'approval'
  approval_key_id: string
  /** The one checkpoint it may decide; null for all of the tenant. */
  checkpoint_id: string | null
}

export type Caller = AdminCaller | AgentCaller | ApprovalCaller
export type CallerKind = Caller['kind']

/** The author in records: `admin`, or the agent's id. */
export function actorOf(caller: AdminCaller | AgentCaller): string {
  return caller.kind === 'agent' ? caller.agent_id : 'admin'
}
