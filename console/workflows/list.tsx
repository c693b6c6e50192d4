// All workflows, and the line of one.

import { usePages } from '../api/load.ts'
import { address, setQuery } from '../router.ts'
import { count } from '../text/words.ts'
import { Badge, Code } from '../ui/basics.tsx'
import { Never } from '../ui/first.tsx'
import { PrefixSearch } from '../ui/form.tsx'
import { Split, TableList, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, linkColumn, timeColumn } from '../ui/table.tsx'
import { workflowHref } from '../ui/workflow-link.tsx'
import type { Workflow } from './event.ts'
import { first } from './first.ts'
import { titleOfType } from './titles.ts'
import { WorkflowPage } from './workflow.tsx'
import './workflows.css'

const titles = { all: 'All', waiting: 'Waiting', failed: 'Failed', idle: 'Nothing open' }

export function Workflows({ params }: { params: Record<string, string> }) {
  const id = params.id ?? address.value.query.get('id') ?? undefined
  return id === undefined ? <AllWorkflows /> : <WorkflowPage key={id} id={id} />
}

function AllWorkflows() {
  const { status, tabs, panel } = useStatuses(titles, 'workflows')
  const prefix = address.value.query.get('prefix') ?? ''
  const query = { status: status === 'all' ? undefined : status, prefix }
  const list = usePages<Workflow>('/v1/workflows', query, { on: ['any'] })
  return (
    <Page
      title="Workflows"
      docs="workflows"
      lead="Each is a timeline, from the question to the consequence. The latest activity comes first."
    >
      {tabs}
      <PrefixSearch
        label="Workflows"
        title="Id begins with"
        live
        {...{ prefix }}
        onSearch={(text) => setQuery({ prefix: text })}
      />
      <Split panel={panel}>
        <TableList
          what="workflows"
          empty={
            <Never path="/v1/workflows" first={first}>
              <Empty title={prefix === '' ? 'Nothing here' : 'No workflow has this prefix'}>
                {prefix === '' ? 'No workflow is in this state now.' : 'The prefix is case-sensitive.'}
              </Empty>
            </Never>
          }
          caption="Workflows"
          id={(row) => row.workflow_id}
          {...{ list, columns }}
        />
      </Split>
    </Page>
  )
}

const columns: Column<Workflow>[] = [
  linkColumn('Workflow', ({ workflow_id }) => [workflowHref(workflow_id), workflow_id], Code),
  { title: 'State', cell: (row) => <State {...row} /> },
  {
    title: 'Latest',
    wide: true,
    cell: ({ last_type }) => <span class="muted">{titleOfType(last_type)}</span>,
  },
  { title: 'Events', wide: true, number: true, cell: ({ events }) => count(events) },
  timeColumn('When', ({ last_at }) => last_at),
]

function State({ waiting, failing }: Workflow) {
  if (waiting === 0 && failing === 0) return <span class="muted">nothing open</span>
  return (
    <span class="parts workflow-state">
      {waiting > 0 && <Badge tone="accent">{`${count(waiting)} waiting`}</Badge>}
      {failing > 0 && <Badge tone="bad">{`${count(failing)} failed`}</Badge>}
    </span>
  )
}
