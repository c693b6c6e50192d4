// Loaded before the tests: what was started for them is stopped after the last one, and the event loop never sleeps for long.

import { afterAll } from 'bun:test'
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
  // Not imported: most tests need no browser, and loading its driver takes a while.
  const { waystation_browser } = globalThis as { waystation_browser?: Promise<{ close(): Promise<void> }> }
  await (await waystation_browser)?.close()
})
