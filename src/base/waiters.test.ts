import { afterEach, expect, jest, test } from 'bun:test'
import { Waiters } from './waiters.ts'

afterEach(() => {
  jest.useRealTimers()
})

/** Whether it has resolved by now, once everything that was ready has run. */
async function isDone(waiting: Promise<void>): Promise<boolean> {
  let done = false
  void waiting.then(() => {
    done = true
  })
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  return done
}

test('who waits is let go when its key is told of, and nobody else is', async () => {
  const waiters = new Waiters()
  const [first, second, other] = [
    waiters.wait('a', 60_000),
    waiters.wait('a', 60_000),
    waiters.wait('b', 60_000),
  ]
  expect(await isDone(first)).toBe(false)
  waiters.tell('a')
  expect(await isDone(first)).toBe(true)
  expect(await isDone(second)).toBe(true)
  expect(await isDone(other)).toBe(false)
  waiters.drain()
  expect(await isDone(other)).toBe(true)
})

test('what is told before somebody waits lets nobody go', async () => {
  const waiters = new Waiters()
  waiters.tell('a')
  const waiting = waiters.wait('a', 60_000)
  expect(await isDone(waiting)).toBe(false)
  waiters.drain()
})

test('a key can be waited for again after it was told of', async () => {
  const waiters = new Waiters()
  for (let round = 0; round < 3; round++) {
    const waiting = waiters.wait('a', 60_000)
    expect(await isDone(waiting)).toBe(false)
    waiters.tell('a')
    expect(await isDone(waiting)).toBe(true)
  }
})

test('who waits is let go when its time is over, not a millisecond earlier', async () => {
  jest.useFakeTimers()
  const waiters = new Waiters()
  const waiting = waiters.wait('a', 500)
  const longer = waiters.wait('a', 501)
  jest.advanceTimersByTime(499)
  expect(await isDone(waiting)).toBe(false)
  jest.advanceTimersByTime(1)
  expect(await isDone(waiting)).toBe(true)
  expect(await isDone(longer)).toBe(false)
  waiters.tell('a')
  expect(await isDone(longer)).toBe(true)
})

test('nothing is left to run once everybody was told', () => {
  jest.useFakeTimers()
  const waiters = new Waiters()
  for (let i = 0; i < 10; i++) void waiters.wait(`key ${i % 2}`, 60_000)
  expect(jest.getTimerCount()).toBe(10)
  waiters.tell('key 0')
  expect(jest.getTimerCount()).toBe(5)
  waiters.tell('key 1')
  expect(jest.getTimerCount()).toBe(0)
})

test('draining lets everybody go, now and from now on', async () => {
  const waiters = new Waiters()
  expect(waiters.draining).toBe(false)
  const waiting = ['a', 'a', 'b'].map((key) => waiters.wait(key, 60_000))
  waiters.drain()
  expect(waiters.draining).toBe(true)
  for (const one of waiting) expect(await isDone(one)).toBe(true)
  expect(await isDone(waiters.wait('a', 60_000))).toBe(true)
})
