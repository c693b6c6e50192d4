// The caller of a request. Derived by the server from the presented key; a client never names its tenant.

import type { Millis } from '../base/clock.ts'
import type { StoredCounter } from '../db/db.ts'

export interface TenantFacts {
  tenant_id: string
  plan: string
  status: 'active' | 'pending_deletion'
  /** The counter of stored bytes when the tenant was looked up, at most a second ago. Absent: none. */
  stored?: StoredCounter
  /** The operator's limit for this tenant alone. Null or absent: the plan's. */
  storage_bytes_max?: number | null
  /** True when a namespace of the tenant leaves events. Absent: not known, for work that puts no keys. */
  kv_events?: boolean
  /** Since when the tenant is frozen. Null or absent: it is not. */
  frozen_at?: Millis | null
  /** When it was frozen again, while its resume from the freeze before goes on. Null or absent: it was not. */
  frozen_again_at?: Millis | null
  /** Of the freeze that holds. */
  frozen_reason?: string | null
}

/** full: as any agent. read: it changes nothing. propose: its effects wait for an approval. */
export const agent_modes = ['full', 'read', 'propose'] as const
export type AgentMode = (typeof agent_modes)[number]

/** The request that a caller makes, for the events that it leaves. */
export interface Requested {
  request_id: string
  /** The header X-Workflow-Id: its events belong to this workflow, unless the thing itself belongs to another. */
  workflow_id: string | null
}

interface AdminHolder extends TenantFacts {
  kind: 'admin'
  /** Of the key, which may have ended since it was looked up. Absent: no key asks. */
  key_hash?: string
}

interface AgentHolder extends TenantFacts {
  kind: 'agent'
  agent_id: string
  /** Absent: full. */
  mode?: AgentMode
  /** Since when it is paused. Null or absent: it is not. */
  paused_at?: Millis | null
  paused_reason?: string | null
}

interface ApprovalHolder extends TenantFacts {
  kind: 'approval'
  approval_key_id: string
  /** The one checkpoint it may decide; null for all of the tenant. */
  checkpoint_id: string | null
  /** The name of the person or bot that has it. */
  label: string | null
}

/** The holder of a key, whatever it is used for. */
export type KeyHolder = AdminHolder | AgentHolder | ApprovalHolder

export type AdminCaller = AdminHolder & Requested
export type AgentCaller = AgentHolder & Requested
export type ApprovalCaller = ApprovalHolder & Requested
export type Caller = AdminCaller | AgentCaller | ApprovalCaller
export type CallerKind = Caller['kind']

/** The author in records: `admin`, or the agent's id. */
export function actorOf(caller: AdminCaller | AgentCaller): string {
  return caller.kind === 'agent' ? caller.agent_id : 'admin'
}
