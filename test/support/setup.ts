// Loaded before the tests: what was started for them is stopped after the last one.

import { afterAll } from 'bun:test'
import { stopPostgres } from './postgres.ts'

afterAll(stopPostgres)
afterAll(async () => {
  // Not imported: most tests need no browser, and loading its driver takes a while.
  const { waystation_browser } = globalThis as { waystation_browser?: Promise<{ close(): Promise<void> }> }
  await (await waystation_browser)?.close()
})
