// A workflow with its events: loaded page by page, then followed live.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { WorkflowTimeline } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { Problem, Result } from '../api/client.ts'
import { type Following, followEvents } from '../api/events.ts'
import { ask } from '../api/session.ts'
import type { JournalEvent, Workflow } from './event.ts'
import { openThings, type Things, thingPath } from './things.ts'

interface Page extends Omit<WorkflowTimeline, 'items'> {
  items: JournalEvent[]
}

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
/** The things of these events are there before anything is shown, so that nothing moves on the first screen. */
const first_things = 10

const beginning: State = { workflow: null, events: [], problem: null, more: false }

export function useStory(id: string): Story {
  const state = useSignal(beginning)
  const fresh = useSignal(0)
  const tries = useSignal(0)
  const following = useSignal<Following>('starting')
  const things = useMemo(openThings, [id, tries.value])
  const path = pathOf('/v1/workflows', id)
  const load = (old: JournalEvent[], signal: AbortSignal) => loadPages(path, old, signal)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const start = async () => {
      const loaded = await load([], signal)
      if (signal.aborted) return
      if (loaded.problem) {
        state.value = loaded
        return
      }
      await things.settled(pathsOf(loaded.events.slice(0, first_things)))
      if (signal.aborted) return
      state.value = loaded
      // A long line ends before the present: what comes now is not put behind its middle.
      if (loaded.more) return
      const after = loaded.events.at(-1)?.seq ?? 0
      const onEvents = (events: JournalEvent[]) => {
        if (signal.aborted) return
        fresh.value += events.length
        things.again(pathsOf(events))
        state.value = withEvents(state.value, events)
      }
      await followEvents({ query: { workflow_id: id }, after, signal, onEvents, state: following })
    }
    void start()
    return () => {
      controller.abort()
      things.stop()
    }
  }, [id, tries.value])
  const showMore = async () => {
    const { events, workflow } = state.peek()
    const loaded = await load(events, new AbortController().signal)
    state.value = loaded.problem ? { ...loaded, events, workflow, more: true } : loaded
  }
  return {
    ...state.value,
    ...{ things, following: following.value, fresh: fresh.value },
    reload: () => {
      tries.value += 1
    },
    showMore: () => void showMore(),
  }
}

async function loadPages(path: string, old: JournalEvent[], signal: AbortSignal): Promise<State> {
  const events = [...old]
  let after = events.at(-1)?.seq
  for (let page = 1; ; page += 1) {
    const query = { after, limit: events_a_page }
    const result: Result<Page> = await ask<Page>('GET', path, { query, signal })
    if (!result.ok) return { ...beginning, problem: result.problem }
    const { items, next_after, more, ...workflow } = result.value
    events.push(...items)
    after = next_after
    if (!more || page === pages_at_once) return { workflow, events, problem: null, more }
  }
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
