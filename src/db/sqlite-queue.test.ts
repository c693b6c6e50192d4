import { describe, expect, test } from 'bun:test'
import type { Job } from './sqlite-job.ts'
import { WriteQueue } from './sqlite-queue.ts'

const job = (): Job => ({ key: 'k', group: undefined, work: () => 0, resolve() {}, reject() {} })
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A queue whose last commit had so many writes. So many came before these were answered, and so many since. */
function queueAfter(last: number, waiting: number, came_before = 0): WriteQueue {
  const queue = new WriteQueue()
  for (let n = 0; n < last; n++) queue.add(job())
  queue.take()
  for (let n = 0; n < came_before; n++) queue.add(job())
  queue.answered()
  for (let n = 0; n < waiting; n++) queue.add(job())
  return queue
}

/** Turns until a commit was due, while each turn brings so many writes. */
async function turnsOf(queue: WriteQueue, brought: number): Promise<number> {
  let is_due = false
  void queue.gather().then(() => (is_due = true))
  let turns = 0
  for (await null; !is_due; turns++) {
    for (let n = 0; n < brought; n++) queue.add(job())
    await turn()
  }
  return turns
}

describe('a batch', () => {
  test('is due at once for a lone writer, and when as many wait as shared the last commit', async () => {
    for (const last of [0, 1, 5]) expect(await turnsOf(queueAfter(last, Math.max(1, last)), 1)).toBe(0)
  })

  test('that is smaller than the last waits until it is as large', async () => {
    const queue = queueAfter(8, 1)
    expect(await turnsOf(queue, 3)).toBe(3)
    expect(queue.take()).toHaveLength(10)
  })

  test('waits for those who were answered also when as many others wait already', async () => {
    const queue = queueAfter(8, 1, 8)
    expect(await turnsOf(queue, 4)).toBe(2)
    expect(queue.take()).toHaveLength(17)
  })

  test('does not wait for writers that do not come', async () => {
    expect(await turnsOf(queueAfter(8, 1), 0)).toBe(1)
  })

  test('waits for 8 turns at most', async () => {
    expect(await turnsOf(queueAfter(1_000, 1), 1)).toBe(8)
  })
})
