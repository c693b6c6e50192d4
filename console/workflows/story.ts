// The story of a workflow: its events as moments on one line, with the time between them in words.

import { second_ms, span } from '../text/time.ts'
import { counted } from '../text/words.ts'
import type { Tone } from '../ui/basics.tsx'
import type { JournalEvent } from './event.ts'
import { pageOf } from './things.ts'
import { titleOf, toneOf } from './titles.ts'

export interface Moment {
  /** The id of its last event. */
  id: string
  event: JournalEvent
  /** Events that the moment stands for beside its own: the attempt that ended a call. */
  with: JournalEvent[]
  title: string
  tone: Tone
  gap: Gap | null
  /** The page of the console that shows its subject; null where a moment above leads there. */
  page: [path: string, text: string] | null
}

/** The time between a moment and the one before. */
export interface Gap {
  ms: number
  text: string
  /** The cause of the wait; null when nothing in particular was waited for. */
  waited: Wait | null
}

/** `decision`: for a person. `call`: for the time of a call or its next attempt. `mend`: an open failure. */
export type Wait = 'decision' | 'call' | 'mend'

/** A shorter time is not worth a word. */
const gap_ms_min = 2 * second_ms

export function momentsOf(numbered: readonly JournalEvent[]): Moment[] {
  const events = causesFirst(numbered)
  const moments: Moment[] = []
  const linked = new Set<string>()
  for (const [i, event] of events.entries()) {
    const [before, next] = [events[i - 1], events[i + 1]]
    if (isPartOf(event, next) || isPartOf(event, before)) continue
    const earlier = moments.at(-1)?.event
    const page = pageOf(event)
    moments.push({
      ...{ id: event.id, event },
      with: before && isPartOf(before, event) ? [before] : [],
      title: titleOf(event),
      tone: toneOf(event),
      gap: earlier ? gapOf(earlier, event, events) : null,
      page: page && !linked.has(page[0]) ? page : null,
    })
    if (page) linked.add(page[0])
  }
  return moments
}

/** Of one transaction the failure is read before the dead letter that it left, whichever was written first. */
function causesFirst(events: readonly JournalEvent[]): JournalEvent[] {
  const ordered = [...events]
  for (let i = ordered.length - 2; i >= 0; i -= 1) {
    const letter = ordered[i]!
    if (letter.type !== 'dlq.created') continue
    let cause = i
    for (let j = i + 1; j < ordered.length && ordered[j]!.at === letter.at; j += 1) {
      if (ordered[j]!.subject.id === letter.data.source_id) cause = j
    }
    if (cause > i) ordered.splice(cause, 0, ...ordered.splice(i, 1))
  }
  return ordered
}

const endings: Record<string, readonly string[]> = {
  'schedule.attempted': ['schedule.fired', 'schedule.failed'],
  'callback.attempted': ['callback.delivered', 'callback.failed'],
}

/** The last attempt and the end of its call are one moment, and so are a decision and the use of the key that made it. */
function isPartOf(event: JournalEvent, other: JournalEvent | undefined): boolean {
  if (!other) return false
  if (event.type === 'approval_key.used') {
    return decisions.has(other.type) && other.subject.id === event.data.checkpoint_id
  }
  const ends = Object.hasOwn(endings, event.type) ? endings[event.type]! : []
  return ends.includes(other.type) && other.subject.id === event.subject.id && other.seq > event.seq
}

function gapOf(before: JournalEvent, event: JournalEvent, events: readonly JournalEvent[]): Gap | null {
  const ms = Date.parse(event.at) - Date.parse(before.at)
  if (ms < gap_ms_min) return null
  const wait = endOfWait(event)
  const began = wait && beginOf(wait, event, events)
  // Words about a wait that began before the moment above would give it too little time.
  const whole = began !== null && Date.parse(before.at) - Date.parse(began.at) < gap_ms_min
  const amount = span(ms)
  if (wait === null || began === null || !whole) return { ms, text: `${amount} later`, waited: wait }
  return { ms, text: `waited ${amount} ${wait_words[wait](began)}`, waited: wait }
}

/** By the event with which the wait began. */
const wait_words: Record<Wait, (began: JournalEvent) => string> = {
  decision: () => 'for a decision',
  call: ({ type }) => (type === 'schedule.attempted' ? 'for the next attempt' : 'until it was due'),
  mend: () => 'for somebody to deal with it',
}

const decisions = new Set(['checkpoint.approved', 'checkpoint.rejected', 'checkpoint.expired'])
const calls = new Set(['schedule.attempted', 'schedule.fired', 'schedule.failed'])
const mends = new Set(['dlq.claimed', 'dlq.resolved', 'dlq.archived', 'dlq.deleted', 'effect.resolved'])
const failures = new Set(['dlq.created', 'effect.unknown'])

function endOfWait({ type }: JournalEvent): Wait | null {
  if (decisions.has(type)) return 'decision'
  if (calls.has(type)) return 'call'
  return mends.has(type) ? 'mend' : null
}

/** The event with which a wait began: the latest of its subject before this one. */
function beginOf(wait: Wait, event: JournalEvent, events: readonly JournalEvent[]): JournalEvent | null {
  const at = events.indexOf(event)
  const i = events.findLastIndex(
    (one, place) => place < at && one.subject.id === event.subject.id && !isPartOf(one, event),
  )
  const found = events[i]
  if (!found) return null
  return wait === 'mend' && !failures.has(found.type) ? null : found
}

/** A thing that is open at the end of the line. */
export interface Open {
  kind: 'checkpoint' | 'schedule' | 'callback' | 'dlq' | 'effect'
  id: string
  since: string
  /** The event that opened it. */
  event: JournalEvent
}

const opens: Record<string, Open['kind']> = {
  'checkpoint.created': 'checkpoint',
  'callback.attempted': 'callback',
  'callback.redriven': 'callback',
  'schedule.created': 'schedule',
  'schedule.workflow_joined': 'schedule',
  'effect.unknown': 'effect',
  'dlq.created': 'dlq',
  'dlq.reopened': 'dlq',
}
const closes = new Set([
  ...decisions,
  ...['checkpoint.cancelled', 'callback.delivered', 'callback.failed'],
  ...['schedule.fired', 'schedule.failed', 'schedule.cancelled', 'schedule.workflow_left'],
  ...['dlq.resolved', 'dlq.archived', 'dlq.deleted'],
  ...['effect.succeeded', 'effect.failed', 'effect.retried', 'effect.resolved'],
])

/** People come first. */
const urgency: readonly Open['kind'][] = ['checkpoint', 'effect', 'dlq', 'callback', 'schedule']

/** The things that are open: of one kind in the order in which they came. */
export function openOf(events: readonly JournalEvent[]): Open[] {
  const open = new Map<string, Open>()
  for (const event of events) {
    const { id } = event.subject
    const kind = opens[event.type]
    if (kind) open.set(id, { kind, id, since: event.at, event })
    else if (closes.has(event.type)) open.delete(id)
  }
  return [...open.values()].toSorted((one, other) => urgency.indexOf(one.kind) - urgency.indexOf(other.kind))
}

/** As the service counts them for lists; a decision that is on its way waits as well. */
export function countsOf(open: readonly Open[]): { waiting: number; failing: number } {
  const failing = open.filter(({ kind }) => kind === 'dlq' || kind === 'effect').length
  return { waiting: open.length - failing, failing }
}

/** The number of open things whose beginning is no longer among the events, by what the service counts. */
export function unseenOf(open: readonly Open[], all: { waiting: number; failing: number }): number {
  const { waiting, failing } = countsOf(open)
  return Math.max(0, all.waiting - waiting) + Math.max(0, all.failing - failing)
}

export function unseenInWords(things: number): string {
  return `${counted(things, 'thing')} ${things === 1 ? 'is' : 'are'} open from before the first event that is kept`
}

/** The time in which a request of this workflow waited for a person: overlapping waits count once. */
export function waitedForPeople(events: readonly JournalEvent[], now_ms: number): number {
  const spans: [from: number, to: number][] = []
  const asked = new Map<string, number>()
  for (const { type, subject, at } of events) {
    const time = Date.parse(at)
    if (type === 'checkpoint.created') asked.set(subject.id, time)
    else if (decisions.has(type) || type === 'checkpoint.cancelled') {
      const from = asked.get(subject.id)
      if (from !== undefined) spans.push([from, time])
      asked.delete(subject.id)
    }
  }
  for (const from of asked.values()) spans.push([from, Math.max(from, now_ms)])
  let [total, end] = [0, 0]
  for (const [from, to] of spans.toSorted(([one], [other]) => one - other)) {
    total += Math.max(0, to - Math.max(from, end))
    end = Math.max(end, to)
  }
  return total
}

/** `2 requests wait for a decision, 1 call is due later`; null when nothing is open. */
export function openInWords(open: readonly Open[]): string | null {
  const of = (kind: Open['kind']) => open.filter((one) => one.kind === kind).length
  const [requests, calls_due, letters] = [of('checkpoint'), of('schedule') + of('callback'), of('dlq')]
  const effects = of('effect')
  const parts = [
    requests > 0 && `${counted(requests, 'request')} ${requests === 1 ? 'waits' : 'wait'} for a decision`,
    effects > 0 &&
      `${counted(effects, 'effect')} of which nobody knows ${effects === 1 ? 'whether it' : 'whether they'} happened`,
    calls_due > 0 && `${counted(calls_due, 'call')} to come`,
    letters > 0 && `${counted(letters, 'failure')} to deal with`,
  ].filter((part) => part !== false)
  return parts.length > 0 ? parts.join(', ') : null
}
