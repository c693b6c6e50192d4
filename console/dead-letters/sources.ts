// The sources of dead letters: the schedules and approvals that left them. A letter holds only their ids.

import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Checkpoint, Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { ask, sign_ins } from '../api/session.ts'
import { placeOf } from '../text/failure.ts'
import type { Letter } from './shapes.ts'

export interface Source {
  /** The name of a schedule, the title of an approval; null when a schedule has none. */
  name: string | null
  /** The host and the path of the call that failed; null when none did. */
  place: string | null
  /** Its callback was sent and failed, so it can be sent again. */
  failed_call: boolean
}

type Sources = Record<string, Source>

/** Kept while the tab is signed in: what is over does not change. */
const known: Signal<Sources> = signal({})
let known_since = 0
/** Being looked for, each once. */
const asked = new Set<string>()

/** More schedules than these are first looked for in the list of failed ones. */
const single_looks_max = 4
const looks_at_once = 4
const listed_a_page = 200

type Origin = Pick<Letter, 'source' | 'source_id'>

/** The sources that are known so far, by their ids. Those of these letters follow. */
export function useSources(letters: readonly Origin[]): Sources {
  const ids = [...new Set(letters.flatMap(({ source_id }) => source_id ?? []))]
  useEffect(() => {
    if (known_since !== sign_ins.peek()) {
      known_since = sign_ins.peek()
      known.value = {}
      asked.clear()
    }
    const missing = ids.filter((id) => known.peek()[id] === undefined && !asked.has(id))
    for (const id of missing) asked.add(id)
    void look(missing)
  }, [ids.join()])
  return known.value
}

async function look(missing: readonly string[]): Promise<void> {
  const listed = missing.filter(isSchedule).length > single_looks_max ? await lookAtFailed() : {}
  note(listed)
  const left = missing.filter((id) => listed[id] === undefined)
  const lookInTurn = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) note({ [id]: await lookAt(id) })
  }
  await Promise.all(Array.from({ length: looks_at_once }, lookInTurn))
}

function note(sources: Sources): void {
  if (Object.keys(sources).length > 0) known.value = { ...known.value, ...sources }
}

async function lookAtFailed(): Promise<Sources> {
  const query = { status: 'failed', limit: listed_a_page }
  const listed = await ask<PageOf<Schedule>>('GET', '/v1/schedules', { query })
  return Object.fromEntries(
    (listed.ok ? listed.value.items : []).map((schedule) => [schedule.id, ofSchedule(schedule)]),
  )
}

/** Of a source that was removed. */
const removed: Source = { name: null, place: null, failed_call: false }

async function lookAt(id: string): Promise<Source> {
  if (isSchedule(id)) {
    const found = await ask<Schedule>('GET', pathOf('/v1/schedules', id))
    return found.ok ? ofSchedule(found.value) : removed
  }
  const found = await ask<Checkpoint>('GET', pathOf('/v1/checkpoints', id))
  return found.ok ? ofCheckpoint(found.value) : removed
}

function isSchedule(id: string): boolean {
  return id.startsWith('sch_')
}

function ofSchedule(schedule: Schedule): Source {
  return { name: schedule.name, place: placeOf(schedule.callback_url), failed_call: true }
}

function ofCheckpoint({ title, callback_url, callback }: Checkpoint): Source {
  const failed_call = callback.status === 'failed'
  return { name: title, place: failed_call && callback_url ? placeOf(callback_url) : null, failed_call }
}

/** `nightly report · api.example.com/report`; empty while it is not known. */
export function sourceText(source: Source | undefined): string {
  return [source?.name, source?.place].filter((part) => part).join(' · ')
}
