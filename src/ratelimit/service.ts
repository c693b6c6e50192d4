// Rate limiter: one function per verb. A counter is a row of the key-value store and counts as one of its keys.

import type { Millis } from '../base/clock.ts'
import type { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { limit } from '../base/limit.ts'
import type { TenantFacts } from '../contract/caller.ts'
import type { Plans } from '../contract/dependencies.ts'
import type { Db, Tx } from '../db/db.ts'
import * as kv from '../kv/service.ts'
import * as quotas from '../quotas/service.ts'
import { isClockBack } from './ahead-service.ts'
import * as list_store from './list-store.ts'
import { type Known, type Standing, standingOf } from './standing.ts'
import * as store from './store.ts'
import {
  type Check,
  type CountedSliding,
  type Decision,
  decideFixed,
  decideSliding,
  expiryOf,
} from './window.ts'

export interface Checked extends Decision {
  /** The time that decided. */
  now: Millis
}

/** Counts, and says whether that was within the limit. Throws QUOTA_EXCEEDED when the counter is one key too many. */
export function check(
  db: Db,
  caller: TenantFacts,
  { plans, shared }: { plans: Plans; shared: { semaphore: KeyedSemaphore } },
  asked: Check,
): Promise<Checked> {
  const row = counterName(asked.key)
  const turn = { key: caller.tenant_id, row, batch: { line: caller.tenant_id } }
  const isBack = (expires_at: Millis) => isClockBack(db, `${caller.tenant_id} ${row}`, expires_at)
  const write = () => db.write(turn, (tx) => checkIn(tx, caller, plans, asked, isBack))
  // On PostgreSQL the checks of a counter share transactions instead.
  return db.engine === 'postgres' ? write() : shared.semaphore.run(`${caller.tenant_id} ${row}`, write)
}

/** The row of a counter: checks of it may share a transaction, each is one guarded statement after the other. */
function counterName(key: string): string {
  return `rate ${key}`
}

/** Of a window that begins later than now, and expires then: it may begin now. */
type IsBack = (expires_at: Millis) => boolean

async function checkIn(
  tx: Tx,
  caller: TenantFacts,
  plans: Plans,
  asked: Check,
  isBack: IsBack,
): Promise<Checked> {
  const row = store.rowOf(asked)
  for (;;) {
    const hitIn = asked.algorithm === 'fixed_window' ? hitFixed : hitSliding
    const hit = await hitIn(tx, caller.tenant_id, row, asked, isBack)
    if (hit) return { ...hit, now: tx.now }
    const begun = await begin(tx, caller, plans, row, asked)
    if (begun) return { ...begun, now: tx.now }
    // Another check has begun the window meanwhile: this one is a hit of it.
  }
}

type Row = ReturnType<typeof store.rowOf>

async function hitFixed(
  tx: Tx,
  tenant_id: string,
  row: Row,
  asked: Check,
  isBack: IsBack,
): Promise<Decision | null> {
  const counted = await store.hitFixed(tx, tenant_id, row)
  if (!counted) return null
  const latest = expiryOf(asked.algorithm, asked.window_ms, tx.now)
  if (counted.expires_at <= latest) return decideFixed(asked, counted)
  if (isBack(counted.expires_at)) await store.beginNow(tx, tenant_id, row, latest)
  return decideFixed(asked, { ...counted, expires_at: latest })
}

async function hitSliding(
  tx: Tx,
  tenant_id: string,
  row: Row,
  asked: Check,
  isBack: IsBack,
): Promise<Decision | null> {
  const counted =
    (await store.hitSliding(tx, tenant_id, row, asked)) ?? (await store.nextBucket(tx, tenant_id, row, asked))
  if (!counted) return null
  const latest = expiryOf(asked.algorithm, asked.window_ms, tx.now)
  if (counted.expires_at <= latest) return decideSliding(asked, counted, tx.now)
  if (!isBack(counted.expires_at)) return hitAhead(tx, tenant_id, row, asked, counted)
  await store.beginNow(tx, tenant_id, row, latest)
  // A hit that a later bucket allows is allowed by this one as well: more of the bucket before has faded.
  if (counted.taken > 0) return decideSliding(asked, { ...counted, expires_at: latest }, tx.now)
  return hitSliding(tx, tenant_id, row, asked, isBack)
}

/** A hit of a bucket that begins later than now is one at its beginning; the times of the answer are those from now. */
async function hitAhead(
  tx: Tx,
  tenant_id: string,
  row: Row,
  asked: Check,
  counted: CountedSliding,
): Promise<Decision> {
  const ahead_ms = counted.expires_at - expiryOf(asked.algorithm, asked.window_ms, tx.now)
  const at = tx.now + ahead_ms
  const hit = counted.taken > 0 ? counted : (await store.hitSliding(tx, tenant_id, row, asked, at))!
  const decided = decideSliding(asked, hit, at)
  return { ...decided, reset_at: decided.reset_at - ahead_ms }
}

/** The first check of a window is within every limit. Null when it was not the first after all. */
async function begin(
  tx: Tx,
  caller: TenantFacts,
  plans: Plans,
  row: Row,
  asked: Check,
): Promise<Decision | null> {
  const fixed = asked.algorithm === 'fixed_window'
  const expires_at = expiryOf(asked.algorithm, asked.window_ms, tx.now)
  const reserved = await reserveRoom(tx, caller, plans, row, asked.key)
  const made = await store.start(tx, caller.tenant_id, row, asked, expires_at)
  tx.stores(caller.tenant_id, (made?.grew ?? 0) - reserved)
  if (!made) return null
  if (made.version === made.created_version) await kv.reserve(tx, caller, plans, made.version > 1)
  const counted = { hits: asked.cost, previous: 0, taken: asked.cost, expires_at }
  return fixed ? decideFixed(asked, counted) : decideSliding(asked, counted, tx.now)
}

/**
 * Past the limit of stored bytes only a counter that was there before may begin a window. Returns the bytes reserved:
 * until it is known by how much the row grows, checks beside this one find all of its bytes taken.
 */
async function reserveRoom(
  tx: Tx,
  caller: TenantFacts,
  plans: Plans,
  row: Row,
  key: string,
): Promise<number> {
  const bytes = store.counterBytes(row)
  const fits = !tx.disk_full && !quotas.overBy(tx, caller, plans, bytes)
  if (!fits && !(await store.find(tx, caller.tenant_id, key))) quotas.requireRoom(tx, caller, plans, bytes)
  const reserved = tx.beside > 0 ? bytes : 0
  tx.stores(caller.tenant_id, reserved)
  return reserved
}

/** Where the counter stands; an absent counter is answered as an expired one. */
export async function status(db: Db, tenant_id: string, key: string, now: Millis): Promise<Standing> {
  return standingOf(kept(await store.find(db, tenant_id, key), now), now)
}

export type Counter = list_store.Running

export const total_max = limit(
  'rate_limit.counted',
  10_000,
  'rows',
  'Running counters that `total` counts, and among which a prefix is looked for: those that end first.',
)

/** Counters whose window is running, `skipped` of them left out, and how many there are, to 10,000. */
export function list(
  db: Db,
  tenant_id: string,
  prefix: string,
  now: Millis,
  skipped: number,
  rows_max: number,
): Promise<{ counters: Counter[]; total: number }> {
  return db.read(tenant_id, async (q) => {
    // Without a prefix every counter that is scanned is found: a page may continue past the last that is counted.
    const span = { prefix, now, scanned_max: prefix === '' ? total_max + rows_max : total_max }
    const found = await list_store.count(q, tenant_id, span)
    const last_place = Math.min(found, skipped + rows_max)
    const counters =
      last_place <= skipped ? [] : await list_store.list(q, tenant_id, span, last_place, last_place - skipped)
    return { counters, total: Math.min(found, total_max) }
  })
}

/** Ends the counter's window. `reset` is false when none was running. */
export function reset(
  db: Db,
  tenant_id: string,
  key: string,
): Promise<{ reset: boolean; standing: Standing; now: Millis }> {
  // Between the statements of a check that makes the counter it would count one key less too early.
  const turn = { key: tenant_id, row: counterName(key), batch: { line: tenant_id, apart: true } }
  return db.write(turn, async (tx) => {
    const ended = await store.reset(tx, tenant_id, key)
    if (!ended) {
      const known = kept(await store.find(tx, tenant_id, key), tx.now)
      return { reset: false, standing: standingOf(known, tx.now), now: tx.now }
    }
    await quotas.release(tx, tenant_id, 'kv_keys', 1, 1)
    tx.stores(tenant_id, ended.bytes)
    const tombstone = { ...ended, value: null, hits: 0, previous: null, expires_at: tx.now }
    return { reset: true, standing: standingOf(tombstone, tx.now), now: tx.now }
  })
}

/**
 * A tombstone that the sweep may remove counts as removed, so that nothing depends on when it runs. A tenant with more
 * tombstones than are kept loses the oldest earlier, with the next new key.
 */
function kept(known: Known | null, now: Millis): Known | null {
  return known && known.expires_at > now - kv.tombstone_ms ? known : null
}
