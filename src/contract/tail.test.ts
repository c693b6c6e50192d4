import { expect, test } from 'bun:test'
import { Notifier, type Waiting } from '../base/notifier.ts'
import type { EventRow } from './event.ts'
import { type JournalReader, Tail } from './tail.ts'
import { Filter } from './wanted.ts'

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
