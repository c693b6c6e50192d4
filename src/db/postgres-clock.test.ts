import { expect, test } from 'bun:test'
import type { SQL } from 'bun'
import { TestClock } from '../../test/support/clock.ts'
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
