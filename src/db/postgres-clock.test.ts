import { expect, spyOn, test } from 'bun:test'
import type { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { becomes } from '../../test/support/patience.ts'
import { nextTurn } from '../../test/support/quiet-db.ts'
import { DatabaseClock } from './postgres-clock.ts'

test('the time that a query waits for a connection does not count as part of its round trip', async () => {
  const local = new TestClock()
  const pool = { unsafe: async () => [{ now: 1_000_000_000n }] } as unknown as SQL
  const clock = new DatabaseClock(async (question) => {
    local.advance(10_000)
    await question(pool)
    local.advance(5_000)
  }, local)
  await clock.begin()
  clock.stop()
  expect(clock.now()).toBe(1_005_000)
})

test('a server whose clock was set, or a machine that stood still, is followed within a second', async () => {
  const local = new TestClock()
  let server_ms = 5_000_000
  const pool = { unsafe: async () => [{ now: BigInt(server_ms * 1_000) }] } as unknown as SQL
  const clock = new DatabaseClock((question) => question(pool), local)
  const timers = spyOn(globalThis, 'setInterval').mockImplementation((() => 0) as never)
  try {
    await clock.begin()
    const [ask, every_ms] = timers.mock.calls[0] as unknown as [() => void, number]
    expect(every_ms).toBeLessThanOrEqual(1_000)
    for (const [i, by_ms] of [3_600_000, -3_600_000, 2].entries()) {
      expect(clock.followed).toBe(i + 1)
      server_ms += by_ms
      ask()
      await becomes(() => clock.now(), server_ms)
    }
  } finally {
    clock.stop()
    timers.mockRestore()
  }
})

test('an answer that says nothing more exact of the time leaves it where it is', async () => {
  const local = new TestClock()
  let [to_server_ms, from_server_ms, set_by_ms] = [2, 0, 0]
  const truth = () => 5_000_000 + set_by_ms + local.monotonic()
  const pool = {
    async unsafe() {
      local.advance(to_server_ms)
      const now = BigInt(truth() * 1_000)
      local.advance(from_server_ms)
      return [{ now }]
    },
  } as unknown as SQL
  let asked = Promise.resolve()
  const clock = new DatabaseClock((question) => (asked = question(pool)), local)
  const timers = spyOn(globalThis, 'setInterval').mockImplementation((() => 0) as never)
  try {
    await clock.begin()
    const [ask] = timers.mock.calls[0] as unknown as [() => void]
    const errorAfter = async (to_ms: number, from_ms: number, set_ms = 0) => {
      ;[to_server_ms, from_server_ms] = [to_ms, from_ms]
      set_by_ms += set_ms
      ask()
      await asked
      await nextTurn() // the answer is done with, and the next question may be asked
      return clock.now() - truth()
    }
    expect(clock.now() - truth()).toBe(1)
    expect(await errorAfter(100, 0)).toBe(1)
    expect(await errorAfter(0, 100)).toBe(0) // the time that was ahead of the server's when it was asked was wrong by 1 ms
    expect(await errorAfter(0, 10_000)).toBe(0)
    expect(await errorAfter(1, 1, -2)).toBe(1)
    expect(await errorAfter(10, 10_000, 3_600_000)).toBe(-10_000)
    expect(await errorAfter(3, 4)).toBe(-4)
  } finally {
    clock.stop()
    timers.mockRestore()
  }
})
