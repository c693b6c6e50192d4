// The tenant's events, followed once for all that a tab shows: lists load again when something of theirs happened.

import { followEvents } from './events.ts'
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
  | 'effect'
  | 'effect_policy'
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

/** Resolves once the tab follows: what is read after that misses nothing. Or soon, where no stream comes through. */
export function begun(): Promise<void> {
  return beginning
}

const begin_ms_max = 1_000

/** Follows until the signal aborts. One stream carries all nouns: browsers allow six connections for a host. */
export function followJournal(signal: AbortSignal): void {
  const begin = new AbortController()
  const ended = AbortSignal.any([signal, begin.signal])
  let is_late = false
  beginning = pause(begin_ms_max, ended).then(() => {
    is_late = !ended.aborted
  })
  const onBegin = () => {
    begin.abort()
    // Lists that were read before may have missed something.
    if (is_late) for (const { listener } of listeners) listener()
  }
  void followEvents({ query: {}, after: null, signal, onEvents: notify, onBegin })
}

function notify(events: readonly { type: string }[]): void {
  const happened = new Set<string>(events.map(({ type }) => type.split('.', 1)[0]!))
  // It moves their ends, of which no other event tells.
  if (events.some(({ type }) => type === 'tenant.resumed'))
    for (const noun of ['checkpoint', 'effect', 'dlq']) happened.add(noun)
  for (const { nouns, listener } of listeners) {
    if (nouns.some((noun) => noun === 'any' || happened.has(noun))) listener()
  }
}
