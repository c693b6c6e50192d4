// The failures of the last day that nobody has mended: one row for each cause, newest first.

import type { Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet } from '../api/load.ts'
import { titleOf } from '../dead-letters/letter.ts'
import { What } from '../dead-letters/letters.tsx'
import type { Letter } from '../dead-letters/shapes.ts'
import { type Source, useSources } from '../dead-letters/sources.ts'
import { to } from '../router.ts'
import { standsAlone } from '../schedules/failed.ts'
import { callFailure, callText } from '../text/failure.ts'
import { day_ms, now } from '../text/time.ts'
import { count } from '../text/words.ts'
import { Code, Time } from '../ui/basics.tsx'
import { FailureCell } from '../ui/list.tsx'
import { Card, LoadedView } from '../ui/page.tsx'
import { Newest } from './newest.tsx'

/** Rows of two lines. */
const rows_max = 5
/** The most items of one answer. */
const items_max = 200

interface Failure {
  id: string
  at: string
  agent_id: string | null
  /** Failures of one cause are one row. */
  cause: string
  letter: Letter | null
  schedule: Schedule | null
}

function useFailures() {
  const query = { status: 'failed', limit: items_max }
  const letters = useGet<PageOf<Letter>>('/v1/dlq', query, { on: ['dlq'] })
  const schedules = useGet<PageOf<Schedule>>('/v1/schedules', query, { on: ['schedule'] })
  const both = letters.value && schedules.value && { letters: letters.value, schedules: schedules.value }
  const reload = () => {
    letters.reload()
    schedules.reload()
  }
  return { value: both, problem: letters.problem ?? schedules.problem, reload }
}

const hint = 'What agents, schedules and approvals give up on appears here, to be sent again or discarded.'

export function Failures() {
  const loaded = useFailures()
  const failures = loaded.value ? latest(loaded.value.letters.items, loaded.value.schedules.items) : []
  const groups = groupsOf(failures).slice(0, rows_max)
  const sources = useSources(groups.flatMap(([first]) => (first?.letter ? [first.letter] : [])))
  return (
    <Card title="Failures of the last day" tall actions={<a href={to('/console/dlq')}>All failures</a>}>
      <LoadedView {...{ loaded }} what="failures" lines={2 * rows_max}>
        {({ letters, schedules }) => {
          const cut = letters.next_cursor !== null || schedules.next_cursor !== null
          return (
            <Newest
              items={failures}
              {...{ cut }}
              of="failed and not resolved"
              empty="Nothing failed"
              hint={hint}
            >
              {groups.map((group) => (
                <FailureRow key={group[0]!.id} {...{ group, sources }} />
              ))}
            </Newest>
          )
        }}
      </LoadedView>
    </Card>
  )
}

/** A schedule that left a dead letter is listed once, as the letter. */
function latest(letters: Letter[], schedules: Schedule[]): Failure[] {
  const since = new Date(now.value - day_ms).toISOString()
  const of_letters = letters.map(
    (letter): Failure => ({
      ...{ id: letter.id, at: letter.created_at, agent_id: letter.agent_id, letter, schedule: null },
      cause: `${letter.source} ${letter.cause}`,
    }),
  )
  const of_schedules = schedules.filter(standsAlone).map(
    (schedule): Failure => ({
      ...{ id: schedule.id, at: schedule.updated_at, agent_id: schedule.agent_id, letter: null, schedule },
      cause: schedule.id,
    }),
  )
  return [...of_letters, ...of_schedules]
    .filter(({ at }) => at >= since)
    .toSorted((one, other) => (one.at < other.at ? 1 : -1))
}

/** By cause. Each begins with its newest. */
function groupsOf(failures: Failure[]): Failure[][] {
  const groups = new Map<string, Failure[]>()
  for (const failure of failures) {
    const group = groups.get(failure.cause)
    if (group) group.push(failure)
    else groups.set(failure.cause, [failure])
  }
  return [...groups.values()]
}

function FailureRow({ group, sources }: { group: Failure[]; sources: Record<string, Source> }) {
  const { at, agent_id, letter, schedule } = group[0]!
  return (
    <li>
      {letter && group.length > 1 ? (
        <FailureCell
          href={to('/console/dlq', { source: letter.source, cause: letter.cause })}
          title={titleOf({ source: letter.source, error: letter.cause })}
          what={`${count(group.length)} dead letters of this cause`}
        />
      ) : letter ? (
        <FailureCell
          href={to(pathOf('/console/dlq', letter.id))}
          title={titleOf(letter)}
          what={<What {...{ letter }} source={sources[letter.source_id ?? '']} />}
        />
      ) : (
        <FailureCell
          href={to(pathOf('/console/schedules', schedule!.id), { status: 'failed' })}
          title={callFailure(schedule!.last_error ?? 'failed', schedule!.last_status_code)}
          what={`Schedule · ${callText(schedule!)}`}
        />
      )}
      <span class="rows-side">
        {agent_id !== null && group.length === 1 && <Code>{agent_id}</Code>} <Time {...{ at }} />
      </span>
    </li>
  )
}
