// The queue of requests for approval, and the requests that were decided.

import type { Checkpoint } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import { usePages } from '../api/load.ts'
import { to } from '../router.ts'
import { Countdown } from '../ui/basics.tsx'
import { Never } from '../ui/first.tsx'
import { Split, TableList, useStatuses } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, codeColumn, linkColumn, timeColumn } from '../ui/table.tsx'
import { ApprovalDetail } from './detail.tsx'
import { first } from './first.ts'

const titles = {
  pending: 'Waiting',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired',
  cancelled: 'Withdrawn',
}

export function Approvals({ params: { id } }: { params: Record<string, string> }) {
  const { status, query, tabs, panel } = useStatuses(titles, 'approvals')
  const list = usePages<Checkpoint>('/v1/checkpoints', { status }, { on: ['checkpoint'] })
  const pending = status === 'pending'
  const columns: Column<Checkpoint>[] = [
    linkColumn('Request', (row) => [to(pathOf('/console/approvals', row.id), { status: query }), row.title]),
    codeColumn('Agent', ({ agent_id }) => agent_id),
    timeColumn('Asked', ({ created_at }) => created_at, true),
    pending
      ? {
          title: 'Time left',
          cell: ({ expires_at }) => <Countdown until={expires_at} over="time is up" held />,
        }
      : timeColumn('When', ({ resolved_at }) => resolved_at),
  ]
  return (
    <Page
      title="Approvals"
      docs="checkpoints"
      lead="Requests of agents that a person decides. The list updates by itself."
    >
      {tabs}
      <Split panel={panel} detail={id && <ApprovalDetail key={id} id={id} onChange={list.reload} />}>
        <TableList
          what="approvals"
          empty={
            <Never path="/v1/checkpoints" first={first}>
              <Empty title={pending ? 'Nothing waits for you' : 'Nothing here'}>
                {pending && 'New requests appear here as agents make them.'}
              </Empty>
            </Never>
          }
          caption={`Approvals: ${titles[status]}`}
          id={(row) => row.id}
          current={id}
          {...{ list, columns }}
        />
      </Split>
    </Page>
  )
}
