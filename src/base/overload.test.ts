import { describe, expect, test } from 'bun:test'
import { Overload, Refusals } from './overload.ts'

function bench() {
  const changes: boolean[] = []
  const overload = new Overload((refuses) => changes.push(refuses))
  /** Returns, for each of these delays, one every 500 ms, whether new work is refused after it. */
  const after = (...delays_ms: number[]) =>
    delays_ms.map((ms, i) => {
      overload.delayed(ms, 10_000 + i * 500)
      return overload.refuses
    })
  return { overload, changes, after }
}

describe('new work', () => {
  test('is refused once the event loop has been delayed by more than 250 ms for 2 s', () => {
    const { after, changes } = bench()
    expect(after(251, 251, 251, 251, 251, 251)).toEqual([false, false, false, false, true, true])
    expect(changes).toEqual([true])
  })

  test('is taken again at the first look that finds the loop in time', () => {
    const { after, changes } = bench()
    expect(after(300, 300, 300, 300, 300, 250, 300)).toEqual([false, false, false, false, true, false, false])
    expect(changes).toEqual([true, false])
  })

  test('is not refused for a delay of 250 ms, nor for one long pause, nor for delays with a look in time between', () => {
    const { overload, after } = bench()
    expect(after(250, 250, 250, 250, 250, 250)).not.toContain(true)
    expect(after(300, 300, 300, 0, 300, 300, 300)).not.toContain(true)
    overload.delayed(0, 20_000)
    overload.delayed(30_000, 50_000)
    expect(overload.refuses).toBe(false)
  })

  test('is refused with Retry-After of 1 to 3 s in turn, so that clients do not return together', () => {
    const refusals = new Refusals('share', 'because')
    const seconds = Array.from({ length: 6 }, () => refusals.next().retry_after_seconds!)
    expect(seconds.slice(3)).toEqual(seconds.slice(0, 3))
    expect(seconds.slice(0, 3).toSorted()).toEqual([1, 2, 3])
  })
})
