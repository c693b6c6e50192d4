import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { MemoryBudget, outOfMemory } from './memory.ts'
import type { Hold } from './memory-hold.ts'

/** Of 1,000 bytes: 250 for small bodies, 750 for the rest, 500 for an address, 250 for a tenant. */
function bench() {
  const clock = new TestClock()
  const budget = new MemoryBudget(clock, 1_000)
  const cut: string[] = []
  const hold = (name: string, address: string, tenant_id: string | null = null): Hold =>
    budget.hold({ address, tenant_id }, () => cut.push(name))
  return { clock, budget, cut, hold }
}

describe('the memory budget', () => {
  test('gives an address its share to the byte, and no more', () => {
    const { budget, hold } = bench()
    const [first, second] = [hold('first', 'a'), hold('second', 'a')]
    expect([first.grow(300), second.grow(201), second.grow(200), second.grow(1)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect([first.bytes, second.bytes, budget.bytes]).toEqual([300, 200, 500])
    expect(hold('other', 'b').grow(250)).toBe(true)
  })

  test('gives a tenant its share to the byte, whatever the addresses', () => {
    const { hold } = bench()
    expect(hold('first', 'a', 't').grow(150)).toBe(true)
    const second = hold('second', 'b', 't')
    expect([second.grow(101), second.grow(100)]).toEqual([false, true])
    expect(hold('other', 'b', 'u').grow(250)).toBe(true)
  })

  test('gives all together the whole to the byte', () => {
    const { budget, hold } = bench()
    expect(hold('first', 'a').grow(500)).toBe(true)
    const second = hold('second', 'b')
    expect([second.grow(251), second.grow(250)]).toEqual([false, true])
    expect(budget.bytes).toBe(750)
  })

  test('keeps a part for small bodies, which large ones cannot take, nor they the part of the large', () => {
    const { budget, hold } = bench()
    hold('first', 'a').grow(500)
    hold('second', 'b').grow(250)
    expect([budget.acquireSmall(251), budget.acquireSmall(250), budget.acquireSmall(1)]).toEqual([
      false,
      true,
      false,
    ])
    budget.releaseSmall(100)
    expect([budget.acquireSmall(100), budget.acquireSmall(1)]).toEqual([true, false])
    expect(hold('third', 'c').grow(1)).toBe(false)
  })

  test('cuts off who has gone longest without progress, as many as it takes', () => {
    const { clock, cut, hold } = bench()
    const [first, second, third] = [hold('first', 'a'), hold('second', 'a'), hold('third', 'a')]
    for (const one of [first, second, third]) one.grow(150)
    clock.advance(500)
    first.progress()
    clock.advance(1_000)
    expect(hold('new', 'a').grow(300)).toBe(true)
    expect(cut).toEqual(['second', 'third'])
    expect([first, second, third].map(({ is_cut, bytes }) => [is_cut, bytes])).toEqual([
      [false, 150],
      [true, 0],
      [true, 0],
    ])
  })

  test('cuts off nobody who made progress within the last second: the new one is refused', () => {
    const { clock, cut, hold } = bench()
    hold('first', 'a').grow(500)
    clock.advance(999)
    expect(hold('new', 'a').grow(1)).toBe(false)
    clock.advance(1)
    expect(hold('new', 'a').grow(1)).toBe(true)
    expect(cut).toEqual(['first'])
  })

  test('cuts off the same owner when it is the share of the owner that is used up', () => {
    const { clock, cut, hold } = bench()
    hold('other address', 'b').grow(100)
    clock.advance(5_000)
    hold('own address', 'a').grow(500)
    clock.advance(1_000)
    expect(hold('new', 'a').grow(100)).toBe(true)
    expect(cut).toEqual(['own address'])
    hold('other tenant', 'c', 'u').grow(100)
    hold('own tenant', 'd', 't').grow(200)
    clock.advance(1_000)
    expect(hold('new', 'e', 't').grow(100)).toBe(true)
    expect(cut).toEqual(['own address', 'own tenant'])
  })

  test('cuts off anybody when all is used up', () => {
    const { clock, cut, hold } = bench()
    hold('first', 'a').grow(400)
    clock.advance(10)
    hold('second', 'b').grow(350)
    clock.advance(1_000)
    expect(hold('new', 'c').grow(10)).toBe(true)
    expect(cut).toEqual(['first'])
  })

  test('never cuts off what is pinned, nor the one that asks', () => {
    const { clock, cut, hold } = bench()
    const pinned = hold('pinned', 'a')
    pinned.grow(250)
    pinned.pin()
    const asking = hold('asking', 'a')
    asking.grow(250)
    clock.advance(60_000)
    expect([asking.grow(1), asking.bytes, cut]).toEqual([false, 250, []])
    expect(hold('new', 'a').grow(250)).toBe(true)
    expect(cut).toEqual(['asking'])
  })

  test('cuts off nobody when one of the shares would still have no room', () => {
    const { clock, cut, hold } = bench()
    hold('of the tenant', 'b', 't').grow(200)
    const pinned = hold('pinned', 'a')
    pinned.grow(450)
    pinned.pin()
    clock.advance(1_000)
    expect([hold('new', 'a', 't').grow(100), cut]).toEqual([false, []])
    const waiting = hold('waiting', 'c')
    waiting.grow(100)
    expect([waiting.assign('u'), hold('more', 'c', 't').grow(251), cut]).toEqual([true, false, []])
  })

  test('leaves memory of an address to others when one tenant behind it has used up its share', () => {
    const { hold } = bench()
    expect([hold('first', 'proxy', 't').grow(250), hold('second', 'proxy', 't').grow(1)]).toEqual([
      true,
      false,
    ])
    expect(hold('other', 'proxy', 'u').grow(250)).toBe(true)
  })

  test.each([Number.NaN, 0.5, Number.POSITIVE_INFINITY])(
    'throws for %d bytes and cuts off nobody',
    (bytes) => {
      const { clock, cut, budget, hold } = bench()
      hold('first', 'a').grow(500)
      clock.advance(1_000)
      expect(() => hold('new', 'a').grow(bytes)).toThrow()
      expect([cut, budget.bytes]).toEqual([[], 500])
    },
  )

  test('cuts a hold off once; it counts nothing afterwards, and its release gives nothing back twice', () => {
    const { clock, budget, cut, hold } = bench()
    const first = hold('first', 'a')
    first.grow(500)
    clock.advance(1_000)
    const second = hold('second', 'a')
    second.grow(400)
    expect([first.grow(1), first.assign('t')]).toEqual([false, false])
    first.progress()
    first.release()
    expect([cut, budget.bytes]).toEqual([['first'], 400])
  })

  test('moves a hold to its tenant once that is known, if its share has room', () => {
    const { budget, hold } = bench()
    const first = hold('first', 'a')
    first.grow(150)
    expect(first.assign('t')).toBe(true)
    const second = hold('second', 'b')
    second.grow(101)
    expect(second.assign('t')).toBe(false)
    second.shrink(1)
    expect(second.assign('t')).toBe(true)
    expect([budget.bytes, hold('third', 'c', 't').grow(1)]).toEqual([250, false])
    const empty = hold('empty', 'c')
    expect([empty.assign('t'), empty.grow(1)]).toEqual([true, false])
  })

  test('forgets addresses and tenants that hold nothing', () => {
    const { clock, budget, hold } = bench()
    const first = hold('first', 'a', 't')
    expect(budget.owners).toBe(0)
    first.grow(100)
    expect([first.grow(600), budget.owners]).toEqual([false, 2])
    first.shrink(40)
    expect([first.bytes, budget.bytes]).toEqual([60, 60])
    first.shrink(60)
    expect([budget.owners, budget.bytes]).toEqual([0, 0])
    expect(hold('large', 'b', 'u').grow(501)).toBe(false)
    expect(budget.owners).toBe(0)
    // The last of an account is cut off for the first of the same account.
    hold('last', 'c', 'v').grow(250)
    clock.advance(1_000)
    const next = hold('next', 'c', 'v')
    expect([next.grow(250), budget.owners, hold('more', 'c', 'v').grow(1)]).toEqual([true, 2, false])
    next.release()
    next.release()
    expect([budget.owners, budget.bytes]).toEqual([0, 0])
  })

  test('refuses with 503 and Retry-After', () => {
    expect(outOfMemory()).toMatchObject({ code: 'UNAVAILABLE', status: 503, retry_after_seconds: 1 })
  })
})
