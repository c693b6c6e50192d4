// Calls at a time to come, on a time line, and what became of the others.

import type { JSX } from 'preact'
import type { Schedule } from '../../sdk/src/types.ts'
import { curl } from '../command.ts'
import { reasonOf } from '../failure.ts'
import { Elsewhere } from '../history.tsx'
import { usePages } from '../load.ts'
import { address, setQuery, to } from '../router.ts'
import { ScheduleDetail } from '../schedule.tsx'
import { Timeline } from '../timeline.tsx'
import { Badge, Code, Command, Text, Time } from '../ui/basics.tsx'
import { Tabs } from '../ui/form.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'
import { type Column, More, Table } from '../ui/table.tsx'
import '../work.css'

const statuses = ['pending', 'failed', 'fired', 'cancelled'] as const
type Status = (typeof statuses)[number]

const titles: Record<Status, string> = {
  pending: 'Upcoming',
  failed: 'Failed',
  fired: 'Fired',
  cancelled: 'Cancelled',
}

const every_ms = 5_000
/** A time line shows more at once than a table. */
const upcoming_a_page = 100

export function Schedules({ params: { id } }: { params: Record<string, string> }): JSX.Element {
  const wanted = address.value.query.get('status')
  const status = statuses.find((name) => name === wanted) ?? 'pending'
  const pending = status === 'pending'
  const query = pending ? { status, limit: upcoming_a_page } : { status }
  const list = usePages<Schedule>('/v1/schedules', query, { every_ms, keep })
  return (
    <Page title="Schedules" lead="Calls that agents have put off to a time. The list follows by itself.">
      <Tabs
        label="Status"
        panel="schedules"
        current={status}
        tabs={statuses.map((name) => ({ id: name, title: titles[name] }))}
        onChange={(name) => setQuery({ status: queryOf(name) })}
      />
      <Elsewhere
        title="Create a schedule"
        lead="Schedules belong to agents: only an agent's key creates one."
      >
        <Command what="Command that creates a schedule">
          {curl(
            'POST',
            '/v1/schedules',
            '{"callback_url": "https://agent.example.com/remind", "callback_payload": {"order": 7},\n' +
              '    "fire_at": "2027-01-31T09:00:00+01:00", "dlq_on_failure": true}',
          )}
        </Command>
      </Elsewhere>
      <div
        id="schedules"
        role="tabpanel"
        aria-label={titles[status]}
        class="split"
        data-open={id !== undefined}
      >
        <div class="split-list">
          <LoadedView loaded={list} what="schedules" lines={8}>
            {(rows) =>
              rows.length === 0 ? (
                <Empty title={pending ? 'Nothing is to come' : 'Nothing here'}>
                  {pending && 'What agents schedule appears here.'}
                </Empty>
              ) : pending ? (
                <>
                  <Timeline schedules={rows} current={id} />
                  {list.more && (
                    <p class="muted small list-note">
                      These were created last. What was created before may be due sooner.
                    </p>
                  )}
                  <More more={list.more} onMore={list.showMore} />
                </>
              ) : (
                <Table
                  caption={`Schedules: ${titles[status]}`}
                  columns={columnsOf(status)}
                  rows={rows}
                  id={(row) => row.id}
                  current={id}
                  more={list.more}
                  onMore={list.showMore}
                />
              )
            }
          </LoadedView>
        </div>
        {id !== undefined && <ScheduleDetail key={id} id={id} onChange={list.reload} />}
      </div>
    </Page>
  )
}

/** The first tab needs no query. */
function queryOf(status: Status): string | undefined {
  return status === 'pending' ? undefined : status
}

/** No row shows a payload. */
function keep(schedule: Schedule): Schedule {
  return { ...schedule, callback_payload: null }
}

function columnsOf(status: Status): Column<Schedule>[] {
  const call: Column<Schedule> = {
    title: 'Call',
    grow: true,
    cell: ({ id, callback_url }) => (
      <a href={to(`/console/schedules/${encodeURIComponent(id)}`, { status: queryOf(status) })}>
        <Text>{callback_url}</Text>
      </a>
    ),
  }
  const agent: Column<Schedule> = {
    title: 'Agent',
    wide: true,
    cell: ({ agent_id }) => <Code>{agent_id}</Code>,
  }
  if (status === 'failed') {
    const why: Column<Schedule> = {
      title: 'Why',
      wide: true,
      cell: ({ last_error, last_status_code }) =>
        last_error && (
          <span title={reasonOf(last_error, last_status_code).what}>
            <Badge tone="bad">{last_error}</Badge>
          </span>
        ),
    }
    return [call, why, agent, { title: 'Gave up', cell: ({ updated_at }) => <Time at={updated_at} /> }]
  }
  if (status === 'fired') {
    const tries: Column<Schedule> = {
      title: 'Attempts',
      number: true,
      wide: true,
      cell: (row) => row.attempts,
    }
    return [
      call,
      agent,
      tries,
      { title: 'Fired', cell: ({ fired_at }) => fired_at && <Time at={fired_at} /> },
    ]
  }
  return [
    call,
    agent,
    { title: 'Was due', wide: true, cell: ({ fire_at }) => <Time at={fire_at} /> },
    { title: 'Cancelled', cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
}
