// The environment of the client: fetch, clock, timers, randomness. Tests give their own.

import { onAbort, reasonOf } from './abort.ts'
import { nodeCrypto } from './node-crypto.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Platform {
  fetch: Fetch
  /** Wall clock, ms. */
  now(): number
  /** 0 up to 1, for jitter alone. */
  random(): number
  /** Cannot be guessed. */
  uuid(): Promise<string>
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls back once, unless the function that it returns is called before. */
  timer(ms: number, callback: () => void): () => void
}

/** No request was sent, and none can be: another try would end alike. */
export class NoFetch extends TypeError {
  constructor(
    message = 'There is no fetch here: give the client one, new Waystation({ fetch, … }).',
    cause?: unknown,
  ) {
    super(message, { cause })
  }
}

/** The fetch refuses the signal of this AbortController: one is of jsdom, say, and the other of Node 24, whose fetch minds it. */
export function refusedSignal(error: unknown): NoFetch | undefined {
  // The error may be of another realm, in which instanceof does not hold.
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown }
  // "AbortSignal.any is not a function" is none: a fetch of the caller may say so when it has sent the request.
  if (name !== 'TypeError' || !/\bsignal\b.*\bAbortSignal\b(?!\.\w)/.test(String(message))) return undefined
  return new NoFetch(
    'This fetch does not take the AbortSignal there is here: give both from one place.',
    error,
  )
}

/** A timer that is set for longer fires at once. */
export const timer_ms_max = 2 ** 31 - 1

export const platform: Platform = {
  // Called late, so that a fetch which is replaced after the import is found.
  fetch: (url, init) => {
    if (typeof globalThis.fetch !== 'function') throw new NoFetch()
    return globalThis.fetch(url, init)
  },
  now: () => Date.now(),
  random: () => Math.random(),
  async uuid() {
    const { randomUUID, getRandomValues } = await webCrypto()
    if (randomUUID) return randomUUID.call(await webCrypto())
    // Pages that are not served over HTTPS have no randomUUID.
    const bytes = getRandomValues.call(await webCrypto(), new Uint8Array(16)) as Uint8Array
    return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  },
  async sleep(ms, signal) {
    let left_ms = ms
    for (; left_ms > timer_ms_max; left_ms -= timer_ms_max) await sleepOnce(timer_ms_max, signal)
    await sleepOnce(left_ms, signal)
  },
  timer(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(reasonOf(signal))
    const stopListening = onAbort(signal, () => {
      clearTimeout(timer)
      if (signal) reject(reasonOf(signal))
    })
    const timer = setTimeout(() => {
      stopListening()
      resolve()
    }, ms)
  })
}

/**
 * Keeps an answer from being one of a cache: Next.js 14 keeps those of its `fetch` for good unless it is told not to.
 * Nothing where a request takes no such option, as in workers of Cloudflare with a compatibility date before 2024-11-11.
 * @internal The types of Node before 26 know no such option, nor the `Crypto` of the next function.
 */
export function uncached(): Pick<RequestInit, 'cache'> {
  const option = { cache: 'no-store' } as const
  try {
    new Request('http://localhost', option)
    return option
  } catch {
    return {}
  }
}

/** @internal */
export async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await nodeCrypto())
}
