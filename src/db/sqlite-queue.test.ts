import { describe, expect, test } from 'bun:test'
import type { Job } from './sqlite-job.ts'
import { WriteQueue } from './sqlite-queue.ts'

const job = (key = 'k', more: Partial<Job> = {}): Job => ({
  ...{ key, group: undefined, urgent: false, since: 0, work: () => 0, resolve() {}, reject() {} },
  ...more,
})
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

describe('a commit', () => {
  const names = (jobs: readonly Job[]) => jobs.map(({ key }) => key).join(' ')

  test('takes all that wait in their order while they fit into one', () => {
    const queue = new WriteQueue()
    for (const key of ['a', 'a', 'b', 'a', 'b']) queue.add(job(key))
    expect(names(queue.take())).toBe('a a b a b')
    queue.add(job('b'))
    queue.add(job('a'))
    expect(names(queue.take())).toBe('b a')
  })

  test('that follows a full one takes one write of each tenant in turn, in the order of each', () => {
    const queue = new WriteQueue()
    const of_a = Array.from({ length: 5 }, () => job('a'))
    for (const each of of_a) queue.add(each)
    const first = queue.take()
    queue.putBack(first.splice(2))
    const of_b = [job('b'), job('b')]
    for (const each of [...of_b, job('c')]) queue.add(each)
    const taken = queue.take()
    expect(names(taken)).toBe('a b c a b a')
    expect(taken.filter(({ key }) => key === 'a')).toEqual(of_a.slice(2))
    expect(taken.filter(({ key }) => key === 'b').map((each) => of_b.indexOf(each))).toEqual([0, 1])
  })

  test('that is full as well leaves the next turn to those that had none in it', () => {
    const queue = new WriteQueue()
    for (const key of ['a', 'a', 'a', 'a']) queue.add(job(key))
    queue.putBack(queue.take())
    for (const key of ['b', 'b', 'c', 'd']) queue.add(job(key))
    const taken = queue.take()
    expect(names(taken)).toBe('a b c d a b a a')
    queue.putBack(taken.slice(2))
    for (const key of ['b', 'e']) queue.add(job(key))
    expect(names(queue.take())).toBe('c d a b e a b a')
  })

  test('begins with what is urgent, of each caller in turn, and others have every second place', () => {
    const queue = new WriteQueue()
    for (const key of ['a', 'a', 'a', 'b']) queue.add(job(key))
    for (const key of ['u', 'u', 'v']) queue.add(job(key, { urgent: true }))
    expect(names(queue.take())).toBe('u a v b u a a')
  })
})
