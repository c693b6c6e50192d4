// The events of one effect, newest first. A lease that is extended often is one line.

import type { Result } from '../api/client.ts'
import { type Loaded, useLoad } from '../api/load.ts'
import { ask } from '../api/session.ts'
import { times } from '../text/words.ts'
import { Time } from '../ui/basics.tsx'
import { History, type Moment } from '../ui/list.tsx'
import { LoadedView, Part } from '../ui/page.tsx'
import type { JournalEvent } from '../workflows/event.ts'
import { actorInWords, titleOf, toneOf } from '../workflows/titles.ts'

const events_a_page = 200
const pages_max = 5

interface Journal {
  events: JournalEvent[]
  /** There are later ones. */
  more: boolean
}

export function useEffectEvents(id: string): Loaded<Journal> {
  return useLoad<Journal>(`events of ${id}`, (signal) => eventsOf(id, signal), {
    every_ms: 0,
    on: ['effect'],
  })
}

async function eventsOf(id: string, signal: AbortSignal): Promise<Result<Journal>> {
  const events: JournalEvent[] = []
  for (let page = 1; ; page += 1) {
    const query = { subject: id, limit: events_a_page, after: events.at(-1)?.seq }
    const result = await ask<{ items: JournalEvent[] }>('GET', '/v1/events', { query, signal })
    if (!result.ok) return result
    events.push(...result.value.items)
    const more = result.value.items.length === events_a_page
    if (!more || page === pages_max) return { ok: true, value: { events, more }, text: '' }
  }
}

export function EffectEvents({ events: loaded }: { events: Loaded<Journal> }) {
  return (
    <Part title="What happened">
      <LoadedView {...{ loaded }} what="what happened" lines={3}>
        {({ events, more }) => (
          <>
            {more && <p class="muted small">The first {events.length} events; there are more.</p>}
            {events.length === 0 ? (
              <p class="muted">Its events were removed after their time.</p>
            ) : (
              <History what="What happened, newest first" moments={momentsOf(events)} />
            )}
          </>
        )}
      </LoadedView>
    </Part>
  )
}

const extended = 'effect.extended'

function momentsOf(events: readonly JournalEvent[]): Moment[] {
  const groups: JournalEvent[][] = []
  for (const event of events) {
    const group = groups.at(-1)
    if (event.type === extended && group?.[0]?.type === extended) group.push(event)
    else groups.push([event])
  }
  return groups.map(momentOf).toReversed()
}

function momentOf(group: JournalEvent[]): Moment {
  const event = group.at(-1)!
  const { id, at, actor, data, type } = event
  return {
    ...{ id, at, tone: toneOf(event) },
    title: type === extended && group.length > 1 ? `Extended ${times(group.length)}` : titleOf(event),
    note: (
      <>
        {actorInWords(actor)}
        {Number(data.fence) > 0 && ` · fence ${data.fence}`}
        {typeof data.lease_until === 'string' && (
          <>
            {' · lease until '}
            <Time at={data.lease_until} />
          </>
        )}
      </>
    ),
  }
}
