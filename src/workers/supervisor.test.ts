import { describe, expect, test } from 'bun:test'
import { TestClock } from '../../test/support/clock.ts'
import { minute_ms } from '../base/clock.ts'
import { counter, type Figure, gauge, value } from '../metrics/figure.ts'
import { readyFigure } from '../metrics/ready.ts'
import { WorkerFigures } from './figures.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import { Supervisor } from './supervisor.ts'
import { SupervisedWorker } from './worker.ts'

interface Started {
  number: number
  received: ToWorker[]
  says(message: FromWorker): void
  ends(code: number): void
}

interface Behaviour {
  /** True when the worker that is started as this one, from 1, says that it serves. */
  serves?(nth: number): boolean
  /** False when the system refuses this start, from 1. */
  starts?(attempt: number): boolean
  /** False: workers do not end when they are told to. */
  drains?: boolean
}

function supervise(workers: number, behaviour: Behaviour = {}) {
  const { serves = () => true, starts = () => true, drains = true } = behaviour
  let attempts = 0
  const clock = new TestClock()
  const started: Started[] = []
  const logged: object[] = []
  const supervisor = new Supervisor({
    workers,
    clock,
    log: { debug() {}, info() {}, warn() {}, error: (fields) => logged.push(fields) },
    start(number, onMessage) {
      attempts += 1
      if (!starts(attempts)) throw new Error('EAGAIN')
      const { promise: exited, resolve } = Promise.withResolvers<number>()
      const received: ToWorker[] = []
      started.push({ number, received, says: onMessage, ends: resolve })
      if (serves(started.length)) queueMicrotask(() => onMessage({ type: 'ready', ...readyAs(number) }))
      return {
        send(message) {
          received.push(message)
          if (message.type === 'drain' && drains) resolve(0)
        },
        kill: () => resolve(137),
        exited,
      }
    },
  })
  const until = async (count: number) => {
    while (started.length < count) await Bun.sleep(5)
  }
  return { supervisor, clock, started, logged, until }
}

const readyAs = (number: number, is_polled = false) => ({ address: `http://worker-${number}`, is_polled })

/** Lets everything run that is ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
}

const counted = (id: number) => ({ type: 'counted' as const, id, retry_after_seconds: null })

test('all workers start, and the service is ready when each of them is', async () => {
  const { supervisor, started } = supervise(3)
  expect(await supervisor.start()).toEqual(readyAs(1))
  expect(started.map(({ number }) => number)).toEqual([1, 2, 3])
  expect(await supervisor.stop()).toBe(true)
  expect(started.map(({ received }) => received)).toEqual([
    [{ type: 'drain' }],
    [{ type: 'drain' }],
    [{ type: 'drain' }],
  ])
})

test.each([
  [true, true],
  [true, false],
])('changes of other nodes are polled for when no worker hears them: %p and %p', async (one, other) => {
  const { supervisor, started } = supervise(2, { serves: () => false })
  const starting = supervisor.start()
  started[0]!.says({ type: 'ready', ...readyAs(1, one) })
  started[1]!.says({ type: 'ready', ...readyAs(2, other) })
  expect(await starting).toEqual(readyAs(1, other))
  await supervisor.stop()
})

test('a worker that ends at its start ends the others, and is not started again', async () => {
  const { supervisor, started } = supervise(2, { serves: () => false })
  const starting = supervisor.start()
  started[1]!.ends(1)
  expect(starting).rejects.toThrow('worker 2 ended with 1 at its start')
  await starting.catch(() => {})
  expect(started).toHaveLength(2)
  expect(started[0]!.received).toEqual([{ type: 'drain' }])
})

test('a worker that crashes before the others serve is started again, until it serves', async () => {
  const { supervisor, started, logged, until } = supervise(2, { serves: (nth) => nth === 1 })
  const starting = supervisor.start()
  await settle()
  started[0]!.ends(139)
  await until(3)
  started[2]!.ends(1)
  await until(4)
  expect(started.map(({ number }) => number)).toEqual([1, 2, 1, 1])
  started[1]!.says({ type: 'ready', ...readyAs(2) })
  expect(await starting).toEqual(readyAs(1))
  expect(logged).toEqual([
    { worker: 1, code: 139, restart_in_ms: 200 },
    { worker: 1, code: 1, restart_in_ms: 400 },
  ])
  await supervisor.stop()
})

test.each([
  ['before any serves', () => false],
  ['when one serves', (nth: number) => nth === 1],
  ['when all serve', () => true],
])('a stop during the start, %s, is not a start that failed', async (_, serves) => {
  const { supervisor, started } = supervise(2, { serves })
  const starting = supervisor.start()
  const stopped = supervisor.stop()
  expect(await starting).toBeNull()
  expect(await stopped).toBe(true)
  expect(started).toHaveLength(2)
})

test('a worker that crashes is started again, later each time, and soon when it has served for a minute', async () => {
  const { supervisor, clock, started, logged, until } = supervise(1)
  await supervisor.start()
  started[0]!.ends(139)
  await until(2)
  started[1]!.ends(1)
  await until(3)
  clock.advance(minute_ms)
  started[2]!.ends(1)
  await until(4)
  expect(logged).toEqual([
    { worker: 1, code: 139, restart_in_ms: 200 },
    { worker: 1, code: 1, restart_in_ms: 400 },
    { worker: 1, code: 1, restart_in_ms: 200 },
  ])
  expect(await supervisor.stop()).toBe(true)
})

test('a worker that the system does not start is tried again, while the others go on', async () => {
  const { supervisor, started, logged, until } = supervise(2, { starts: (attempt) => attempt !== 3 })
  await supervisor.start()
  started[0]!.ends(137)
  await until(3)
  expect(started.map(({ number, received }) => [number, received])).toEqual([
    [1, []],
    [2, []],
    [1, []],
  ])
  expect(logged).toEqual([
    { worker: 1, code: 137, restart_in_ms: 200 },
    { worker: 1, error: 'Error: EAGAIN', restart_in_ms: 400 },
  ])
  const figures = supervisor.collect()
  for (const { received, says } of started.slice(1)) {
    const asked = received.findLast(({ type }) => type === 'collect')
    if (asked?.type === 'collect') says({ type: 'figures', id: asked.id, figures: [] })
  }
  const restarts = (await figures).find(({ name }) => name === 'waystation_worker_restarts_total')
  expect(restarts?.values).toEqual(value(2))
  expect(await supervisor.stop()).toBe(true)
})

test.each([
  [true, false],
  [false, true],
])(
  'a worker that a signal ends while it stops, and that served: %p, stops in order: %p',
  async (serves, in_order) => {
    const { supervisor, started, until } = supervise(1, { serves: (nth) => nth === 1, drains: false })
    await supervisor.start()
    started[0]!.ends(1)
    await until(2)
    const restarted = started[1]!
    if (serves) restarted.says({ type: 'ready', ...readyAs(1) })
    const stopped = supervisor.stop()
    restarted.ends(143)
    expect(await stopped).toBe(in_order)
  },
)

test('addresses are counted for all workers, also for one that was started again', async () => {
  const { supervisor, clock, started, until } = supervise(2)
  await supervisor.start()
  const ask = (worker: Started, id: number) => {
    worker.says({ type: 'count', id, limit: 'sign_ups', address: '192.0.2.1' })
    return worker.received.at(-1)
  }
  for (let id = 1; id <= 15; id++) {
    expect(ask(started[0]!, id)).toEqual(counted(id))
    expect(ask(started[1]!, id)).toEqual(counted(id))
  }
  clock.advance(minute_ms)
  const refused = { type: 'counted' as const, id: 16, retry_after_seconds: 59 * 60 }
  expect(ask(started[0]!, 16)).toEqual(refused)
  started[0]!.ends(1)
  await until(3)
  expect(ask(started[2]!, 16)).toEqual(refused)
  started[1]!.says({ type: 'release', id: 15, limit: 'sign_ups' })
  started[1]!.says({ type: 'release', id: 15, limit: 'sign_ups' })
  expect(ask(started[2]!, 17)).toEqual(counted(17))
  expect(ask(started[2]!, 18)).toEqual({ ...refused, id: 18 })
  await supervisor.stop()
})

describe('Metrics of workers', () => {
  const things = (count: number, level: number): Figure[] => [
    counter('things_total', 'Things.', value(count)),
    gauge('level', 'A level.', value(level)),
  ]
  const numberOf = (figures: readonly Figure[], name: string) =>
    figures.find((figure) => figure.name === name)?.values[0]?.value
  /** The worker answers the last question for its metrics. */
  const answers = ({ received, says }: Started, figures: Figure[]) => {
    const asked = received.findLast(({ type }) => type === 'collect') as { id: number }
    says({ type: 'figures', id: asked.id, figures })
  }

  test('are asked of each, and summed', async () => {
    const { supervisor, started } = supervise(2)
    await supervisor.start()
    const collected = supervisor.collect()
    answers(started[0]!, things(3, 10))
    answers(started[1]!, things(4, 20))
    const figures = await collected
    expect([numberOf(figures, 'things_total'), numberOf(figures, 'level')]).toEqual([7, 30])
    expect(numberOf(figures, 'waystation_workers')).toBe(2)
    expect(numberOf(figures, 'process_resident_memory_bytes')).toBeGreaterThan(0)
    await supervisor.stop()
  })

  test('keep what a worker that has ended had counted, and drop its levels', async () => {
    const { supervisor, started, until } = supervise(2)
    await supervisor.start()
    const first = supervisor.collect()
    answers(started[0]!, things(3, 10))
    answers(started[1]!, things(4, 20))
    await first
    started[0]!.ends(1)
    await until(3)
    await settle()
    const second = supervisor.collect()
    answers(started[1]!, things(5, 20))
    answers(started[2]!, things(1, 1))
    const figures = await second
    expect([numberOf(figures, 'things_total'), numberOf(figures, 'level')]).toEqual([9, 21])
    expect(numberOf(figures, 'waystation_worker_restarts_total')).toBe(1)
    await supervisor.stop()
  })

  test('of one that ends while it is asked are those that it gave last', async () => {
    const { supervisor, started } = supervise(2)
    await supervisor.start()
    const first = supervisor.collect()
    answers(started[0]!, things(3, 10))
    answers(started[1]!, things(4, 20))
    await first
    const second = supervisor.collect()
    answers(started[1]!, things(6, 20))
    started[0]!.ends(1)
    expect(numberOf(await second, 'things_total')).toBe(9)
    await supervisor.stop()
  })

  test('say that the service is not ready while no worker serves', async () => {
    const { supervisor, started } = supervise(1)
    await supervisor.start()
    const first = supervisor.collect()
    answers(started[0]!, [readyFigure(true)])
    expect(numberOf(await first, 'waystation_ready')).toBe(1)
    started[0]!.ends(1)
    await settle()
    expect(numberOf(await supervisor.collect(), 'waystation_ready')).toBe(0)
    await supervisor.stop()
  })

  test('say that it is not ready while a worker does not answer, and count with what that one said last', async () => {
    const figures = new WorkerFigures(0, 1)
    let is_silent = false
    const send = (message: ToWorker) => {
      if (message.type === 'collect' && !is_silent)
        figures.receive(message.id, [readyFigure(true), ...things(3, 10)])
    }
    const workers = [1, 2].map((number) => ({ number, child: { send } }))
    const look = async () => {
      const found = await figures.collect(workers)
      return [numberOf(found, 'waystation_ready'), numberOf(found, 'things_total')]
    }
    expect(await look()).toEqual([1, 6])
    is_silent = true
    expect(await look()).toEqual([0, 6])
    is_silent = false
    expect(await look()).toEqual([1, 6])
  })

  test('are sent by a worker under the id of the question, and not when they cannot be collected', async () => {
    const { made, sent, answer } = worker()
    let fails = false
    made.ready(readyAs(1), async () => {
      if (fails) throw new Error('no')
      return things(1, 2)
    })
    answer({ type: 'collect', id: 7 })
    await settle()
    fails = true
    answer({ type: 'collect', id: 8 })
    await settle()
    expect(sent.slice(1)).toEqual([{ type: 'figures', id: 7, figures: things(1, 2) }])
  })
})

function worker() {
  const sent: FromWorker[] = []
  let answer: (message: ToWorker) => void = () => {}
  let now_ms = 0
  let drains = 0
  const made = new SupervisedWorker(
    { send: (message) => sent.push(message), onMessage: (listener) => (answer = listener), onClosed() {} },
    () => now_ms,
    () => {
      drains += 1
    },
  )
  return {
    made,
    sent,
    answer: (message: ToWorker) => answer(message),
    pass: (ms: number) => (now_ms += ms),
    drains: () => drains,
  }
}

test('a worker asks for each address, and takes back what had no effect', async () => {
  const { made, sent, answer } = worker()
  const admission = made.limiters.sign_ups('192.0.2.1')
  answer(counted(1))
  const taken = await admission
  expect(taken).toHaveProperty('release')
  if ('release' in taken) taken.release()
  expect(sent).toEqual([
    { type: 'count', id: 1, limit: 'sign_ups', address: '192.0.2.1' },
    { type: 'release', id: 1, limit: 'sign_ups' },
  ])
})

test('a worker asks for each sign-up, also after one that was refused', async () => {
  const { made, sent, answer } = worker()
  const refused = made.limiters.sign_ups('192.0.2.1')
  answer({ type: 'counted', id: 1, retry_after_seconds: 3_600 })
  expect(await refused).toEqual({ retry_after_seconds: 3_600 })
  const admission = made.limiters.sign_ups('192.0.2.1')
  expect(sent).toHaveLength(2)
  answer(counted(2))
  expect(await admission).toHaveProperty('release')
})

test('a worker does not ask again for an address that was refused for its wrong keys, until its time is nearly over', async () => {
  const { made, sent, answer, pass } = worker()
  const refused = made.limiters.failed_keys('192.0.2.1')
  answer({ type: 'counted', id: 1, retry_after_seconds: 30 })
  expect(await refused).toEqual({ retry_after_seconds: 30 })
  expect(await made.limiters.failed_keys('192.0.2.1')).toEqual({ retry_after_seconds: 29 })
  pass(28_999)
  expect(await made.limiters.failed_keys('192.0.2.1')).toEqual({ retry_after_seconds: 1 })
  expect(sent).toHaveLength(1)
  pass(1)
  void made.limiters.failed_keys('192.0.2.1')
  expect(sent).toHaveLength(2)
})

test('a supervisor that does not answer refuses nobody', async () => {
  const { made } = worker()
  expect(await made.limiters.sign_ups('192.0.2.1')).toHaveProperty('release')
})

test('a worker stops when it is told', () => {
  const { answer, drains } = worker()
  answer({ type: 'drain' })
  expect(drains()).toBe(1)
})
