// An operation on many dead letters: its items, its steps and their pace. No imports from db or http.

import { day_ms, type Millis, second_ms } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import { type Cause, service_cause } from '../contract/event.ts'
import type { Filter } from './filter.ts'
import type { DlqStatus } from './item.ts'

export const operation_statuses = ['running', 'succeeded', 'cancelled'] as const
type OperationStatus = (typeof operation_statuses)[number]

/** The statuses of items that each takes. */
export const taken = {
  redrive: ['failed', 'archived'],
  discard: ['failed'],
} as const satisfies Record<string, readonly DlqStatus[]>
export type Verb = keyof typeof taken
export const verbs = Object.keys(taken) as Verb[]

export const operation_items_max = limit(
  'dlq.operation_items',
  5_000,
  'entries',
  'Dead letters of one operation, and ids in its filter. Past it 400.',
)
export const per_second_max = limit(
  'dlq.operation_per_second',
  1_000,
  'entries',
  'Dead letters a second that an operation may ask for. Past it 400.',
)
export const per_second_min = limit(
  'dlq.operation_per_second_min',
  0.001,
  'entries',
  'Dead letters a second that an operation may ask for at least: one in 1,000 seconds. Below it 400.',
)
/** Ended ones are kept this long. */
export const operation_kept_ms = limit(
  'dlq.operation_kept',
  7 * day_ms,
  'milliseconds',
  'How long an operation that has ended is kept with its items. After that it is removed.',
)
/** Items of one row. */
export const part_items_max = limit(
  'dlq.operation_part',
  100,
  'entries',
  'Dead letters whose outcomes one row of an operation holds.',
)
/** Items of one transaction. */
const step_items = {
  redrive: limit(
    'dlq.redriven_in_a_step',
    10,
    'entries',
    'Dead letters that one step of an operation sends again, so that requests wait for no more than one step.',
  ),
  discard: limit(
    'dlq.discarded_in_a_step',
    50,
    'entries',
    'Dead letters that one step of an operation discards, so that requests wait for no more than one step.',
  ),
} satisfies Record<Verb, number>

/** Filter, max and per_second, as they are stored. */
export interface Settings {
  filter: Filter
  /** The number of ids that the filter named; null when it named none. */
  ids_count: number | null
  max: number
  /** Null: as fast as is fair. */
  per_second: number | null
  /** The agent that began it; absent for the admin key. */
  agent_id?: string
  /** Of the request that began it: that of its events, where a dead letter has none of its own. */
  workflow_id?: string
}

export interface OperationRow {
  id: string
  verb: Verb
  status: OperationStatus
  matched: number
  done: number
  failed: number
  skipped: number
  more: 0 | 1
  /** The look for items that match ended at those captured then; null when it saw all, or found enough. */
  looked_until: Millis | null
  /** The quota that holds it up. */
  waiting_for: string | null
  created_at: Millis
  updated_at: Millis
  finished_at: Millis | null
  /** JSON text. */
  settings: string
}

export interface OperationItem {
  id: string
  outcome: 'waiting' | 'done' | 'skipped' | 'failed'
  /** The error code of one that was skipped or has failed. */
  code: string | null
  redriven_as: string | null
}

/** The items of a step, from this place of this part on. */
export interface Step {
  part: number
  offset: number
  count: number
}

/** A step takes no more than a quarter of a second may have. */
const steps_a_second = 4

/** The next items, of one part. */
export function stepOf(operation: OperationRow): Step {
  const { per_second } = settingsOf(operation)
  const at = handledBy(operation)
  const offset = at % part_items_max
  const left = Math.min(operation.matched - at, part_items_max - offset)
  const paced = per_second === null ? left : Math.max(1, Math.floor(per_second / steps_a_second))
  const count = Math.min(left, paced, step_items[operation.verb])
  return { part: Math.floor(at / part_items_max), offset, count }
}

/** The delay of the next step after a quota has refused an item. */
export const quota_again_ms = 5 * second_ms

/** How long the operation rests after so many items: over any time it is not faster than `per_second`. */
export function restAfter(operation: OperationRow, count: number): Millis {
  const { per_second } = settingsOf(operation)
  if (per_second === null) return 0
  return Math.ceil((count * second_ms) / per_second)
}

export function settingsOf({ settings }: Pick<OperationRow, 'settings'>): Settings {
  return JSON.parse(settings)
}

/** The cause of what its steps change. */
export function causeOfSteps(operation: Pick<OperationRow, 'settings'>): Cause {
  const { agent_id = null, workflow_id = null } = settingsOf(operation)
  return { ...service_cause, agent_id, workflow_id }
}

/** Items whose turn has come. */
export function handledBy({
  done,
  failed,
  skipped,
}: Pick<OperationRow, 'done' | 'failed' | 'skipped'>): number {
  return done + failed + skipped
}

/** How many of these items had this outcome. */
export function countOf(items: readonly OperationItem[], outcome: OperationItem['outcome']): number {
  return items.filter((item) => item.outcome === outcome).length
}

/** The text of a part. */
export function printed(items: readonly OperationItem[]): string {
  return items
    .map(({ id, outcome, code, redriven_as }) =>
      outcome === 'waiting' ? id : `${id} ${outcome} ${code ?? '-'} ${redriven_as ?? '-'}`,
    )
    .join('\n')
}

export function parsed(text: string): OperationItem[] {
  return text.split('\n').map((line) => {
    const [id, outcome = 'waiting', code = '-', redriven_as = '-'] = line.split(' ')
    return {
      id: id!,
      outcome: outcome as OperationItem['outcome'],
      code: code === '-' ? null : code,
      redriven_as: redriven_as === '-' ? null : redriven_as,
    }
  })
}

function waiting(id: string): OperationItem {
  return { id, outcome: 'waiting', code: null, redriven_as: null }
}

/** The parts of so many items, each in order. */
export function partsOf(ids: readonly string[]): string[] {
  const parts: string[] = []
  for (let from = 0; from < ids.length; from += part_items_max)
    parts.push(printed(ids.slice(from, from + part_items_max).map(waiting)))
  return parts
}
