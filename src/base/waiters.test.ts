import { afterEach, describe, expect, jest, test } from 'bun:test'
import { Waiters, type Waiting, waiting_max, waiting_of_tenant_max } from './waiters.ts'

afterEach(() => {
  jest.useRealTimers()
})

/** Whether it has resolved by now, once everything that was ready has run. */
async function isDone({ told }: Waiting): Promise<boolean> {
  let done = false
  void told.then(() => {
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
  for (let i = 0; i < 10; i++) waiters.wait(`key ${i % 2}`, 60_000)
  expect(jest.getTimerCount()).toBe(10)
  waiters.tell('key 0')
  expect(jest.getTimerCount()).toBe(5)
  waiters.tell('key 1')
  expect(jest.getTimerCount()).toBe(0)
})

test('who stops waiting leaves nothing behind, and the others wait on', async () => {
  jest.useFakeTimers()
  const waiters = new Waiters()
  const [first, second] = [waiters.wait('a', 60_000), waiters.wait('a', 60_000)]
  first.stop()
  first.stop()
  expect(await isDone(first)).toBe(true)
  expect(await isDone(second)).toBe(false)
  expect(jest.getTimerCount()).toBe(1)
  waiters.tell('a')
  expect(await isDone(second)).toBe(true)
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

describe('places', () => {
  /** How many get one, of so many that ask. */
  const entered = (waiters: Waiters, tenant_id: string, asking: number) =>
    Array.from({ length: asking }, () => waiters.enter(tenant_id)).filter(Boolean).length

  test('are 1,000 for one tenant, and others find one all the same', () => {
    const waiters = new Waiters()
    expect(waiting_of_tenant_max).toBe(1_000)
    expect(entered(waiters, 'ten_a', 1_002)).toBe(1_000)
    expect(entered(waiters, 'ten_b', 1)).toBe(1)
    waiters.leave('ten_a')
    expect(entered(waiters, 'ten_a', 2)).toBe(1)
  })

  test('are 10,000 on a node', () => {
    const waiters = new Waiters()
    expect(waiting_max).toBe(10_000)
    for (let i = 0; i < 9; i++) expect(entered(waiters, `ten_${i}`, 1_000)).toBe(1_000)
    expect(entered(waiters, 'ten_9', 999)).toBe(999)
    expect(entered(waiters, 'ten_last', 2)).toBe(1)
    waiters.leave('ten_0')
    expect(entered(waiters, 'ten_last', 2)).toBe(1)
  })

  test.each([
    [0, 500],
    [1_000, 500],
    [1_001, 500.5],
    [10_000, 5_000],
  ])('taken by %i, each looks again after %d ms: 2,000 looks a second are the most', (waiting, expected) => {
    const waiters = new Waiters()
    for (let i = 0; i < waiting; i++) waiters.enter(`ten_${i % 10}`)
    expect(waiters.look_again_ms).toBe(expected)
    for (let i = 0; i < waiting; i++) waiters.leave(`ten_${i % 10}`)
    expect(waiters.look_again_ms).toBe(500)
  })
})
