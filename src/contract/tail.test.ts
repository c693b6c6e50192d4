import { expect, test } from 'bun:test'
import { Notifier, type Waiting } from '../base/notifier.ts'
import type { EventRow } from './event.ts'
import { type JournalReader, Tail } from './tail.ts'
import { Filter, marksOf } from './wanted.ts'

/** Says how long each wait is to be, and ends them when the test says so. */
class HeldNotifier extends Notifier {
  readonly asked_ms: number[] = []
  #asked = Promise.withResolvers<void>()

  override wait(key: string, ms: number): Waiting {
    this.asked_ms.push(ms)
    this.#asked.resolve()
    return super.wait(key, 3_600_000)
  }

  /** Resolves when so many waits were asked for. */
  async waits(count: number): Promise<void> {
    while (this.asked_ms.length < count) {
      await this.#asked.promise
      this.#asked = Promise.withResolvers()
    }
  }
}

test('events that could not get their numbers are looked for again within half a second', async () => {
  let is_writable = true
  const rows: EventRow[] = []
  const reader: JournalReader = {
    number: async () => is_writable,
    lastSeq: () => 0,
    after: (_tenant_id, after) => (is_writable ? rows.filter(({ seq }) => seq > after) : []),
  }
  const notifier = new HeldNotifier()
  notifier.setHeard(true)
  const tail = new Tail('ten_1', reader, notifier)
  tail.users = 1
  await tail.refresh()
  is_writable = false
  const taken = Promise.withResolvers<number>()
  tail.add({
    ...{ filters: [new Filter({})], viewer: null, position: 0, end: () => {} },
    take: ({ seq }) => taken.resolve(seq),
  })
  await notifier.waits(2)
  expect(notifier.asked_ms).toEqual([5_000, 500])
  is_writable = true
  rows.push({ seq: 1, type: 'a', subject_id: '', workflow_id: null, private_to: null } as EventRow)
  notifier.wakeAll() // the time is over
  expect(await taken.promise).toBe(1)
  await notifier.waits(3)
  expect(notifier.asked_ms).toEqual([5_000, 500, 5_000])
  tail.users = 0
  tail.end()
})

test('a tail whose notifier never looks again looks only when it is notified', async () => {
  const rows: EventRow[] = []
  const reader: JournalReader = { number: async () => true, lastSeq: () => 0, after: () => rows }
  const notifier = new HeldNotifier({ looks_again: false })
  const tail = new Tail('ten_1', reader, notifier)
  tail.users = 1
  tail.add({
    ...{ filters: [new Filter({})], viewer: null, position: 0, end: () => {} },
    take: () => {},
  })
  await notifier.waits(1)
  expect(notifier.asked_ms).toEqual([Number.POSITIVE_INFINITY])
  tail.users = 0
  tail.end()
})

const eventOf = (seq: number, type = 'x.y') =>
  ({ seq, type, subject_id: 's', workflow_id: null, private_to: null }) as EventRow

test.each(Array.from({ length: 11 }, (_, ticks) => ticks))(
  'a refresh %i microtasks after a look has ended begins no second look beside the one that waits',
  async (ticks) => {
    const events: EventRow[] = []
    let [looking, looking_most] = [0, 0]
    let look = Promise.withResolvers<void>()
    const reader: JournalReader = {
      number: async () => true,
      lastSeq: () => 0,
      async after(_tenant_id, after) {
        const found = events.filter(({ seq }) => seq > after)
        looking_most = Math.max(looking_most, ++looking)
        await look.promise
        looking -= 1
        return found
      },
    }
    const tail = new Tail('ten_1', reader, new HeldNotifier())
    await tail.refresh()
    events.push(eventOf(1), eventOf(2))
    const one = tail.refresh()
    const next = tail.refresh()
    for (let turn = 0; turn < 10; turn++) await null
    look.resolve()
    look = Promise.withResolvers()
    for (let turn = 0; turn < ticks; turn++) await null
    const late = tail.refresh()
    await one
    events.push(eventOf(3))
    for (let turn = 0; turn < 20; turn++) await null
    look.resolve()
    await Promise.all([next, late])
    expect(looking_most).toBe(1)
    await tail.refresh()
    expect([tail.since(0)!.map(({ seq }) => seq), tail.position]).toEqual([[1, 2, 3], 3])
  },
)

test('an event that was handed on is not handed on again', async () => {
  const reader: JournalReader = {
    number: async () => true,
    lastSeq: () => 0,
    after: () => [eventOf(1), eventOf(2)],
  }
  const tail = new Tail('ten_1', reader, new HeldNotifier())
  for (let look = 0; look < 3; look++) await tail.refresh()
  expect([tail.since(0)!.map(({ seq }) => seq), tail.position]).toEqual([[1, 2], 2])
})

/** Counts the events that it is compared with. */
class CountingFilter extends Filter {
  compared = 0

  override takes(event: EventRow): boolean {
    this.compared += 1
    return super.takes(event)
  }
}

test('an event is compared only with those who wait for its type, its noun or everything', async () => {
  const events: EventRow[] = []
  const reader: JournalReader = {
    number: async () => true,
    lastSeq: () => 0,
    after: (_tenant_id, after) => events.filter(({ seq }) => seq > after),
  }
  const tail = new Tail('ten_1', reader, new HeldNotifier())
  tail.users = 1
  await tail.refresh()
  const types = ['schedule.*', 'schedule.fired', 'checkpoint.*', 'schedul.*', '*']
  const filters = types.map((type) => new CountingFilter({ type }))
  const taken: string[] = []
  for (const filter of filters)
    tail.add({
      ...{ filters: [filter], viewer: null, position: 0, end: () => {} },
      take: () => taken.push(types[filters.indexOf(filter)]!),
    })
  events.push(eventOf(1, 'schedule.created'))
  await tail.refresh()
  expect(taken.sort()).toEqual(['*', 'schedule.*'])
  expect(filters.map(({ compared }) => compared)).toEqual([1, 0, 0, 0, 1])
  for (const filter of filters.filter((filter) => filter.takes(events[0]!)))
    expect(marksOf(events[0]!)).toContain(filter.mark)
  tail.users = 0
  tail.end()
})
