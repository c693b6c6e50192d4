// What agents and people say they did: searched, read, and followed through a workflow.

import { type Signal, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import type { AuditEntry } from '../../sdk/src/types.ts'
import type { Query } from '../address.ts'
import { exactMember } from '../checkpoint.tsx'
import { useGet, usePages } from '../load.ts'
import { address, setQuery, to } from '../router.ts'
import { count, shown } from '../text.ts'
import { Button, Code, Copy, Facts, Text, Time } from '../ui/basics.tsx'
import { Field } from '../ui/form.tsx'
import { Card, Page } from '../ui/page.tsx'
import { Empty, LoadedView } from '../ui/states.tsx'
import { Tree } from '../ui/tree.tsx'
import { type WindowColumn, WindowTable } from '../ui/window-table.tsx'

const texts = ['action', 'actor', 'workflow_id'] as const
const instants = ['from', 'to'] as const
const filter_names = [...texts, ...instants]
type Filters = Record<(typeof filter_names)[number], string>

const page_rows = 100
const newer_every_ms = 5_000

interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

export function Audit({ params: { id } }: { params: Record<string, string> }): JSX.Element {
  const filters = filtersOf(address.value.query)
  const path_of = JSON.stringify(filters)
  const refreshed = useSignal(0)
  const top_seq = useSignal<number | null>(null)
  const newest = useGet<PageOf<AuditEntry>>(
    '/v1/audit',
    { ...filters, limit: 1 },
    { every_ms: newer_every_ms },
  )
  const newest_seq = newest.value?.items[0]?.seq ?? 0
  const newer = top_seq.value !== null && newest_seq > top_seq.value
  return (
    <Page
      title="Audit log"
      lead={
        filters.workflow_id === '' ? (
          'What agents and people say they did, newest first.'
        ) : (
          <>
            The workflow <Code>{filters.workflow_id}</Code>, newest first.{' '}
            <a href={to('/console/audit')}>All entries</a>
          </>
        )
      }
      actions={
        <>
          <span class="offscreen" role="status">
            {newer && 'There are new entries.'}
          </span>
          <Button
            kind={newer ? 'primary' : 'plain'}
            onClick={() => {
              refreshed.value += 1
              top_seq.value = null
              newest.reload()
            }}
          >
            {newer ? 'Show new entries' : 'Refresh'}
          </Button>
        </>
      }
    >
      <Search filters={filters} />
      <Entries key={`${refreshed.value} ${path_of}`} {...{ id, filters, top_seq }} />
    </Page>
  )
}

function filtersOf(query: URLSearchParams): Filters {
  return Object.fromEntries(filter_names.map((name) => [name, query.get(name) ?? ''])) as Filters
}

const labels: Record<keyof Filters, string> = {
  action: 'Action',
  actor: 'Actor or agent',
  workflow_id: 'Workflow',
  from: 'From',
  to: 'Before',
}

/** Sent when one says so, not at every letter: a filter is a whole text, not a part of one. */
function Search({ filters }: { filters: Filters }): JSX.Element {
  const draft = useSignal<Filters>(draftOf(filters))
  const given = JSON.stringify(filters)
  useEffect(() => {
    draft.value = draftOf(filters)
  }, [given])
  const field = (name: keyof Filters) => ({
    label: labels[name],
    value: draft.value[name],
    onInput: (value: string) => {
      draft.value = { ...draft.value, [name]: value }
    },
  })
  return (
    <search aria-label="Audit log">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          // A time that was not touched stays as the address has it, to the millisecond.
          const same = draftOf(filters)
          const at = (name: 'from' | 'to') =>
            draft.value[name] === same[name] ? filters[name] : isoOf(draft.value[name])
          setQuery({ ...draft.value, from: at('from'), to: at('to') })
        }}
      >
        {texts.map((name) => (
          <Field key={name} type="search" placeholder="exactly" {...field(name)} />
        ))}
        {instants.map((name) => (
          <Field key={name} type="datetime-local" {...field(name)} />
        ))}
        <div class="filters-buttons">
          <Button type="submit">Search</Button>
          <Button
            kind="quiet"
            onClick={() => setQuery(Object.fromEntries(filter_names.map((name) => [name, ''])))}
          >
            Clear
          </Button>
        </div>
      </form>
    </search>
  )
}

/** Times in the form of the field: of this place, without a zone. The address has them with theirs. */
function draftOf(filters: Filters): Filters {
  return { ...filters, from: localOf(filters.from), to: localOf(filters.to) }
}

function localOf(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return ''
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString()
  return local.slice(0, at.getSeconds() === 0 ? 16 : 19)
}

function isoOf(local: string): string {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? '' : at.toISOString()
}

interface EntriesProps {
  id: string | undefined
  filters: Filters
  /** Of the first row. */
  top_seq: Signal<number | null>
}

function Entries({ id, filters, top_seq }: EntriesProps): JSX.Element {
  const list = usePages<AuditEntry>('/v1/audit', { ...filters, limit: page_rows }, { keep: withoutMetadata })
  const query = queryOf(filters)
  const columns = useMemo(() => columnsOf(query), [JSON.stringify(query)])
  const rows = list.value
  useEffect(() => {
    if (rows) top_seq.value = rows[0]?.seq ?? 0
  }, [rows])
  // What is there already is not loaded again because the next page failed.
  const loaded = { ...list, reload: rows ? list.showMore : list.reload }
  return (
    <div class="split" data-open={id !== undefined}>
      <div class="split-list">
        <LoadedView {...{ loaded }} what="entries" lines={12}>
          {(entries) =>
            entries.length === 0 && !list.more ? (
              <Nothing filtered={Object.keys(query).length > 0} />
            ) : (
              <>
                <WindowTable
                  caption="Audit entries"
                  rows={entries}
                  id={(entry) => entry.id}
                  current={id}
                  more={list.more}
                  onMore={list.showMore}
                  {...{ columns }}
                />
                <p class="list-note muted small" role="status">
                  {count(entries.length)} {list.more ? 'loaded so far' : 'in all'}
                </p>
              </>
            )
          }
        </LoadedView>
      </div>
      {id !== undefined && <Detail key={id} {...{ id, query }} rows={rows ?? []} />}
    </div>
  )
}

/** Up to 64 KiB each: the entry that is open is read anew. */
function withoutMetadata(entry: AuditEntry): AuditEntry {
  return { ...entry, metadata: null }
}

function queryOf(filters: Filters): Query {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
}

function entryPath(id: string, query: Query): string {
  return to(`/console/audit/${encodeURIComponent(id)}`, query)
}

function columnsOf(query: Query): WindowColumn<AuditEntry>[] {
  return [
    {
      title: 'Action',
      cell: ({ id, action }) => (
        <a href={entryPath(id, query)}>
          <Text>{action}</Text>
        </a>
      ),
    },
    { title: 'Actor', width_px: 116, cell: ({ actor }) => <Code>{actor}</Code> },
    {
      title: 'Workflow',
      wide: true,
      width_px: 190,
      cell: ({ workflow_id }) =>
        workflow_id !== null && (
          <a href={to('/console/audit', { workflow_id })} title={`Follow ${shown(workflow_id)}`}>
            <Code>{workflow_id}</Code>
          </a>
        ),
    },
    { title: 'When', width_px: 92, cell: ({ created_at }) => <Time at={created_at} /> },
    { title: 'Number', wide: true, number: true, width_px: 96, cell: ({ seq }) => count(seq) },
  ]
}

function Nothing({ filtered }: { filtered: boolean }): JSX.Element {
  if (filtered) return <Empty title="Nothing fits">Each filter is a whole text, in the same letters.</Empty>
  return <Empty title="Nothing was noted yet">Agents append with POST /v1/audit.</Empty>
}

interface DetailProps {
  id: string
  query: Query
  rows: readonly AuditEntry[]
}

function Detail({ id, query, rows }: DetailProps): JSX.Element {
  const loaded = useGet<AuditEntry>(`/v1/audit/${encodeURIComponent(id)}`)
  const metadata = useMemo(() => exactMember(loaded.text || '{}', 'metadata'), [loaded.text])
  const at = rows.findIndex((row) => row.id === id)
  const [newer, older] = at === -1 ? [] : [rows[at - 1], rows[at + 1]]
  return (
    <div class="split-detail">
      <LoadedView {...{ loaded }} what="the entry" lines={10}>
        {(entry) => (
          <Card
            title={`Entry ${count(entry.seq)}`}
            actions={<Copy text={entry.id} what="the id of the entry" />}
          >
            <div class="card-body">
              <h3 class="detail-title">
                <Text>{entry.action}</Text>
              </h3>
              <EntryFacts entry={entry} />
              <nav class="detail-links" aria-label="Related entries">
                {newer && <a href={entryPath(newer.id, query)}>Next, later</a>}
                {older && <a href={entryPath(older.id, query)}>Before, earlier</a>}
                {entry.workflow_id !== null && query.workflow_id !== entry.workflow_id && (
                  <a href={entryPath(id, { workflow_id: entry.workflow_id })}>Follow this workflow</a>
                )}
                <a href={entryPath(id, { actor: entry.actor })}>All by this actor</a>
                <a href={entryPath(id, { action: entry.action })}>All of this action</a>
              </nav>
              <section class="detail-section" aria-label="Metadata">
                <h4 class="label">Metadata</h4>
                {metadata === null ? <p class="muted">None</p> : <Tree text={metadata} what="the metadata" />}
              </section>
            </div>
          </Card>
        )}
      </LoadedView>
    </div>
  )
}

function EntryFacts({ entry }: { entry: AuditEntry }): JSX.Element {
  const { actor, agent_id, workflow_id, request_id, created_at } = entry
  return (
    <Facts
      facts={[
        { name: 'When', value: <Time at={created_at} /> },
        { name: 'Actor', value: <Code>{actor}</Code> },
        { name: 'Key used', value: agent_id === null ? 'the admin key' : <Code>{agent_id}</Code> },
        ...(workflow_id === null ? [] : [{ name: 'Workflow', value: <Code>{workflow_id}</Code> }]),
        { name: 'Request', value: <Code>{request_id}</Code> },
      ]}
    />
  )
}
