// What handlers may use besides the database. Each takes out only what it needs.

import type { Clock, Millis } from '../base/clock.ts'
import type { Waiters } from '../base/waiters.ts'
import type { Caller } from './caller.ts'

/** A number per plan; null is unlimited. Durations in seconds. */
export interface Plan {
  agents: number | null
  kv_keys: number | null
  dlq_items: number | null
  active_schedules: number | null
  inboxes: number | null
  api_calls_per_month: number | null
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
  cursor_key: Buffer
  signup_open: boolean
  /** Why this URL may not be called, or null. Looks its name up once, for 500 ms at most. */
  callbackRefusal(url: string): Promise<string | null>
  waiters: Waiters
  clock: Clock
  /** Tells the ticker that work falls due then. */
  wake(due_at: Millis): void
  /** Tells the ticker that some tenant's work is to rest, or to be taken up again, in steps. */
  rest(): void
  readiness(): Promise<Readiness>
  openapi_text(): string
  /** The summary that POST /v1/tick answers. */
  tick(): Promise<object>
}
