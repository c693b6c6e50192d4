import { expect, spyOn, test } from 'bun:test'
import type { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
import { becomes, until } from '../../test/support/patience.ts'
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
    for (const by_ms of [3_600_000, -3_600_000, 2]) {
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
  let [round_trip_ms, set_by_ms, asked] = [2, 0, 0]
  const truth = () => 5_000_000 + set_by_ms + local.monotonic()
  const pool = {
    async unsafe() {
      asked++
      local.advance(round_trip_ms)
      return [{ now: BigInt(truth() * 1_000) }]
    },
  } as unknown as SQL
  const clock = new DatabaseClock((question) => question(pool), local)
  const timers = spyOn(globalThis, 'setInterval').mockImplementation((() => 0) as never)
  try {
    await clock.begin()
    const [ask] = timers.mock.calls[0] as unknown as [() => void]
    const errorMs = () => {
      ask()
      return clock.now() - truth()
    }
    expect(clock.now() - truth()).toBe(1)
    round_trip_ms = 100 // the server's clock was read anywhere within
    await until(() => errorMs() !== 1 || asked > 3)
    expect(clock.now() - truth()).toBe(1)
    set_by_ms = 1_000
    await becomes(errorMs, 50)
  } finally {
    clock.stop()
    timers.mockRestore()
  }
})
