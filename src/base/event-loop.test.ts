import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { TurnBudget, Turns, turn_ms_max } from './event-loop.ts'
import { begun_a_turn_max } from './fair-turns.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('turns', () => {
  test('let their number of pieces begin in a turn of the event loop, in order', async () => {
    const turns = new Turns(2)
    const begun: number[] = []
    for (let piece = 0; piece < 5; piece++) void turns.next().then(() => begun.push(piece))
    await Promise.resolve()
    const seen = []
    for (let turn = 0; turn < 4; turn++) {
      seen.push([begun.length, turns.size])
      await nextTurn()
    }
    expect(seen).toEqual([
      [0, 5],
      [2, 3],
      [4, 1],
      [5, 0],
    ])
    expect(begun).toEqual([0, 1, 2, 3, 4])
  })

  test('are not taken from others by what is gone', async () => {
    const turns = new Turns(2)
    const begun: number[] = []
    const isGone = (piece: number) => piece < 4 || piece === 6
    for (let piece = 0; piece < 8; piece++) void turns.next(() => isGone(piece)).then(() => begun.push(piece))
    await nextTurn()
    expect([begun, turns.size]).toEqual([[0, 1, 2, 3, 4, 5, 6], 1])
    await nextTurn()
    expect([begun, turns.size]).toEqual([[0, 1, 2, 3, 4, 5, 6, 7], 0])
  })
})

describe('the budget of a turn', () => {
  /** As many as it takes for the turn to be looked at. */
  function looked(budget: TurnBudget): void {
    for (let request = 0; request < 16; request++) expect(budget.begin()).toBe(true)
  }

  test('lets any number of requests begin while it lasts', () => {
    const clock = new TestClock()
    const budget = new TurnBudget(clock)
    looked(budget)
    clock.advance(turn_ms_max - 1)
    for (let request = 0; request < 1_000; request++) expect(budget.begin()).toBe(true)
  })

  test('then makes the next wait for a turn, and nobody overtakes them', async () => {
    const clock = new TestClock()
    const budget = new TurnBudget(clock)
    looked(budget)
    clock.advance(turn_ms_max)
    const begun: number[] = []
    const enter = (request: number) => {
      expect(budget.begin()).toBe(false)
      void budget.turn('tenant', 'tenant').then(() => begun.push(request))
    }
    const one_too_many = begun_a_turn_max + 1
    const requests = Array.from({ length: one_too_many + 1 }, (_, request) => request)
    for (const request of requests.slice(0, one_too_many)) enter(request)
    await nextTurn()
    expect(begun).toEqual(requests.slice(0, begun_a_turn_max))
    enter(one_too_many)
    await nextTurn()
    expect(begun).toEqual(requests)
    expect(budget.begin()).toBe(true)
  })

  test('starts again in the next turn', async () => {
    const clock = new TestClock()
    const budget = new TurnBudget(clock)
    looked(budget)
    await nextTurn()
    clock.advance(turn_ms_max)
    expect(budget.begin()).toBe(true)
  })
})
