// How tests wait: for a condition, never for a time. What is counted here are guards against an endless wait, which a
// slow and busy machine does not reach.

import { expect } from 'bun:test'

/** The time that a browser or another process may take for one step. */
export const patience_ms = 60_000
/** The same for a test of many steps; longer than `patience_ms`, so that the step that hangs is named. */
export const test_ms_max = 300_000

/** The turn of a long write that sets a test up: on a busy machine it takes longer than a request may. */
export const unhurried = { key: 'a test', ms_max: null }

const pause_ms = 10

/** Looks until this holds. Throws when it never does. */
export async function until(holds: () => unknown): Promise<void> {
  const ends_at = performance.now() + patience_ms
  while (!(await holds())) {
    if (performance.now() > ends_at) throw new Error(`never came: ${holds}`)
    await Bun.sleep(pause_ms)
  }
}

/** Looks until it is as wanted, in the sense of toEqual, and fails as toEqual does when it never is. */
export async function becomes(look: () => unknown, wanted: unknown): Promise<void> {
  const ends_at = performance.now() + patience_ms
  for (;;) {
    const seen = await look()
    try {
      return expect(seen).toEqual(wanted)
    } catch (error) {
      if (performance.now() > ends_at) throw error
    }
    await Bun.sleep(pause_ms)
  }
}

/** The answer once there is one: a busy machine refuses with 503. Throws when it never does otherwise. */
export async function answered(send: () => Promise<Response>): Promise<Response> {
  let response = await send()
  await until(async () => {
    if (response.status === 503) response = await send()
    return response.status !== 503
  })
  return response
}

/** Fails instead of waiting for what never comes. */
export function inTime<T>(awaited: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`did not come within ${patience_ms} ms`)), patience_ms)
  return Promise.race([awaited, late.promise]).finally(() => clearTimeout(timer))
}
