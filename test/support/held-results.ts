// Timers that run when a test says so: of results that wait for others (src/jobs/coalesce.ts), and of searches for due
// jobs (src/jobs/timer.ts).

import { spyOn } from 'bun:test'
import { wait_ms_max } from '../../src/jobs/coalesce.ts'

export interface HeldTimer {
  ms: number
  run(): void
}

/** The timers, by their time in ms, that do not run by themselves during the work. Those that are left run at its end. */
export async function withTimersHeld(
  isHeld: (ms: number) => boolean,
  work: (timers: readonly HeldTimer[]) => Promise<void>,
): Promise<void> {
  const timers: HeldTimer[] = []
  const [realSet, realClear] = [globalThis.setTimeout, globalThis.clearTimeout]
  const remove = (timer: unknown) => {
    const at = timers.indexOf(timer as HeldTimer)
    if (at !== -1) timers.splice(at, 1)
    return at !== -1
  }
  const set = (callback: () => void, ms = 0, ...rest: unknown[]) => {
    if (!isHeld(ms)) return realSet(callback, ms, ...rest)
    const timer: HeldTimer = {
      ms,
      run() {
        if (remove(timer)) callback()
      },
    }
    timers.push(timer)
    return timer
  }
  const clear = (timer: unknown) => {
    if (!remove(timer)) realClear(timer as Timer)
  }
  const setting = spyOn(globalThis, 'setTimeout').mockImplementation(set as unknown as typeof setTimeout)
  const clearing = spyOn(globalThis, 'clearTimeout').mockImplementation(
    clear as unknown as typeof clearTimeout,
  )
  try {
    await work(timers)
  } finally {
    setting.mockRestore()
    clearing.mockRestore()
    for (const timer of [...timers]) timer.run()
  }
}

/** The timers that a result waits for at most do not run by themselves during the work. */
export function withoutPatience(work: (timers: readonly HeldTimer[]) => Promise<void>): Promise<void> {
  return withTimersHeld((ms) => ms === wait_ms_max, work)
}
