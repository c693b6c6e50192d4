// A page of events: those that one caller asks for, oldest first, after a bounded look.

import { limit } from '../base/limit.ts'
import type { EventRow } from '../contract/event.ts'
import { looked_max } from '../contract/page.ts'
import { type Filter, isVisible, isWanted, type Wants } from '../contract/wanted.ts'
import type { Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'

/** At least so many are looked at in one read, where not every one of them may be wanted. */
const read_min = limit(
  'events.read_least',
  50,
  'rows',
  'Events that are read at once, at least, for a page whose filters no index answers alone.',
)

export interface EventPage {
  events: EventRow[]
  /** The number up to which events were looked at; null: all that there are. */
  reached: number | null
}

interface Asked {
  /** Only events with a higher number. */
  after: number
  rows_max: number
}

/** 500 events at most are looked at. */
export async function pageOf(
  q: Reader,
  tenant_id: string,
  { filters, viewer }: Wants,
  { after, rows_max }: Asked,
): Promise<EventPage> {
  const asked = { after, rows_max, looks_max: Math.floor(looked_max / filters.length) }
  const [only, ...others] = filters
  if (others.length === 0) return scan(q, tenant_id, only!, viewer, asked)
  // A later scan sees events that came after an earlier one: a page ends before these, or it could pass over one of them.
  const last_seq = await journal.lastSeq(q, tenant_id)
  const found: EventPage[] = []
  for (const filter of filters) found.push(await scan(q, tenant_id, filter, viewer, asked))
  return merged(found, last_seq, rows_max)
}

/** By the index of one of its members; the others are compared. */
async function scan(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  viewer: string | null,
  { after, rows_max, looks_max }: Asked & { looks_max: number },
): Promise<EventPage> {
  const events: EventRow[] = []
  const wants = { filters: [filter], viewer }
  let sees = false
  for (let reached = after, left = looks_max; left > 0; ) {
    const missing = rows_max - events.length
    // After a first look that was not enough, however few are missing: many of the rows are then not wanted.
    const suffices = reached === after && isSelective(filter)
    const read = Math.min(left, suffices ? missing : Math.max(missing, read_min))
    const rows = await journal.page(q, tenant_id, indexOf(filter, viewer), { after: reached, rows_max: read })
    for (const row of rows) {
      reached = row.seq
      sees ||= isVisible(row, viewer)
      if (isWanted(row, wants)) events.push(row)
      if (events.length === rows_max) return { events, reached }
    }
    if (rows.length < read) return { events, reached: null }
    left -= read
    // All events of a thing are private or none is: an agent that may not see them learns not even that they are many.
    if (!sees && filter.subject_id !== null) return { events, reached: null }
    if (left <= 0) return { events, reached }
  }
  return { events, reached: after }
}

/** The one member whose index is walked. */
function indexOf({ workflow_id, subject_id, type }: Filter, viewer: string | null) {
  if (workflow_id !== null) return { workflow_id, viewer }
  if (subject_id !== null) return { subject_id }
  return type === null ? {} : { type }
}

/** True when nearly every row of the index is wanted. */
function isSelective({ workflow_id, subject_id, type, noun }: Filter): boolean {
  return noun === null && [workflow_id, subject_id, type].filter((member) => member !== null).length <= 1
}

/** As far as all of them have looked, and no further than `last_seq`. */
function merged(found: readonly EventPage[], last_seq: number, rows_max: number): EventPage {
  const end = Math.min(last_seq, ...found.map(({ reached }) => reached ?? last_seq))
  const by_seq = new Map(found.flatMap(({ events }) => events.map((event) => [event.seq, event])))
  const events = [...by_seq.values()]
    .filter(({ seq }) => seq <= end)
    .toSorted((one, other) => one.seq - other.seq)
  if (events.length < rows_max) return { events, reached: end }
  return { events: events.slice(0, rows_max), reached: events[rows_max - 1]!.seq }
}
