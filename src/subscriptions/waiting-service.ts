// The events that a subscription has not delivered yet.

import { limit } from '../base/limit.ts'
import type { EventRow, EventType } from '../contract/event.ts'
import type { Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import type { Selected } from './delivery-store.ts'
import { isWanted, takes } from './subscription.ts'

const looked_max = limit(
  'subscriptions.looked_at',
  1_000,
  'rows',
  'Events that one search for those of a subscription passes. The next search continues.',
)
const page_rows_max = limit(
  'subscriptions.looked_at_once',
  200,
  'rows',
  'Events that one statement of such a search reads.',
)
/** Up to so many types each is looked up alone; more are found by reading all events. */
const types_apart_max = limit(
  'subscriptions.types_apart',
  12,
  'entries',
  'Types that a look for events asks for one by one. Past it all events are read.',
)

export interface Waiting {
  /** Oldest first. */
  events: EventRow[]
  /** Up to this number there are no others that it takes. */
  reached: number
  /** There may be others after it. */
  more: boolean
}

/** After its position, `events_max` at most. */
export async function waitingEvents(
  q: Reader,
  tenant_id: string,
  selected: Selected,
  known: ReadonlyMap<string, EventType>,
  events_max: number,
): Promise<Waiting> {
  const head = await journal.lastSeq(q, tenant_id)
  const selection = { ...selected, types: JSON.parse(selected.types) as string[] }
  if (selected.position >= head) return { events: [], reached: selected.position, more: false }
  const types = [...known.keys()].filter((type) => takes(selection.types, type))
  const apart = selected.workflow_id === null && types.length <= types_apart_max
  const rows = apart ? await ofTypes(q, tenant_id, selected, types, events_max) : null
  const found = rows ?? (await inPages(q, tenant_id, selected, head))
  const wanted = found.rows.filter((row) => row.seq <= head && isWanted(selection, row))
  const events = wanted.slice(0, events_max)
  if (events.length < wanted.length || found.reached !== null) {
    const reached = events.length < wanted.length ? events.at(-1)!.seq : Math.min(found.reached!, head)
    return { events, reached, more: true }
  }
  return { events, reached: head, more: false }
}

/** So many are read at once to find the first: those about the subscription itself are not taken. */
const read_for_first = 32

/** The selection takes no event up to `position`, which is just before the first that it takes, or where one search ended. */
export async function passedFrom(
  q: Reader,
  tenant_id: string,
  selected: Selected,
  known: ReadonlyMap<string, EventType>,
): Promise<{ position: number; more: boolean }> {
  const { events, reached, more } = await waitingEvents(q, tenant_id, selected, known, read_for_first)
  const [first] = events
  return first ? { position: first.seq - 1, more: false } : { position: reached, more }
}

interface Found {
  rows: EventRow[]
  /** Null when the end was reached. */
  reached: number | null
}

async function ofTypes(
  q: Reader,
  tenant_id: string,
  { position: after }: Selected,
  types: readonly string[],
  events_max: number,
): Promise<Found> {
  const rows_max = events_max + 1
  const pages = await Promise.all(
    types.map((type) => journal.page(q, tenant_id, { type }, { after, rows_max })),
  )
  const rows = pages.flat().toSorted((one, other) => one.seq - other.seq)
  // After the end of a full page there may be others of its type.
  const ends = pages.flatMap((page) => (page.length === rows_max ? [page.at(-1)!.seq] : []))
  if (ends.length === 0) return { rows, reached: null }
  const reached = Math.min(...ends)
  return { rows: rows.filter(({ seq }) => seq <= reached), reached }
}

async function inPages(
  q: Reader,
  tenant_id: string,
  { position, workflow_id }: Selected,
  head: number,
): Promise<Found> {
  const filter = workflow_id === null ? {} : { workflow_id }
  const rows: EventRow[] = []
  let after = position
  while (rows.length < looked_max && after < head) {
    const page = await journal.page(q, tenant_id, filter, { after, rows_max: page_rows_max })
    rows.push(...page)
    if (page.length < page_rows_max) return { rows, reached: null }
    after = page.at(-1)!.seq
  }
  return { rows, reached: after }
}
