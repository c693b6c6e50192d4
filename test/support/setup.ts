// Loaded before the tests: what was started for them is stopped after the last one, and the event loop never sleeps for long.

import { afterAll } from 'bun:test'
import { after_all } from './after-all.ts'
import { stopPostgres } from './postgres.ts'

/**
 * Wakes the event loop. `expect(promise).rejects` and `.resolves` run the loop themselves, and sleep on after a promise that
 * a setImmediate has settled until something else wakes it: for a second, and for 30 s once the process has been idle
 * for long (oven-sh/bun 39268).
 */
const wake_ms = 5
setInterval(() => {}, wake_ms).unref()

afterAll(stopPostgres)
afterAll(async () => {
  for (const stop of after_all) await stop()
})
