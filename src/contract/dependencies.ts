// The dependencies of handlers besides the database. Each uses only those that it needs.

import type { Clock, Millis } from '../base/clock.ts'
import type { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import type { MemoryBudget } from '../base/memory.ts'
import type { Notifier } from '../base/notifier.ts'
import type { Remembered } from '../base/remembered.ts'
import type { Awaitable, Tx } from '../db/db.ts'
import type { KeyHolder, TenantFacts } from './caller.ts'
import type { Deadlines } from './deadlines.ts'
import type { Decides } from './decides.ts'
import type { EventType } from './event.ts'
import type { CountedQuota } from './feature.ts'
import type { Redrives } from './redrive.ts'
import type { Tails } from './tails.ts'

/** A number per limit that features declare; null is unlimited. Durations in seconds. */
export type Plan = Readonly<Record<string, number | null>>

export type Plans = Readonly<Record<string, Plan>>

/** Seals and opens what must not lie in the database in clear. */
export interface Secrets {
  /** With the key that seals this database until the transaction ends. Throws UNAVAILABLE on a node that does not have it. */
  sealerIn(tx: Tx): Awaitable<Sealer>
  open(context: string, sealed: string): string
  /** By which a text is found again without being there: the same for the same text in the same context. */
  fingerprint(context: string, text: string): string
}

export interface Sealer {
  seal(context: string, text: string): string
}

/** When a key was asked for, and which changes were known then. */
export interface KeyAsked {
  at: number
  changes: number
}

/** Bounded memory of keys that were valid less than a second ago. */
export interface KeyCache {
  get(key: string): { caller: KeyHolder; expires_at: number | null } | null
  /** The keys that are remembered. */
  size(): number
  /** Called before the look-up and passed to `put`, so that a rotation in between wins. */
  ask(): KeyAsked
  put(key: string, asked: KeyAsked, caller: KeyHolder, expires_at: number | null): void
  /** Called after a commit that ended a key of the tenant or changed the tenant. Forgets its keys on every node. */
  clear(tenant_id: string): void
  /** Resolves when no node takes a caller any more for what it was before this call. */
  forgottenEverywhere(): Promise<void>
  /** Forgets the keys of a tenant, or of all, on this node. */
  forget(tenant_id: string | null): void
  /** Calls the listener whenever keys of the tenant are forgotten, until the function that it returns is called. */
  onForgotten(tenant_id: string, listener: () => void): () => void
}

/** Calls of /api in the calendar month. */
export interface MonthlyCalls {
  /** Counts one. At the limit of the plan throws QUOTA_EXCEEDED and counts none. */
  count(caller: TenantFacts, plans: Plans, now: Millis): Awaitable<void>
  /** The number counted so far, on this node to the call and on others to the second. Not within a transaction. */
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
  /** The reason to send no requests here; null when there is none. */
  reason: string | null
  version: string
  engine: 'sqlite' | 'postgres'
  schema_version: number
  /** ISO 8601; absent unless the database is a restored copy that the operator has not released. */
  quarantined_since?: string
  /** On PostgreSQL: heard when changes on other nodes are signalled to this one, polled when it looks for them. */
  other_nodes?: 'heard' | 'polled'
  durability: Record<string, string | number>
}

/** Keys and secrets: to seal, to sign, and those that were looked up. */
export interface Keys {
  secrets: Secrets
  cache: KeyCache
  /** Signs the cursors of lists. */
  cursor: Buffer
}

/** Counters in memory, and the quotas that the database counts. */
export interface Counts {
  calls: MonthlyCalls
  usage: UsageCounts
  quotas: readonly CountedQuota[]
}

export interface Urls {
  /** PUBLIC_URL, without a slash at the end. */
  public_url(): string
  /** The reason that this URL may not be called, or null. Looks its name up once, for 500 ms at most. */
  callbackRefusal(tenant_id: string, url: string): Promise<string | null>
  /** True for an inbox of this service, however its address is written. Looks its name up as `callbackRefusal` does. */
  isOwnInbox(tenant_id: string, url: string): Promise<boolean>
}

/** Shared by all requests of a node. */
export interface Shared {
  notifier: Notifier
  /** The new events of tenants for which requests wait. */
  tails: Tails
  /** Before a write that all callers of one key make to the same row. */
  semaphore: KeyedSemaphore
  /** Of request bodies and answers. */
  memory: MemoryBudget
  /** Where the token with this hash leads: that never changes. */
  tokens: Remembered<{ tenant_id: string; id: string }>
}

export interface Jobs {
  /** A job falls due then. `at_once`: it waits for no tick, also with TICK=external. */
  wake(due_at: Millis, at_once?: boolean): void
  /** Jobs of some tenant are to be paused, or resumed, in steps. */
  pauseOrResume(): void
  /** Does all that is due. */
  tick(): Promise<TickReport>
}

export interface Journal {
  /** Gives numbers to the tenant's events that are committed and have none. Not within a transaction. */
  number(tenant_id: string): Promise<void>
}

/** The answer of an advance of a test clock. */
export interface Advanced {
  now: string
  advanced_seconds: number
  done: boolean
  counts: Readonly<Record<string, number>>
  events: readonly unknown[]
}

export interface TestClock {
  readonly time: { readonly now: Millis; readonly ahead_ms: Millis }
  /** Moves the time, and does all that falls due; returns what happened to this tenant. */
  advance(tenant_id: string, ms: Millis): Promise<Advanced>
}

export interface TickReport {
  /** By `group.name`. */
  counts: Readonly<Record<string, number>>
  tenants_purged: number
  duration_ms: number
}

export interface ServiceFacts {
  signup_open: boolean
  /** The plan of a sign-up that names none. */
  default_plan: string
  /** The plans that a sign-up may name. */
  plans_open: readonly string[]
  /** Those of them that a request may not name that was forwarded. */
  plans_local: readonly string[]
  /** SMTP_URL is set. */
  sends_mail: boolean
  /** Since when the database is a restored copy that the operator has not released; null when it is not. */
  quarantine: { readonly since: Millis | null }
  readiness(): Promise<Readiness>
  openapi_text(): string
}

export interface Dependencies {
  clock: Clock
  plans: Plans
  keys: Keys
  counts: Counts
  urls: Urls
  shared: Shared
  jobs: Jobs
  journal: Journal
  /** Null: the time is the real one. */
  test_clock: TestClock | null
  /** The types of events, by name. */
  event_types: ReadonlyMap<string, EventType>
  /** In the order of their names, in which they are moved. */
  deadlines: readonly Deadlines[]
  decides: readonly Decides[]
  redrives: Redrives
  service: ServiceFacts
}
