// The causes of dead letters, the most frequent first, as the service counts them.

import type { Operations } from '../../sdk/src/types.ts'
import { useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { count } from '../text/words.ts'
import { FailureCell } from '../ui/list.tsx'
import { Empty, LoadedView } from '../ui/page.tsx'
import { type Column, Table, timeColumn } from '../ui/table.tsx'
import { titleOf } from './letter.ts'
import type { Cause, Status } from './shapes.ts'

type Counted = Operations['listCauses']['answer']

export const left_by = { agent: 'agents', schedule: 'schedules', checkpoint: 'approvals' }

interface CausesProps {
  status: Status
  /** The status in an address. */
  query: string | undefined
}

export function Causes({ status, query }: CausesProps) {
  const loaded = useGet<Counted>('/v1/dlq/causes', { status }, { on: ['dlq'] })
  const columns: Column<Cause>[] = [
    {
      title: 'Cause',
      grow: true,
      cell: ({ cause, source }) => (
        <FailureCell
          href={to('/console/dlq', { status: query, source, cause })}
          title={titleOf({ source, error: cause })}
          what={`From ${left_by[source]}`}
        />
      ),
    },
    { title: 'Letters', number: true, cell: (row) => count(row.count) },
    timeColumn('Oldest', ({ oldest_at }) => oldest_at, true),
    timeColumn('Latest', ({ newest_at }) => newest_at, true),
  ]
  return (
    <LoadedView {...{ loaded }} what="causes" lines={8}>
      {({ items, truncated }) =>
        items.length === 0 ? (
          <Empty title="No causes">Causes appear here with the dead letters that have them.</Empty>
        ) : (
          <>
            <Table
              caption={`Causes: ${status}`}
              rows={items}
              id={({ source, cause }) => `${source} ${cause}`}
              {...{ columns }}
            />
            <p class="muted small list-note">
              Ids and numbers are left out of a cause, status codes are kept.
              {truncated && ' There are more dead letters than were counted: the newest were.'}
            </p>
          </>
        )
      }
    </LoadedView>
  )
}
