import { afterEach, describe, expect, jest, test } from 'bun:test'
import { Notifier, type Waiting, waiting_max, waiting_of_tenant_max } from './notifier.ts'
import { groupOf, topicOf } from './signal-text.ts'

afterEach(() => {
  jest.useRealTimers()
})

/** True when it has resolved once everything that was ready has run. */
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

test('a wait that is stopped again after its end leaves alone those that began since', async () => {
  const notifier = new Notifier({ looks_again: false })
  const ended = notifier.wait('a', 60_000)
  notifier.notify('a')
  const waiting = notifier.wait('a', 60_000)
  ended.stop()
  notifier.notify('a')
  expect(await isDone(waiting)).toBe(true)
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

  test('are 1,000 for one tenant, and others still find one', () => {
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

describe('other nodes', () => {
  /** A notifier, and what it tells them. */
  function connected() {
    const notifier = new Notifier()
    const told = { changed: [] as string[], waits: [] as string[] }
    notifier.connect({
      changed: (topic) => told.changed.push(topic),
      waits: (topic) => told.waits.push(topic),
    })
    return { notifier, told }
  }

  test('are told of every change here, and of what is waited for here', () => {
    const { notifier, told } = connected()
    notifier.notify('a')
    const waiting = notifier.wait('b', 60_000)
    expect(told).toEqual({ changed: [topicOf('a')], waits: [topicOf('b')] })
    expect([...notifier.topics()]).toEqual([topicOf('b')])
    waiting.stop()
    expect([...notifier.topics()]).toEqual([])
  })

  test('wake the waits for a topic, and are not told of it again', async () => {
    const { notifier, told } = connected()
    const [waiting, other] = [notifier.wait('a', 60_000), notifier.wait('b', 60_000)]
    notifier.wake(topicOf('a'))
    expect([await isDone(waiting), await isDone(other)]).toEqual([true, false])
    expect(told.changed).toEqual([])
    other.stop()
  })

  test('wake the waits for all topics of a group', async () => {
    const { notifier } = connected()
    const [waiting, other] = [notifier.wait('a', 60_000), notifier.wait('b', 60_000)]
    notifier.wakeGroups(new Set([groupOf(topicOf('a'))]))
    expect([await isDone(waiting), await isDone(other)]).toEqual([true, false])
    other.stop()
  })

  test('make requests look every 5 s while they are heard, and every 500 ms while they are not', () => {
    const { notifier } = connected()
    notifier.setHeard(true)
    expect(notifier.look_again_ms).toBe(5_000)
    notifier.setHeard(false)
    expect(notifier.look_again_ms).toBe(500)
  })

  test.each([true, false])('make every waiting request look once when they are heard: %j', async (heard) => {
    const { notifier } = connected()
    notifier.setHeard(!heard)
    const waiting = notifier.wait('a', 60_000)
    notifier.setHeard(heard)
    expect(await isDone(waiting)).toBe(true)
  })

  test('make requests look 100 at a time, every 50 ms, and each once however often they do', async () => {
    jest.useFakeTimers()
    const { notifier } = connected()
    const waits = Array.from({ length: 201 }, (_, i) => notifier.wait(`key ${i % 50}`, 60_000))
    const done = async () => (await Promise.all(waits.map(isDone))).filter(Boolean).length
    notifier.wakeAll()
    expect(await done()).toBe(100)
    notifier.wakeAll()
    notifier.wakeAll()
    jest.advanceTimersByTime(49)
    expect(await done()).toBe(100)
    jest.advanceTimersByTime(1)
    expect(await done()).toBe(200)
    jest.advanceTimersByTime(50)
    expect(await done()).toBe(201)
    jest.advanceTimersByTime(50)
    expect(jest.getTimerCount()).toBe(0)
  })
})

test('a wait of infinity ends only when it is notified', async () => {
  const notifier = new Notifier({ looks_again: false })
  const { notified } = notifier.wait('ten_a/chk_1', Number.POSITIVE_INFINITY)
  let has_ended = false
  void notified.then(() => {
    has_ended = true
  })
  await Bun.sleep(20)
  expect(has_ended).toBe(false)
  notifier.notify('ten_a/chk_1')
  await notified
})
