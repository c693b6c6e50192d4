// Operations on many dead letters, as data: their steps, their pace and the outcomes of their items.

import { describe, expect, test } from 'bun:test'
import { newId } from '../base/ids.ts'
import { limits } from '../base/limit.ts'
import type { Reader } from '../db/db.ts'
import { type OperationRow, parsed, partsOf, printed, restAfter, stepOf } from './operation.ts'
import { match } from './operation-service.ts'

const per_second_max = limits.get('dlq.operation_per_second')!.value
const per_second_min = limits.get('dlq.operation_per_second_min')!.value
const part_items = limits.get('dlq.operation_part')!.value
const step_items = limits.get('dlq.discarded_in_a_step')!.value

describe('a step', () => {
  const operation = (over: Partial<OperationRow>, per_second: number | null = null): OperationRow => ({
    ...{ id: 'dop_1', verb: 'discard', status: 'running', matched: 1_000, done: 0, failed: 0, skipped: 0 },
    ...{ more: 0, looked_until: null, waiting_for: null, created_at: 0, updated_at: 0, finished_at: null },
    settings: JSON.stringify({ filter: {}, ids_count: null, max: 1_000, per_second }),
    ...over,
  })

  test('takes no more items than a step may, of one part, and none past the last', () => {
    expect(stepOf(operation({}))).toEqual({ part: 0, offset: 0, count: step_items })
    expect(stepOf(operation({ done: part_items - 1 }))).toEqual({ part: 0, offset: part_items - 1, count: 1 })
    expect(stepOf(operation({ done: part_items, skipped: 7, failed: 1 }))).toEqual({
      ...{ part: 1, offset: 8, count: step_items },
    })
    expect(stepOf(operation({ matched: 3, done: 1 }))).toEqual({ part: 0, offset: 1, count: 2 })
  })

  test.each([
    [0.1, 1, 10_000],
    [1, 1, 1_000],
    [3, 1, 334],
    [7, 1, 143],
    [8, 2, 250],
    [40, 10, 250],
    [per_second_max, step_items, step_items],
    [per_second_min, 1, 1_000_000],
  ])('at %p a second takes %i and rests for %i ms', (per_second, count, rest_ms) => {
    const paced = operation({}, per_second)
    expect(stepOf(paced).count).toBe(count)
    expect(restAfter(paced, count)).toBe(rest_ms)
  })

  test('keeps the outcomes of its items as lines', () => {
    const ids = Array.from({ length: part_items + 1 }, (_, i) => `dlq_${i}`)
    const parts = partsOf(ids)
    expect(parts.map((part) => parsed(part).length)).toEqual([part_items, 1])
    const items = [
      { id: 'dlq_1', outcome: 'done' as const, code: null, redriven_as: 'sch_1' },
      { id: 'dlq_2', outcome: 'skipped' as const, code: 'ALREADY_CLAIMED', redriven_as: null },
      { id: 'dlq_3', outcome: 'waiting' as const, code: null, redriven_as: null },
    ]
    expect(parsed(printed(items))).toEqual(items)
  })
})

test('The search for dead letters leaves turns of the event loop to others', async () => {
  const looks = 10
  const looked_max = limits.get('dlq.operation_looked_at_once_rows')!.value
  let left = looks
  const reader = {
    one: () => ({ id: newId('dlq', 0), looked: --left > 0 ? looked_max : 0 }),
    all: () => [],
  } as unknown as Reader
  let turns = 0
  const others = () => {
    turns++
    next = setImmediate(others)
  }
  let next = setImmediate(others)
  await match(reader, 'tenant', { filter: { workflow_id: 'rare' }, ids: null, max: 1 }, 0)
  clearImmediate(next)
  expect([left, turns]).toEqual([0, looks - 1])
})
