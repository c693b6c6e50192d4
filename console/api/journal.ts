// The tenant's events, followed once for all that a tab shows: lists load again when something of theirs happened.

import type { JournalEvent } from '../workflows/event.ts'
import { followEvents } from './events.ts'
import { firstOf, pause } from './wait.ts'

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

/** Of an event, what a listener may need. */
export type Happened = Pick<JournalEvent, 'type' | 'subject'>

interface Listener {
  nouns: readonly Noun[]
  listener: (events: readonly Happened[] | null) => void
}

const listeners = new Set<Listener>()
let heard_times = 0

/** Another number once something has happened, or may have been missed. */
export function heard(): number {
  return heard_times
}

/** The listener gets the events of these nouns, and null when some may have been missed. Answers how to stop. */
export function whenHappened(nouns: readonly Noun[], listener: Listener['listener']): () => void {
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
  const ended = firstOf(signal, begin.signal)
  let is_late = false
  beginning = pause(begin_ms_max, ended).then(() => {
    is_late = !ended.aborted
  })
  const onBegin = () => {
    begin.abort()
    // Lists that were read before may have missed something.
    heard_times += 1
    if (is_late) for (const { listener } of listeners) listener(null)
  }
  void followEvents({ query: {}, after: null, signal, onEvents: notify, onBegin })
}

/** A resume moves their ends, of which no other event tells. */
const moved_by_resume = ['checkpoint', 'effect', 'dlq']

function notify(events: readonly Happened[]): void {
  heard_times += 1
  for (const { nouns, listener } of listeners) {
    const heard = events.filter(({ type }) => nouns.some((noun) => concerns(noun, type)))
    if (heard.length > 0) listener(heard)
  }
}

function concerns(noun: string, type: string): boolean {
  if (noun === 'any' || noun === nounOf(type)) return true
  return type === 'tenant.resumed' && moved_by_resume.includes(noun)
}

function nounOf(type: string): string {
  return type.split('.', 1)[0]!
}
