// Effects by status, those of which nobody knows first, and the policies for their types.

import type { ComponentChildren } from 'preact'
import type { ListedEffect } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { type List, usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { Never } from '../ui/first.tsx'
import { FailureCell, Split, TableList, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, codeColumn, timeColumn } from '../ui/table.tsx'
import { EffectDetail } from './detail.tsx'
import { first } from './first.ts'
import { Policies } from './policies.tsx'
import { type Status, StatusBadge, status_titles, WaitsFor } from './status.tsx'
import './effects.css'

const titles = { all: 'All', ...status_titles, policies: 'Policies' }

export function Effects({ params: { id } }: { params: Record<string, string> }) {
  const { status, query, tabs, panel } = useStatuses(titles, 'effects')
  return (
    <Page
      title="Effects"
      docs="effects"
      lead="What agents do at most once, and what came of it. The list updates by itself."
    >
      {tabs}
      <Of status={id !== undefined && status === 'policies' ? 'all' : status} {...{ id, query, panel }} />
    </Page>
  )
}

function Of({ status, ...props }: Omit<ListedProps, 'status'> & { status: keyof typeof titles }) {
  if (status === 'policies') return <Policies panel={props.panel} />
  return status === 'all' ? <All {...props} {...{ status }} /> : <OfStatus {...props} {...{ status }} />
}

interface ListedProps {
  id: string | undefined
  status: 'all' | Status
  query: string | undefined
  panel: { id: string; 'aria-label': string }
}

const options = { on: ['effect'] } as const

function OfStatus(props: ListedProps & { status: Status }) {
  const list = usePages<ListedEffect>('/v1/effects', { status: props.status }, options)
  return <Listed {...props} {...{ list }} />
}

/** Those that nobody knows about come first, however old they are. Both come at once, so that nothing moves. */
function All(props: ListedProps) {
  const newest = usePages<ListedEffect>('/v1/effects', {}, options)
  const unknown = usePages<ListedEffect>('/v1/effects', { status: 'unknown' }, options)
  const reload = () => {
    newest.reload()
    unknown.reload()
  }
  const first_ids = new Set(unknown.value?.map(({ id }) => id))
  const others = newest.value?.filter(({ id }) => !first_ids.has(id))
  const value = unknown.value && others ? [...unknown.value, ...others] : null
  const list = { ...newest, value, problem: newest.problem ?? unknown.problem, reload }
  const note = value && unknown.more && <MoreUnknown first={unknown.value!.length} />
  return <Listed {...props} {...{ list, note }} />
}

function MoreUnknown({ first }: { first: number }) {
  return (
    <p class="list-filter">
      Nobody knows what became of more than {count(first)} effects; these {count(first)} come first.{' '}
      <a href={to('/console/effects', { status: 'unknown' })}>See all of them</a>
    </p>
  )
}

interface RowsProps extends ListedProps {
  list: List<ListedEffect>
  /** Above the rows. */
  note?: ComponentChildren
}

function Listed({ id, status, query, panel, list, note }: RowsProps) {
  return (
    <Split {...{ panel }} detail={id && <EffectDetail key={id} id={id} onChange={list.reload} />}>
      {note}
      <TableList
        what="effects"
        empty={
          <Never path="/v1/effects" first={first}>
            <Empty title={status === 'unknown' ? 'Nothing is unknown' : 'Nothing here'}>
              {status === 'unknown'
                ? 'When a lease runs out without a report, its effect appears here, and you say what came of it.'
                : 'No effect has this status now.'}
            </Empty>
          </Never>
        }
        caption={`Effects: ${titles[status]}`}
        id={(row) => row.id}
        current={id}
        columns={columnsOf(query)}
        {...{ list }}
      />
    </Split>
  )
}

function columnsOf(query: string | undefined): Column<ListedEffect>[] {
  return [
    {
      title: 'Effect',
      grow: true,
      cell: (effect) => (
        <FailureCell
          href={to(pathOf('/console/effects', effect.id), { status: query })}
          title={`${effect.type} ${effect.key}`}
          what={<WaitsFor {...{ effect }} />}
        />
      ),
    },
    { title: 'Status', cell: (row) => <StatusBadge {...row} /> },
    codeColumn('Agent', ({ held_by, agent_id }) => held_by ?? agent_id),
    codeColumn('Workflow', ({ workflow_id }) => workflow_id),
    timeColumn('Changed', ({ updated_at }) => updated_at, true),
  ]
}
