// Operations on many dead letters: one function per verb. Their steps are in jobs.ts.

import type { Millis } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { newId, timeOf } from '../base/ids.ts'
import { limit } from '../base/limit.ts'
import { nextTurn } from '../base/next-turn.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { Jobs, Plans } from '../contract/dependencies.ts'
import { type Cause, causeOf } from '../contract/event.ts'
import type { Db, Reader, Tx } from '../db/db.ts'
import { rowBytes } from '../db/stored.ts'
import * as jobs from '../jobs/service.ts'
import * as journal from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { succeeded } from './event-service.ts'
import { events } from './events.ts'
import type { Filter } from './filter.ts'
import { operation_job } from './jobs.ts'
import * as matches from './match-store.ts'
import {
  type OperationItem,
  type OperationRow,
  parsed,
  part_items_max,
  partsOf,
  type Settings,
  settingsOf,
  type Verb,
} from './operation.ts'
import * as store from './operation-store.ts'

const looked_max = limit(
  'dlq.operation_looked_at_rows',
  50_000,
  'rows',
  'Bounds how long a request takes: dead letters that the start of an operation looks at in search of those that match.',
)
/** Of one statement. */
const looked_at_once_max = limit(
  'dlq.operation_looked_at_once_rows',
  1_000,
  'rows',
  'Dead letters that one statement of that search looks at, so that requests wait for no more than one statement.',
)

export interface Asked {
  filter: Filter
  /** Only these; null: all that the filter takes. */
  ids: readonly string[] | null
  max: number
}

export interface Matched {
  /** Oldest first. */
  ids: string[]
  /** Further items may match. */
  more: boolean
  /** The look ended at items captured then, with others behind it; null when it saw all, or found `max`. */
  looked_until: Millis | null
}

/** The items that an operation takes if it begins now, `max` at most. */
export async function match(q: Reader, tenant_id: string, asked: Asked, now: Millis): Promise<Matched> {
  const { filter, ids, max } = asked
  const found = ids
    ? { ids: await matchNamed(q, tenant_id, filter, ids, now), looked_until: null }
    : await matchAll(q, tenant_id, filter, max, now)
  const { looked_until } = found
  return { ids: found.ids.slice(0, max), more: looked_until !== null || found.ids.length > max, looked_until }
}

async function matchAll(q: Reader, tenant_id: string, filter: Filter, max: number, now: Millis) {
  const found: string[] = []
  let from_id: string | null = ''
  for (let looked = 0; from_id !== null && found.length <= max; ) {
    if (looked >= looked_max) return { ids: found, looked_until: timeOf(from_id) }
    if (looked > 0) await nextTurn() // SQLite answers at once: the statements would follow each other in one turn
    const bounds = { from_id, rows_max: max + 1 - found.length, looked_max: looked_at_once_max }
    const next = await matches.matching(q, tenant_id, filter, now, bounds)
    for (const id of next.ids) found.push(id)
    looked += next.looked
    from_id = next.next
  }
  return { ids: found, looked_until: null }
}

async function matchNamed(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  ids: readonly string[],
  now: Millis,
): Promise<string[]> {
  const found: string[] = []
  const wanted = [...new Set(ids)].toSorted()
  for (let from = 0; from < wanted.length; from += matches.named_rows_max) {
    const some = wanted.slice(from, from + matches.named_rows_max)
    for (const id of await matches.named(q, tenant_id, filter, now, some)) found.push(id)
  }
  return found.toSorted()
}

interface StartDependencies {
  plans: Plans
  jobs: Pick<Jobs, 'wake'>
}

/** Throws TOO_MANY_OPERATIONS, QUOTA_EXCEEDED. One without items has succeeded. */
export async function start(
  tx: Tx,
  caller: AdminCaller | AgentCaller,
  dependencies: StartDependencies,
  verb: Verb,
  settings: Settings,
  { ids, more, looked_until }: Matched,
): Promise<OperationRow> {
  const { tenant_id } = caller
  const cause = causeOf(caller)
  const text = JSON.stringify({ ...settings, ...begunBy(cause) })
  const parts = partsOf(ids)
  const bytes = parts.reduce((sum, part) => sum + rowBytes(part), rowBytes(text))
  quotas.reserveBytes(tx, caller, dependencies.plans, bytes)
  const id = newId('dop', tx.now)
  await insert(tx, tenant_id, {
    ...{ id, verb, settings: text, matched: ids.length, more: more ? 1 : 0, looked_until },
    ...(ids.length > 0
      ? { status: 'running', finished_at: null }
      : { status: 'succeeded', finished_at: tx.now }),
  })
  for (const [number, items] of parts.entries()) await store.insertPart(tx, tenant_id, id, number, items)
  if (ids.length > 0) {
    const job = { tenant_id, kind: operation_job, source_id: id, next_at: tx.now }
    await jobs.enqueue(tx, dependencies.jobs, job)
  }
  const about = { tenant_id, cause, subject_id: id }
  await journal.emit(tx, events['dlq_operation.created'], { ...about, data: { verb, matched: ids.length } })
  if (ids.length === 0) await succeeded(tx, about, { done: 0, failed: 0, skipped: 0 })
  return (await store.find(tx, tenant_id, id))!
}

function begunBy({ agent_id, workflow_id }: Cause): Pick<Settings, 'agent_id' | 'workflow_id'> {
  return { ...(agent_id !== null && { agent_id }), ...(workflow_id !== null && { workflow_id }) }
}

async function insert(tx: Tx, tenant_id: string, operation: store.NewOperation): Promise<void> {
  if (operation.status !== 'running') {
    await store.insert(tx, tenant_id, operation, null)
    return
  }
  for (let slot = 1; slot <= store.slots_max; slot++)
    if (await store.insert(tx, tenant_id, operation, slot)) return
  throw new ApiError('TOO_MANY_OPERATIONS')
}

/** Throws OPERATION_NOT_FOUND. */
export async function read(q: Reader, tenant_id: string, id: string): Promise<OperationRow> {
  const operation = await store.find(q, tenant_id, id)
  if (!operation) throw new ApiError('OPERATION_NOT_FOUND')
  return operation
}

/** Items whose turn has come stay as they are now. One that has ended does not change. Throws OPERATION_NOT_FOUND. */
export function cancel(db: Db, caller: AdminCaller | AgentCaller, id: string): Promise<OperationRow> {
  const { tenant_id } = caller
  return db.write(tenant_id, async (tx) => {
    // The job first, as a step does.
    await jobs.cancel(tx, jobs.keyOf({ tenant_id }, operation_job, id))
    const cancelled = await store.cancel(tx, tenant_id, id)
    if (!cancelled) return read(tx, tenant_id, id)
    const workflow_id = settingsOf(cancelled).workflow_id ?? null
    await journal.emit(tx, events['dlq_operation.cancelled'], {
      ...{ tenant_id, cause: causeOf(caller), subject_id: id, workflow_id, data: {} },
    })
    return cancelled
  })
}

/** The items from this one on, `rows_max` at most, in the order of their turns. Throws OPERATION_NOT_FOUND. */
export async function items(
  q: Reader,
  tenant_id: string,
  id: string,
  from: number,
  rows_max: number,
): Promise<{ items: OperationItem[]; next: number | null }> {
  const { matched } = await read(q, tenant_id, id)
  const found: OperationItem[] = []
  const until = Math.min(matched, from + rows_max)
  while (from + found.length < until) {
    const at = from + found.length
    const text = await store.part(q, tenant_id, id, Math.floor(at / part_items_max))
    if (text === null) break // purged meanwhile
    const offset = at % part_items_max
    for (const item of parsed(text).slice(offset, offset + until - at)) found.push(item)
  }
  return { items: found, next: until < matched ? until : null }
}

export const list = store.list
