// The audit log, by its filters.

import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { AuditEntry } from '../../sdk/src/types.ts'
import type { Query } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet, usePages } from '../api/load.ts'
import { address, setQuery, to } from '../router.ts'
import { count, shown } from '../text/words.ts'
import { Button, Code } from '../ui/basics.tsx'
import { First } from '../ui/first.tsx'
import { ListView, Split } from '../ui/list.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { type Column, codeColumn, linkColumn, timeColumn } from '../ui/table.tsx'
import { AuditDetail, entryLink } from './detail.tsx'
import { first } from './first.ts'
import { AuditSearch, type Filters, filtersIn } from './search.tsx'
import { WindowTable } from './window-table.tsx'

const page_rows = 100

export function Audit({ params: { id } }: { params: Record<string, string> }) {
  const filters = filtersIn(address.value.query)
  const refreshed = useSignal(0)
  /** The number of the first row that is shown. */
  const top_seq = useSignal<number | null>(null)
  const newest = useGet<PageOf<AuditEntry>>('/v1/audit', { ...filters, limit: 1 }, { on: ['audit'] })
  const newest_seq = newest.value?.items[0]?.seq ?? 0
  const newer = top_seq.value !== null && newest_seq > top_seq.value
  const refresh = () => {
    refreshed.value += 1
    top_seq.value = null
    newest.reload()
  }
  return (
    <Page
      title="Audit log"
      docs="audit"
      lead={<Lead workflow_id={filters.workflow_id} />}
      actions={
        <>
          <span class="offscreen" role="status">
            {newer && 'There are new entries.'}
          </span>
          <Button
            text={newer ? 'Show new entries' : 'Refresh'}
            kind={newer ? 'primary' : 'plain'}
            onClick={refresh}
          />
        </>
      }
    >
      <AuditSearch filters={filters} />
      <Entries key={`${refreshed.value} ${JSON.stringify(filters)}`} {...{ id, filters, top_seq }} />
    </Page>
  )
}

function Lead({ workflow_id }: { workflow_id: string }) {
  if (workflow_id === '') return <>Actions that agents and people reported, newest first.</>
  return (
    <>
      The workflow <Code>{workflow_id}</Code>, newest first. <a href={to('/console/audit')}>All entries</a>
    </>
  )
}

interface EntriesProps {
  id: string | undefined
  filters: Filters
  top_seq: Signal<number | null>
}

function Entries({ id, filters, top_seq }: EntriesProps) {
  const list = usePages<AuditEntry>('/v1/audit', { ...filters, limit: page_rows }, { keep: withoutMetadata })
  const query: Query = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
  const columns = useMemo(() => columnsOf(query), [JSON.stringify(query)])
  const rows = list.value
  useEffect(() => {
    if (rows) top_seq.value = rows[0]?.seq ?? 0
  }, [rows])
  const empty =
    Object.keys(query).length > 0 ? (
      <Empty title="No entry matches">
        Filters are case-sensitive. The action also matches by its prefix; the other filters match the whole
        text.
      </Empty>
    ) : (
      <First {...first} />
    )
  return (
    <Split detail={id && <AuditDetail key={id} {...{ id, query }} rows={rows ?? []} />}>
      {filters.action !== '' && <ActionFilter action={filters.action} />}
      {/* A failed next page does not load the others again. */}
      <ListView
        list={{ ...list, reload: rows ? list.showMore : list.reload }}
        what="entries"
        lines={12}
        {...{ empty }}
      >
        {(entries) => (
          <>
            <WindowTable
              caption="Audit entries"
              rows={entries}
              id={(entry) => entry.id}
              current={id}
              {...{ list, columns }}
            />
            <p class="list-note muted small" role="status">
              {count(entries.length)} {list.more ? 'loaded so far' : 'in all'}
            </p>
          </>
        )}
      </ListView>
    </Split>
  )
}

/** The filter that no field has. */
function ActionFilter({ action }: { action: string }) {
  return (
    <p class="list-filter bar">
      <span>
        Action: <Code>{action}</Code>
      </span>
      <Button text="All actions" kind="quiet" onClick={() => setQuery({ action: undefined })} />
    </p>
  )
}

/** Metadata has up to 64 KiB each: that of the open entry is loaded again. */
function withoutMetadata(entry: AuditEntry): AuditEntry {
  return { ...entry, metadata: null }
}

function columnsOf(query: Query): Column<AuditEntry>[] {
  return [
    { ...linkColumn('Action', ({ id, action }) => [entryLink(id, query), action]), grow: false },
    { ...codeColumn('Actor', ({ actor }) => actor), wide: false, width_px: 170 },
    {
      title: 'Workflow',
      wide: true,
      width_px: 230,
      cell: ({ workflow_id }) =>
        workflow_id !== null && (
          <a href={to('/console/audit', { workflow_id })} title={`Follow ${shown(workflow_id)}`}>
            <Code>{workflow_id}</Code>
          </a>
        ),
    },
    { ...timeColumn('When', ({ created_at }) => created_at), width_px: 100 },
    { title: 'Number', wide: true, number: true, width_px: 90, cell: ({ seq }) => count(seq) },
  ]
}
