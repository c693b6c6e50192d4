// A workflow with its events: loaded page by page, then followed live.

import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { WorkflowTimeline } from '../../sdk/src/types.ts'
import { pathOf, type Query } from '../api/address.ts'
import { failed, type PageOf, type Problem, type Result } from '../api/client.ts'
import { type Following, followEvents } from '../api/events.ts'
import { ask } from '../api/session.ts'
import { firstOf, pause } from '../api/wait.ts'
import { isDots } from '../ui/workflow-link.tsx'
import type { JournalEvent, Workflow } from './event.ts'
import { changedBy, openThings, type Things, thingPath } from './things.ts'

interface Page extends Omit<WorkflowTimeline, 'items'> {
  items: JournalEvent[]
}

type EventPage = Pick<Page, 'items' | 'next_after'>

interface State {
  workflow: Workflow | null
  events: JournalEvent[]
  problem: Problem | null
  /** There are more events than those that were loaded. */
  more: boolean
}

export interface Story extends State {
  things: Things
  following: Following
  /** The number of events that came while the page was open. */
  fresh: number
  reload: () => void
  showMore: () => void
}

const events_a_page = 200
/** Events loaded at once; "Show more" loads as many again. */
const pages_at_once = 5
/** Each event that came is kept with what is drawn of it. After these the line rests: "Show more" goes on with what came since. */
const followed_max = events_a_page * pages_at_once
/** The things of these events are there before anything is shown, so that nothing moves on the first screen. */
const first_things = 10

const beginning: State = { workflow: null, events: [], problem: null, more: false }

export function useStory(id: string): Story {
  const state = useSignal(beginning)
  const fresh = useSignal(0)
  const tries = useSignal(0)
  const following = useSignal<Following>('starting')
  const loadOn = useRef(() => {})
  const things = useMemo(openThings, [id, tries.value])
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const counted = recounting(id, state, signal)
    const onEvents = (events: JournalEvent[]) => {
      if (signal.aborted) return
      fresh.value += events.length
      things.again([...new Set(events.flatMap(changedBy))])
      state.value = withEvents(state.peek(), events)
      if (!isWhole(state.peek())) counted()
    }
    let loading = false
    const load = async () => {
      if (loading) return
      loading = true
      const { events, workflow } = state.peek()
      const loaded = await loadPages(id, events, signal)
      if (workflow === null) await things.settled(pathsOf(loaded.events.slice(0, first_things)))
      loading = false
      if (signal.aborted) return
      const stays = loaded.problem && workflow
      state.value = stays ? { ...loaded, events, workflow, more: true } : loaded
      // A long line ends before the present: what comes now is not put behind its middle.
      if (loaded.problem || loaded.more) return
      const after = loaded.events.at(-1)?.seq ?? 0
      const rest = new AbortController()
      const until = firstOf(signal, rest.signal)
      const kept_max = loaded.events.length + followed_max
      const onFollowed = (events: JournalEvent[]) => {
        onEvents(events)
        if (signal.aborted || state.peek().events.length < kept_max) return
        rest.abort()
        state.value = { ...state.peek(), more: true }
      }
      await followEvents({
        query: { workflow_id: id },
        ...{ after, signal: until, onEvents: onFollowed, state: following },
      })
    }
    state.value = beginning
    fresh.value = 0
    following.value = 'starting'
    loadOn.current = () => void load()
    loadOn.current()
    return () => {
      controller.abort()
      things.stop()
    }
  }, [id, tries.value])
  return {
    ...state.value,
    ...{ things, following: following.value, fresh: fresh.value },
    reload: () => {
      tries.value += 1
    },
    showMore: () => loadOn.current(),
  }
}

const recount_ms = 1_000

/**
 * Answers how to load again what the service counts of the workflow. It loads at most once in `recount_ms`, and once more
 * where it was called meanwhile.
 */
function recounting(id: string, state: Signal<State>, signal: AbortSignal): () => void {
  let [wanted, running] = [false, false]
  return async () => {
    wanted = true
    if (running) return
    running = true
    while (wanted && !signal.aborted) {
      wanted = false
      const result = await readPage(id, { limit: 1 }, signal)
      const { workflow } = state.peek()
      if (result.ok && workflow && !signal.aborted) {
        const { waiting, failing } = result.value
        state.value = { ...state.peek(), workflow: { ...workflow, waiting, failing } }
      }
      await pause(recount_ms, signal)
    }
    running = false
  }
}

/** All of its events are there: none was removed, and none follows that was not loaded. */
export function isWhole({ events, more }: Pick<State, 'events' | 'more'>): boolean {
  return !more && events[0]?.workflow_seq === 1
}

async function loadPages(id: string, old: JournalEvent[], signal: AbortSignal): Promise<State> {
  const events = [...old]
  let after = events.at(-1)?.seq
  for (let page = 1; ; page += 1) {
    const query = { after, limit: events_a_page }
    const result = await readPage(id, query, signal)
    if (!result.ok) return { ...beginning, problem: result.problem }
    const { items, next_after, more, ...workflow } = result.value
    events.push(...items)
    after = next_after
    if (!more || page === pages_at_once) return { workflow, events, problem: null, more }
  }
}

/** A page of events with the workflow. Of an id that no path can have, the list and the events have the same. */
async function readPage(id: string, query: Query, signal: AbortSignal): Promise<Result<Page>> {
  if (!isDots(id)) return ask<Page>('GET', pathOf('/v1/workflows', id), { query, signal })
  const listed = await ask<PageOf<Workflow>>('GET', '/v1/workflows', {
    query: { prefix: id, limit: 1 },
    signal,
  })
  if (!listed.ok) return listed
  // By prefix they come in the order of their ids: the prefix itself is the first.
  const [workflow] = listed.value.items
  if (workflow?.workflow_id !== id) return failed('WORKFLOW_NOT_FOUND', 'No workflow has this id.')
  const events = await ask<EventPage>('GET', '/v1/events', { query: { ...query, workflow_id: id }, signal })
  if (!events.ok) return events
  const { items, next_after } = events.value
  // Where the last events were removed there is nothing to go on to.
  const more = next_after < workflow.last_seq && next_after > Number(query.after ?? 0)
  return { ok: true, value: { ...workflow, items, next_after, more }, text: '' }
}

function withEvents(old: State, fresh: JournalEvent[]): State {
  const last = fresh.at(-1)!
  const { workflow } = old
  return {
    ...old,
    workflow: workflow && {
      ...workflow,
      events: workflow.events + fresh.length,
      last_at: last.at,
      last_seq: last.seq,
      last_type: last.type,
    },
    events: [...old.events, ...fresh],
  }
}

function pathsOf(events: readonly JournalEvent[]): string[] {
  return [...new Set(events.flatMap((event) => thingPath(event) ?? []))]
}
