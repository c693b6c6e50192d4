// Timers of results that wait for others (src/jobs/coalesce.ts).

import { spyOn } from 'bun:test'
import { wait_ms_max } from '../../src/jobs/coalesce.ts'

/** These timers, which a result waits for at most, do not run by themselves during the work. */
export async function withoutPatience(work: (timers: (() => void)[]) => Promise<void>): Promise<void> {
  const timers: (() => void)[] = []
  const real = globalThis.setTimeout
  const held = (callback: () => void, ms?: number) =>
    ms === wait_ms_max ? timers.push(callback) : real(callback, ms)
  const set = spyOn(globalThis, 'setTimeout').mockImplementation(held as unknown as typeof setTimeout)
  try {
    await work(timers)
  } finally {
    set.mockRestore()
  }
}
