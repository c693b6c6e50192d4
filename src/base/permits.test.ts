import { describe, expect, test } from 'bun:test'
import { Permits } from './permits.ts'

const total = 320
const reserve = 64

/** Acquires all that the account may have; answers how many that were. */
function fill(permits: Permits, account: string): number {
  let acquired = 0
  for (; permits.mayAcquire(account); acquired++) permits.acquire(account)
  return acquired
}

/** One permit each in turn, until nobody may have more; answers how many each holds. */
function dealt(permits: Permits, accounts: string[]): number[] {
  for (let given = true; given; ) {
    given = false
    for (const account of accounts) {
      if (!permits.mayAcquire(account)) continue
      permits.acquire(account)
      given = true
    }
  }
  return accounts.map((account) => permits.heldBy(account))
}

const accounts = (count: number) => Array.from({ length: count }, (_, i) => `account-${i}`)

test('an account that is alone may hold all but the reserve', () => {
  const permits = new Permits(total, reserve)
  expect(fill(permits, 'one')).toBe(total - reserve)
  expect(permits.free).toBe(reserve)
  expect(permits.mayAcquire('one')).toBe(false)
  permits.release('one')
  expect(permits.mayAcquire('one')).toBe(true)
})

test('of the reserve an account may hold less than an eighth of what is free, and one in any case', () => {
  const permits = new Permits(total, reserve)
  fill(permits, 'one')
  const acquired = accounts(60).map((account) => fill(permits, account))
  expect(acquired).toEqual([
    ...[7, 6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2],
    ...Array.from({ length: 16 }, () => 1),
    ...Array.from({ length: 31 }, () => 0),
  ])
})

test('a released permit goes to any tenant that asks, whatever others hold, while more than the reserve is free', () => {
  const permits = new Permits(total, reserve)
  fill(permits, 'one')
  fill(permits, 'two')
  for (let i = 0; i < 128; i++) permits.release('one')
  expect(fill(permits, 'two')).toBe(121)
  expect(permits.heldBy('two')).toBe(128)
  expect(permits.free).toBe(reserve)
})

describe('an account that holds nothing finds a permit', () => {
  test.each([1, 2, 5, 16, 32])('beside %i that ask at once, and the whole reserve is left', (count) => {
    const permits = new Permits(total, reserve)
    const held = dealt(permits, accounts(count))
    expect(held.reduce((sum, each) => sum + each, 0)).toBe(total - reserve)
    expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1)
    expect(permits.mayAcquire('other')).toBe(true)
  })

  test('beside 29 that fill it one after another, each with all that it may have; not beside 30', () => {
    const permits = new Permits(total, reserve)
    const greedy = accounts(30)
    for (const account of greedy) {
      expect(permits.mayAcquire(account)).toBe(true)
      fill(permits, account)
    }
    expect(permits.free).toBe(0)
    expect(permits.mayAcquire('other')).toBe(false)
  })

  test.each([64, 128, 300])('beside %i that ask at once', (count) => {
    const permits = new Permits(total, reserve)
    dealt(permits, accounts(count))
    expect(permits.free).toBeGreaterThanOrEqual(15)
    expect(permits.mayAcquire('other')).toBe(true)
  })

  test('the last fifteen are for such accounts alone', () => {
    const permits = new Permits(total, reserve)
    fill(permits, 'one')
    for (let i = 0; permits.free > 15; i++) permits.acquire(`account-${i}`)
    expect(permits.mayAcquire('account-0')).toBe(false)
    expect(permits.mayAcquire('other')).toBe(true)
    permits.release('account-0')
    expect(permits.mayAcquire('account-1')).toBe(true)
  })
})

test('all are free again once all were released, and nobody is remembered', () => {
  const permits = new Permits(total, reserve)
  const held = dealt(permits, accounts(40))
  accounts(40).forEach((account, i) => {
    for (let left = held[i]!; left > 0; left--) permits.release(account)
  })
  expect(permits.free).toBe(total)
  expect(accounts(40).map((account) => permits.heldBy(account))).toEqual(accounts(40).map(() => 0))
  expect(fill(permits, 'one')).toBe(total - reserve)
})
