import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { Notifier, waiting_of_tenant_max } from '../base/notifier.ts'
import type { Dependencies } from './dependencies.ts'
import { waitFor } from './wait.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** Something that changes, and a request of tenant `ten_a` that may wait for it. */
class Watched {
  readonly notifier: Notifier
  readonly held: number[] = []
  readonly clock = new TestClock()
  readonly asker = new AbortController()
  state = 'pending'
  looks = 0
  /** Of a new request with the same key; null while it is allowed. */
  refusal: Error | null = null
  readonly #heeding = new Set<() => void>()

  constructor({ looks_again = true } = {}) {
    this.notifier = new Notifier({ looks_again })
  }

  waitFor(wait_ms: number, look = async () => this.state): Promise<string> {
    const context = {
      caller: { tenant_id: 'ten_a', plan: 'free', status: 'active' as const },
      dependencies: {
        ...{ shared: { notifier: this.notifier }, clock: this.clock },
        keys: { cache: { onForgotten: this.#heed } },
      } as unknown as Dependencies,
      extendTimeout: (ms: number) => this.held.push(ms),
      pause: (waiting: Promise<unknown>) => waiting as never,
      signal: () => this.asker.signal,
      requireStillAllowed: async () => {
        if (this.refusal) throw this.refusal
      },
    }
    const counted = () => {
      this.looks++
      return look()
    }
    return waitFor(context, {
      key: 'ten_a/chk_1',
      wait_ms,
      look: counted,
      isDone: (state) => state !== 'pending',
    })
  }

  #heed = (_: string, listener: () => void) => {
    this.#heeding.add(listener)
    return () => this.#heeding.delete(listener)
  }

  /** Those who hear of the end of a key. */
  get heeding(): number {
    return this.#heeding.size
  }

  /** Keys of the tenant are forgotten. */
  forget(): void {
    for (const heard of this.#heeding) heard()
  }

  /** Changes the state and notifies, as a writer does after its commit. */
  change(state: string): void {
    this.state = state
    this.notifier.notify('ten_a/chk_1')
  }

  /** Time passes for timers and for the clock. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms)
    jest.advanceTimersByTime(ms)
    await settle()
  }

  /** How many places of the tenant are free. */
  free(): number {
    let free = 0
    while (this.notifier.enter('ten_a')) free++
    for (let i = 0; i < free; i++) this.notifier.leave('ten_a')
    return free
  }
}

/** Lets everything run that is ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

/** The value that it has resolved to by now, or `waiting`. */
async function stateOf(answer: Promise<string>): Promise<string> {
  let state = 'waiting'
  void answer.then((value) => {
    state = value
  })
  await settle()
  return state
}

test('a request waits until what it waits for is told, and leaves nothing behind', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(55_000)
  expect(await stateOf(answer)).toBe('waiting')
  expect(watched.held).toEqual([55_000])
  expect(watched.free()).toBe(waiting_of_tenant_max - 1)
  watched.change('approved')
  expect(await stateOf(answer)).toBe('approved')
  expect([watched.free(), jest.getTimerCount()]).toEqual([waiting_of_tenant_max, 0])
})

test('a change that ends no wait keeps none of several requests from the next one', async () => {
  const watched = new Watched({ looks_again: false })
  const answers = [watched.waitFor(55_000), watched.waitFor(55_000), watched.waitFor(55_000)]
  await settle()
  watched.change('pending')
  expect(await Promise.all(answers.map(stateOf))).toEqual(['waiting', 'waiting', 'waiting'])
  expect(watched.looks).toBe(6)
  watched.change('approved')
  expect(await Promise.all(answers.map(stateOf))).toEqual(['approved', 'approved', 'approved'])
  expect([watched.free(), jest.getTimerCount()]).toEqual([waiting_of_tenant_max, 0])
})

test.each(['before it began to wait', 'while it waits'])(
  'a request whose asker is gone %s waits no longer, and leaves nothing behind',
  async (when) => {
    const watched = new Watched()
    if (when === 'before it began to wait') watched.asker.abort()
    const answer = watched.waitFor(55_000)
    await settle()
    watched.asker.abort()
    expect(await stateOf(answer)).toBe('pending')
    expect([watched.free(), jest.getTimerCount()]).toEqual([waiting_of_tenant_max, 0])
  },
)

test('a change that another node made is seen within half a second', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(55_000)
  await settle()
  watched.state = 'rejected'
  await watched.pass(499)
  expect(await stateOf(answer)).toBe('waiting')
  await watched.pass(1)
  expect(await stateOf(answer)).toBe('rejected')
})

test('a change between looking and waiting is not missed', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(55_000, async () => {
    const seen = watched.state
    if (seen === 'pending') watched.change('approved')
    return seen
  })
  expect(await stateOf(answer)).toBe('approved')
  expect(watched.looks).toBe(2)
})

test('the wait ends when its time is over, with what is there, and no earlier', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(1_200)
  await settle()
  for (const ms of [500, 500, 199]) await watched.pass(ms)
  expect(await stateOf(answer)).toBe('waiting')
  await watched.pass(1)
  expect(await stateOf(answer)).toBe('pending')
  expect([watched.free(), jest.getTimerCount()]).toEqual([waiting_of_tenant_max, 0])
})

test.each([
  ['of 0 ms', 0, 'pending'],
  ['for what is done already', 55_000, 'approved'],
])('a wait %s looks once', async (_, wait_ms, state) => {
  const watched = new Watched()
  watched.state = state
  expect(await stateOf(watched.waitFor(wait_ms))).toBe(state)
  expect([watched.looks, watched.free(), jest.getTimerCount()]).toEqual([1, waiting_of_tenant_max, 0])
})

test('who finds no place is answered at once, with what is there', async () => {
  const watched = new Watched()
  for (let i = 1; i < waiting_of_tenant_max; i++) watched.notifier.enter('ten_a')
  const last = watched.waitFor(55_000)
  expect(await stateOf(last)).toBe('waiting')
  const beyond = watched.waitFor(55_000)
  expect(await stateOf(beyond)).toBe('pending')
  expect(watched.held).toEqual([55_000])
  watched.change('approved')
  expect(await stateOf(last)).toBe('approved')
  expect(watched.free()).toBe(1)
})

test('a node that drains lets everybody go, also who comes later', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(55_000)
  await settle()
  watched.notifier.drain()
  expect(await stateOf(answer)).toBe('pending')
  expect(await stateOf(watched.waitFor(55_000))).toBe('pending')
  expect(watched.free()).toBe(waiting_of_tenant_max)
})

test('a look that fails ends the wait and gives the place back', async () => {
  const watched = new Watched()
  const answer = watched.waitFor(55_000, () => Promise.reject(new Error('gone')))
  expect(await stateOf(answer.catch((error: Error) => error.message))).toBe('gone')
  expect([watched.free(), jest.getTimerCount()]).toEqual([waiting_of_tenant_max, 0])
})

test('a request whose key ends is refused at once, and leaves nothing behind', async () => {
  const watched = new Watched({ looks_again: false })
  const answer = watched.waitFor(55_000).catch((error: Error) => error.message)
  expect(await stateOf(answer)).toBe('waiting')
  watched.forget() // the key of another
  expect(await stateOf(answer)).toBe('waiting')
  watched.refusal = new Error('ended')
  watched.forget()
  expect(await stateOf(answer)).toBe('ended')
  expect(watched.looks).toBe(1)
  expect([watched.heeding, watched.free(), jest.getTimerCount()]).toEqual([0, waiting_of_tenant_max, 0])
})

test.each([
  ['comes', (watched: Watched) => watched.change('approved')],
  ['is over', (watched: Watched) => watched.pass(55_000)],
  ['ends with the node', (watched: Watched) => watched.notifier.drain()],
])('a request whose key has ended without a signal is refused when what it waits for %s', async (_, end) => {
  const watched = new Watched({ looks_again: false })
  const answer = watched.waitFor(55_000).catch((error: Error) => error.message)
  await settle()
  watched.refusal = new Error('ended')
  await end(watched)
  expect(await stateOf(answer)).toBe('ended')
  expect(watched.looks).toBe(1)
})
