// Schedules: upcoming calls on a timeline, and the others in a table by status.

import type { Schedule } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { agentCurl } from '../text/curl.ts'
import { callFailure, callText } from '../text/failure.ts'
import { Commands } from '../ui/basics.tsx'
import { Never } from '../ui/first.tsx'
import { FailureCell, ListView, Split, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, codeColumn, linkColumn, More, Table, timeColumn } from '../ui/table.tsx'
import { ScheduleDetail } from './detail.tsx'
import { first } from './first.ts'
import { Timeline } from './timeline.tsx'

const titles = { pending: 'Upcoming', failed: 'Failed', fired: 'Fired', cancelled: 'Cancelled' }
type Status = keyof typeof titles

/** A timeline shows more at once than a table. */
const upcoming_a_page = 100

const creation = agentCurl('POST', '/v1/schedules', {
  json:
    '{"callback_url": "https://agent.example.com/remind", "callback_payload": {"order": 7},\n' +
    '    "fire_at": "2027-01-31T09:00:00+01:00", "dlq_on_failure": true}',
})

export function Schedules({ params: { id } }: { params: Record<string, string> }) {
  const { status, query, tabs, panel } = useStatuses(titles, 'schedules')
  const pending = status === 'pending'
  const filter = pending ? { status, limit: upcoming_a_page } : { status }
  const list = usePages<Schedule>('/v1/schedules', filter, { on: ['schedule'], keep: withoutPayload })
  return (
    <Page
      title="Schedules"
      docs="schedules"
      lead="Calls that agents have scheduled. The list updates by itself."
    >
      {tabs}
      <Commands
        title="Create a schedule"
        lead="Schedules belong to agents: only an agent's key creates one."
        commands={[['Command that creates a schedule', creation]]}
      />
      <Split panel={panel} detail={id && <ScheduleDetail key={id} id={id} onChange={list.reload} />}>
        <ListView
          {...{ list }}
          what="schedules"
          empty={
            <Never path="/v1/schedules" first={first}>
              <Empty title={pending ? 'No call is scheduled' : 'Nothing here'}>
                {pending && 'Calls appear here as agents schedule them.'}
              </Empty>
            </Never>
          }
        >
          {(rows) =>
            pending ? (
              <>
                <Timeline schedules={rows} current={id} />
                {list.more && (
                  <p class="muted small list-note">
                    These are the latest that were created. Earlier ones may be due sooner.
                  </p>
                )}
                <More {...{ list }} />
              </>
            ) : (
              <Table
                caption={`Schedules: ${titles[status]}`}
                columns={columnsOf(status, query)}
                id={(row) => row.id}
                current={id}
                {...{ rows, list }}
              />
            )
          }
        </ListView>
      </Split>
    </Page>
  )
}

/** No row shows a payload. */
function withoutPayload(schedule: Schedule): Schedule {
  return { ...schedule, callback_payload: null }
}

function columnsOf(status: Status, query: string | undefined): Column<Schedule>[] {
  const path = (id: string) => to(pathOf('/console/schedules', id), { status: query })
  const agent = codeColumn<Schedule>('Agent', ({ agent_id }) => agent_id)
  if (status === 'failed') {
    return [failureColumn(path), agent, followed, timeColumn('Gave up', ({ updated_at }) => updated_at)]
  }
  const call = linkColumn<Schedule>('Call', (row) => [path(row.id), callText(row)])
  if (status === 'fired') return [call, agent, attempts, timeColumn('Fired', ({ fired_at }) => fired_at)]
  const due = timeColumn<Schedule>('Due', ({ fire_at }) => fire_at, true)
  return [call, agent, due, timeColumn('Cancelled', ({ updated_at }) => updated_at)]
}

/** The cause, and below it what was called. */
function failureColumn(path: (id: string) => string): Column<Schedule> {
  return {
    title: 'Failure',
    grow: true,
    cell: (row) => (
      <FailureCell
        href={path(row.id)}
        title={callFailure(row.last_error ?? 'failed', row.last_status_code)}
        what={callText(row)}
      />
    ),
  }
}

/** One failure is worked on in one place: at its dead letter, or at the schedule that repeats it. */
const followed: Column<Schedule> = {
  title: 'What followed',
  wide: true,
  cell: ({ retried_as, dead_letter_id }) =>
    retried_as !== null ? (
      <a href={to(pathOf('/console/schedules', retried_as))}>sent again</a>
    ) : dead_letter_id !== null ? (
      <a href={to(pathOf('/console/dlq', dead_letter_id))}>its dead letter</a>
    ) : (
      <span class="muted">nothing</span>
    ),
}

const attempts: Column<Schedule> = {
  title: 'Attempts',
  number: true,
  wide: true,
  cell: (row) => row.attempts,
}
