// What handlers may use besides the database. Each takes out only what it needs.

import type { Clock, Millis } from '../base/clock.ts'
import type { Gate } from '../base/gate.ts'
import type { MemoryBudget } from '../base/memory.ts'
import type { Waiters } from '../base/waiters.ts'
import type { Awaitable } from '../db/db.ts'
import type { Caller, TenantFacts } from './caller.ts'

/** A number per plan; null is unlimited. Durations in seconds. */
export interface Plan {
  agents: number | null
  kv_keys: number | null
  dlq_items: number | null
  active_schedules: number | null
  inboxes: number | null
  api_calls_per_month: number | null
  storage_bytes: number | null
  inbox_messages: number | null
  inbox_ttl_seconds: number | null
}

export type Plans = Readonly<Record<string, Plan>>

/** Seals and opens what must not lie in the database in clear. */
export interface Secrets {
  seal(context: string, text: string): string
  open(context: string, sealed: string): string
}

/** Bounded memory of keys that were valid at most a second ago. */
export interface KeyCache {
  get(key: string): { caller: Caller; expires_at: number | null } | null
  /** Asked before the look-up; what `put` gets must carry it, so that a rotation in between wins. */
  generation(): number
  put(key: string, generation: number, caller: Caller, expires_at: number | null): void
  /** Forgets all: called after a commit that ended a key or changed a tenant. */
  clear(): void
}

/** Calls of /api in the calendar month. */
export interface MonthlyCalls {
  /** Counts one. Throws QUOTA_EXCEEDED at the limit of the plan, which counts none. */
  take(caller: TenantFacts, plans: Plans, now: Millis): Awaitable<void>
  /** What was counted so far, on this node to the call and on others to the second. Not within a transaction. */
  used(tenant_id: string, now: Millis): Promise<number>
}

/** Calls by the hour and by feature. */
export interface UsageCounts {
  /** Counts a call, in memory. `feature`: the name under which it is counted. */
  count(tenant_id: string, feature: string, failed: boolean, now: Millis): void
  /** Writes what this node has counted. Not within a transaction. */
  flush(): Promise<void>
}

export interface Readiness {
  /** Why no requests should be sent here; null when they may. */
  reason: string | null
  version: string
  engine: 'sqlite' | 'postgres'
  schema_version: number
  durability: Record<string, string | number>
}

export interface Services {
  plans: Plans
  secrets: Secrets
  key_cache: KeyCache
  calls: MonthlyCalls
  usage: UsageCounts
  cursor_key: Buffer
  signup_open: boolean
  /** PUBLIC_URL, without a slash at the end. */
  public_url(): string
  /** Why this URL may not be called, or null. Looks its name up once, for 500 ms at most. */
  callbackRefusal(tenant_id: string, url: string): Promise<string | null>
  waiters: Waiters
  /** Before a write that all callers of one key make to the same row. */
  gate: Gate
  clock: Clock
  /** Shared by request bodies and answers. */
  memory: MemoryBudget
  /** A job falls due then. */
  wake(due_at: Millis): void
  /** The jobs of some tenant are to be paused, or resumed, in steps. */
  pauseOrResume(): void
  readiness(): Promise<Readiness>
  openapi_text(): string
  /** The summary that POST /v1/tick answers. */
  tick(): Promise<object>
}
