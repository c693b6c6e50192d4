// What happens in the tenant, followed once for all that a tab shows: lists load again when something of theirs happened.

import { call } from './client.ts'
import { followEvents } from './events.ts'
import { admin_key } from './session.ts'
import { pause } from './wait.ts'

/** The first part of a type of event; `any` is each of them. */
export type Noun =
  | 'any'
  | 'agent'
  | 'approval_key'
  | 'audit'
  | 'callback'
  | 'checkpoint'
  | 'dlq'
  | 'inbox'
  | 'kv'
  | 'message'
  | 'schedule'
  | 'subscription'
  | 'tenant'

interface Listener {
  nouns: readonly Noun[]
  listener: () => void
}

const listeners = new Set<Listener>()

/** Answers how to stop. */
export function whenHappened(nouns: readonly Noun[], listener: () => void): () => void {
  const entry = { nouns, listener }
  listeners.add(entry)
  return () => listeners.delete(entry)
}

let beginning: Promise<void> = Promise.resolve()

/** Resolves once the place in the journal is known from which the tab follows: what is read after that misses nothing. */
export function begun(): Promise<void> {
  return beginning
}

/** Follows until the signal aborts. One stream carries all nouns: browsers allow six connections for a host. */
export function followJournal(signal: AbortSignal): void {
  const place = placeNow(signal)
  beginning = place.then(() => {})
  void place.then(async (after) => {
    // The service could not be reached: what is missed until then comes with the next repeat.
    for (let at = after; !signal.aborted; at = await placeNow(signal)) {
      if (at === null) {
        await pause(retry_ms, signal, [[window, 'online']])
        continue
      }
      await followEvents({ query: {}, after: at, signal, onEvents: notify })
    }
  })
}

const retry_ms = 5_000

/** A wait of no time answers where the journal stands; null when there was no answer. */
async function placeNow(signal: AbortSignal): Promise<number | null> {
  const body = { any: [{}], wait_seconds: 0 }
  const result = await call<{ after: number }>(admin_key.peek() ?? '', 'POST', '/v1/wait', { body, signal })
  return result.ok ? result.value.after : null
}

function notify(events: readonly { type: string }[]): void {
  const happened = new Set<string>(events.map(({ type }) => type.split('.', 1)[0]!))
  for (const { nouns, listener } of listeners) {
    if (nouns.some((noun) => noun === 'any' || happened.has(noun))) listener()
  }
}
