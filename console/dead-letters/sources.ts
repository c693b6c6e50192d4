// The sources of dead letters: the schedules and approvals that left them. A letter holds only their ids.

import { type Signal, signal } from '@preact/signals'
import type { Checkpoint, Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf, Problem, Result } from '../api/client.ts'
import { whenHappened } from '../api/journal.ts'
import { useLoad } from '../api/load.ts'
import { ask, sign_ins } from '../api/session.ts'
import { placeOf } from '../text/failure.ts'
import type { Letter } from './shapes.ts'

export interface Source {
  /** The name of a schedule, the title of an approval; null when a schedule has none. */
  name: string | null
  /** The host and the path of the call that failed; null when none did. */
  place: string | null
  /** Its call: it can be sent again when it has failed. */
  call: 'failed' | 'pending' | 'none'
}

type Sources = Record<string, Source>

/** Kept while the tab is signed in. */
const known: Signal<Sources> = signal({})
let known_since = 0
/** Each source is looked for once: those under way or known, each with its look. The look after an event is another one. */
const looks = new Map<string, symbol>()

// A schedule that failed does not change; the callback of an approval may be sent again.
whenHappened(['callback'], (events) => {
  if (events === null) looks.clear()
  else for (const { subject } of events) looks.delete(subject.id)
})

/** After this long a source is looked for again that could not be read. */
const every_ms = 10_000
/** More schedules than these are first looked for in the list of failed ones. */
const single_looks_max = 4
const looks_at_once = 4
const listed_a_page = 200

type Origin = Pick<Letter, 'source' | 'source_id'>

/** The sources that are known so far, by their ids. Those of these letters follow. */
export function useSources(letters: readonly Origin[]): Sources {
  const ids = [...new Set(letters.flatMap(({ source_id }) => source_id ?? []))]
  useLoad(`sources ${ids.join()}`, () => look(ids), { every_ms, on: ['callback'] })
  return known.value
}

async function look(ids: readonly string[]): Promise<Result<null>> {
  if (known_since !== sign_ins.peek()) {
    known_since = sign_ins.peek()
    known.value = {}
    looks.clear()
  }
  const missing = ids.filter((id) => !looks.has(id))
  const mark = Symbol()
  for (const id of missing) looks.set(id, mark)
  const listed = missing.filter(isSchedule).length > single_looks_max ? await lookAtFailed() : {}
  note(listed)
  const left = missing.filter((id) => listed[id] === undefined)
  const lookInTurn = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const source = await lookAt(id)
      if (looks.get(id) !== mark) continue
      if (source === undefined) looks.delete(id)
      else note({ [id]: source })
    }
  }
  await Promise.all(Array.from({ length: looks_at_once }, lookInTurn))
  return { ok: true, value: null, text: '' }
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

/** Undefined when it could not be read. */
async function lookAt(id: string): Promise<Source | undefined> {
  if (isSchedule(id)) {
    const found = await ask<Schedule>('GET', pathOf('/v1/schedules', id))
    return found.ok ? ofSchedule(found.value) : ofRemoved(found.problem, 'SCHEDULE_NOT_FOUND')
  }
  const found = await ask<Checkpoint>('GET', pathOf('/v1/checkpoints', id))
  return found.ok ? ofCheckpoint(found.value) : ofRemoved(found.problem, 'CHECKPOINT_NOT_FOUND')
}

/** An answer of something in front of the service says nothing about the source. */
function ofRemoved({ code }: Problem, not_found: Problem['code']): Source | undefined {
  return code === not_found ? { name: null, place: null, call: 'none' } : undefined
}

function isSchedule(id: string): boolean {
  return id.startsWith('sch_')
}

function ofSchedule(schedule: Schedule): Source {
  return { name: schedule.name, place: placeOf(schedule.callback_url), call: 'failed' }
}

function ofCheckpoint({ title, callback_url, callback: { status } }: Checkpoint): Source {
  const place = status === 'failed' && callback_url ? placeOf(callback_url) : null
  return { name: title, place, call: status === 'failed' || status === 'pending' ? status : 'none' }
}

/** `nightly report · api.example.com/report`; empty while it is not known. */
export function sourceText(source: Source | undefined): string {
  return [source?.name, source?.place].filter((part) => part).join(' · ')
}
