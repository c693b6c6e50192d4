import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import type { ApiError } from './errors.ts'
import {
  begun_a_turn_max,
  FairTurns,
  type Standing,
  turns_wait_ms_max,
  turns_waiting_max,
} from './fair-turns.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

function bench() {
  const clock = new TestClock()
  const turns = new FairTurns(clock)
  const begun: string[] = []
  const refused: [string, ApiError][] = []
  const enter = (name: string, key: string, standing?: Standing) =>
    void turns.next(key, standing).then(
      () => begun.push(name),
      (error) => refused.push([name, error]),
    )
  const many = (count: number, key: string) => {
    for (let i = 0; i < count; i++) enter(`${key}${i}`, key)
  }
  return { clock, turns, begun, refused, enter, many }
}

function namesOf(key: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${key}${i}`)
}

describe('fair turns', () => {
  test('of strangers leave room and half of the turns to tenants, from however many addresses they come', async () => {
    const { begun, refused, turns, enter } = bench()
    const strangers = turns_waiting_max * 0.75
    for (let i = 0; i < strangers; i++) enter(`stranger ${i}`, `address ${i}`, 'stranger')
    await Promise.resolve()
    expect([turns.size, refused]).toEqual([strangers, []])
    enter('one too many', 'another address', 'stranger')
    for (let i = 0; i < begun_a_turn_max; i++) enter(`tenant ${i}`, `tenant ${i}`)
    await Promise.resolve()
    expect(refused.map(([name, { code }]) => [name, code])).toEqual([['one too many', 'UNAVAILABLE']])
    await nextTurn()
    expect(begun.filter((name) => name.startsWith('tenant'))).toHaveLength(begun_a_turn_max / 2)
    await nextTurn()
    expect(begun.filter((name) => name.startsWith('tenant'))).toHaveLength(begun_a_turn_max)
  })

  test('let 16 requests begin in a turn of the event loop, in order', async () => {
    const { turns, begun, many } = bench()
    many(18, 'a')
    await Promise.resolve()
    expect([begun, turns.size]).toEqual([[], 18])
    await nextTurn()
    expect(begun).toEqual(namesOf('a', 16))
    await nextTurn()
    expect([begun, turns.size]).toEqual([namesOf('a', 18), 0])
  })

  test('let as many begin in a turn as they are told, tenant by tenant', async () => {
    const turns = new FairTurns(new TestClock(), 2)
    const begun: string[] = []
    for (const key of ['a', 'a', 'a', 'b']) void turns.next(key).then(() => begun.push(key))
    await nextTurn()
    expect(begun).toEqual(['a', 'b'])
    await nextTurn()
    expect(begun).toEqual(['a', 'b', 'a', 'a'])
  })

  test('let none begin in a turn after one that weighs as much as all of them', async () => {
    const turns = new FairTurns(new TestClock(), 2)
    const begun: string[] = []
    const weights = { a: 2, b: 1, c: 1, d: 1, e: 2, f: 1 }
    for (const [key, weight] of Object.entries(weights))
      void turns.next(key, 'tenant', weight).then(() => begun.push(key))
    for (const begun_by_then of ['a', 'abc', 'abcde', 'abcdef']) {
      await nextTurn()
      expect(begun.join('')).toBe(begun_by_then)
    }
  })

  test('go from tenant to tenant, however many requests one of them has', async () => {
    const { begun, many } = bench()
    many(1_000, 'a')
    many(2, 'b')
    many(1, 'c')
    await nextTurn()
    expect(begun.slice(0, 8)).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3', 'a4'])
  })

  test('are had by a tenant that returns only after all others that wait', async () => {
    const { begun, many } = bench()
    const others = Array.from({ length: begun_a_turn_max + 3 }, (_, i) => `other ${i} `)
    for (const key of ['a', ...others]) many(1, key)
    await nextTurn()
    many(2, 'a')
    await nextTurn()
    expect(begun).toEqual(['a0', ...others.map((key) => `${key}0`), 'a0', 'a1'])
  })

  test('are refused to what has waited too long: 503 UNAVAILABLE, while another tenant begins', async () => {
    const { clock, begun, refused, many } = bench()
    many(begun_a_turn_max + 3, 'a')
    clock.advance(turns_wait_ms_max)
    await nextTurn()
    many(2, 'b')
    await nextTurn()
    expect(begun.slice(begun_a_turn_max)).toEqual(['b0', 'b1'])
    expect(refused.map(([name]) => name)).toEqual(['a16', 'a17', 'a18'])
    const [, error] = refused[0]!
    expect([error.code, error.status, error.details]).toEqual([
      'UNAVAILABLE',
      503,
      { reason: 'too many requests of this tenant, or of this address, are waiting' },
    ])
  })

  test('are not refused after one long pause of the process, in which nobody had a turn', async () => {
    const { clock, begun, refused, many } = bench()
    many(3, 'a')
    clock.advance(60_000)
    await nextTurn()
    expect([begun, refused]).toEqual([namesOf('a', 3), []])
  })

  test('refuse so few at once that a turn stays short, and lose none', async () => {
    const { clock, turns, refused, many } = bench()
    many(begun_a_turn_max + 40, 'a')
    clock.advance(turns_wait_ms_max)
    await nextTurn()
    await nextTurn()
    expect([refused.length, turns.size]).toEqual([32, 8])
    await nextTurn()
    expect([refused.length, turns.size]).toEqual([40, 0])
  })

  test('are waited for longer by what is urgent', async () => {
    const { clock, begun, refused, enter } = bench()
    for (const name of namesOf('other ', begun_a_turn_max)) enter(name, name)
    enter('freeze', 'urgent a', 'urgent')
    enter('call', 'a')
    clock.advance(4_999)
    await nextTurn()
    await nextTurn()
    expect(begun.slice(begun_a_turn_max)).toEqual(['freeze'])
    expect(refused.map(([name]) => name)).toEqual(['call'])
  })

  test('are had by what is urgent although all the room is taken, which is refused past its own', async () => {
    const { turns, refused, enter } = bench()
    for (let i = 0; i < turns_waiting_max; i++) enter('call', `tenant ${i}`)
    enter('one more call', 'another')
    for (let i = 0; i < 512; i++) enter('freeze', `urgent ${i}`, 'urgent')
    enter('one more freeze', 'urgent of another', 'urgent')
    await Promise.resolve()
    await Promise.resolve()
    expect(refused.map(([name]) => name)).toEqual(['one more call', 'one more freeze'])
    expect(turns.size).toBe(turns_waiting_max + 512)
  })

  test('are refused at once to a tenant that has as many waiting as there is room left, and to no other', async () => {
    const { turns, refused, many } = bench()
    many(turns_waiting_max / 2, 'a')
    many(1, 'a')
    many(1, 'b')
    await Promise.resolve()
    await Promise.resolve()
    expect(refused.map(([name]) => name)).toEqual(['a0'])
    expect(turns.size).toBe(turns_waiting_max / 2 + 1)
  })
})
