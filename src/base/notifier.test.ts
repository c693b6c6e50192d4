import { afterEach, describe, expect, jest, test } from 'bun:test'
import { Notifier, type Waiting, waiting_max, waiting_of_tenant_max } from './notifier.ts'

afterEach(() => {
  jest.useRealTimers()
})

/** Whether it has resolved by now, once everything that was ready has run. */
async function isDone({ notified }: Waiting): Promise<boolean> {
  let done = false
  void notified.then(() => {
    done = true
  })
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  return done
}

test('a notification of a key ends the waits for that key and no others', async () => {
  const notifier = new Notifier()
  const [first, second, other] = [
    notifier.wait('a', 60_000),
    notifier.wait('a', 60_000),
    notifier.wait('b', 60_000),
  ]
  expect(await isDone(first)).toBe(false)
  notifier.notify('a')
  expect(await isDone(first)).toBe(true)
  expect(await isDone(second)).toBe(true)
  expect(await isDone(other)).toBe(false)
  notifier.drain()
  expect(await isDone(other)).toBe(true)
})

test('a notification that comes before a wait does not end it', async () => {
  const notifier = new Notifier()
  notifier.notify('a')
  const waiting = notifier.wait('a', 60_000)
  expect(await isDone(waiting)).toBe(false)
  notifier.drain()
})

test('a key can be waited for again after a notification', async () => {
  const notifier = new Notifier()
  for (let round = 0; round < 3; round++) {
    const waiting = notifier.wait('a', 60_000)
    expect(await isDone(waiting)).toBe(false)
    notifier.notify('a')
    expect(await isDone(waiting)).toBe(true)
  }
})

test('who waits is let go when its time is over, not a millisecond earlier', async () => {
  jest.useFakeTimers()
  const notifier = new Notifier()
  const waiting = notifier.wait('a', 500)
  const longer = notifier.wait('a', 501)
  jest.advanceTimersByTime(499)
  expect(await isDone(waiting)).toBe(false)
  jest.advanceTimersByTime(1)
  expect(await isDone(waiting)).toBe(true)
  expect(await isDone(longer)).toBe(false)
  notifier.notify('a')
  expect(await isDone(longer)).toBe(true)
})

test('no timer is left once all waits have ended', () => {
  jest.useFakeTimers()
  const notifier = new Notifier()
  for (let i = 0; i < 10; i++) notifier.wait(`key ${i % 2}`, 60_000)
  expect(jest.getTimerCount()).toBe(10)
  notifier.notify('key 0')
  expect(jest.getTimerCount()).toBe(5)
  notifier.notify('key 1')
  expect(jest.getTimerCount()).toBe(0)
})

test('who stops waiting leaves nothing behind, and the others wait on', async () => {
  jest.useFakeTimers()
  const notifier = new Notifier()
  const [first, second] = [notifier.wait('a', 60_000), notifier.wait('a', 60_000)]
  first.stop()
  first.stop()
  expect(await isDone(first)).toBe(true)
  expect(await isDone(second)).toBe(false)
  expect(jest.getTimerCount()).toBe(1)
  notifier.notify('a')
  expect(await isDone(second)).toBe(true)
})

test('draining lets everybody go, now and from now on', async () => {
  const notifier = new Notifier()
  expect(notifier.draining).toBe(false)
  const waiting = ['a', 'a', 'b'].map((key) => notifier.wait(key, 60_000))
  notifier.drain()
  expect(notifier.draining).toBe(true)
  for (const one of waiting) expect(await isDone(one)).toBe(true)
  expect(await isDone(notifier.wait('a', 60_000))).toBe(true)
})

describe('places', () => {
  /** How many get one, of so many that ask. */
  const entered = (notifier: Notifier, tenant_id: string, asking: number) =>
    Array.from({ length: asking }, () => notifier.enter(tenant_id)).filter(Boolean).length

  test('are 1,000 for one tenant, and others find one all the same', () => {
    const notifier = new Notifier()
    expect(waiting_of_tenant_max).toBe(1_000)
    expect(entered(notifier, 'ten_a', 1_002)).toBe(1_000)
    expect(entered(notifier, 'ten_b', 1)).toBe(1)
    notifier.leave('ten_a')
    expect(entered(notifier, 'ten_a', 2)).toBe(1)
  })

  test('are 10,000 on a node', () => {
    const notifier = new Notifier()
    expect(waiting_max).toBe(10_000)
    for (let i = 0; i < 9; i++) expect(entered(notifier, `ten_${i}`, 1_000)).toBe(1_000)
    expect(entered(notifier, 'ten_9', 999)).toBe(999)
    expect(entered(notifier, 'ten_last', 2)).toBe(1)
    notifier.leave('ten_0')
    expect(entered(notifier, 'ten_last', 2)).toBe(1)
  })

  test.each([
    [0, 500],
    [1_000, 500],
    [1_001, 500.5],
    [10_000, 5_000],
  ])('taken by %i, each looks again after %d ms: 2,000 looks a second are the most', (waiting, expected) => {
    const notifier = new Notifier()
    for (let i = 0; i < waiting; i++) notifier.enter(`ten_${i % 10}`)
    expect(notifier.look_again_ms).toBe(expected)
    for (let i = 0; i < waiting; i++) notifier.leave(`ten_${i % 10}`)
    expect(notifier.look_again_ms).toBe(500)
  })
})
