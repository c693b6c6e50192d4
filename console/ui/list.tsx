// Lists with the record that is open beside them.

import type { ComponentChildren, JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { List, Loaded } from '../api/load.ts'
import { address, closeRecord, listAddress, setQuery } from '../router.ts'
import { shown } from '../text/words.ts'
import { Button, Time, type Tone } from './basics.tsx'
import { useKeptFocus } from './focus.ts'
import { Tabs } from './form.tsx'
import { heard, useHeard, useOpenRecord } from './open-record.ts'
import { Card, LoadedView, Part } from './page.tsx'
import { type Column, More, Table } from './table.tsx'

interface SplitProps {
  /** The record that is open. */
  detail?: ComponentChildren
  /** The tab panel that this is. */
  panel?: { id: string; 'aria-label': string }
  /** The name of the list, for screen readers. */
  label?: string
  children: ComponentChildren
}

/** A list with the open record beside it; where both do not fit, the record is a page of its own. */
export function Split({ detail, panel, label, children }: SplitProps) {
  const list = useRef<HTMLElement>(null)
  const record = useRef<HTMLElement>(null)
  const open = Boolean(detail)
  useOpenRecord({ list, record }, open ? address.value.path : null)
  useKeptFocus(list)
  return (
    <div class="split" data-open={open} {...panel} role={panel && 'tabpanel'}>
      <section class="split-list" ref={list} tabIndex={-1} aria-label={label}>
        {children}
      </section>
      {open && (
        <section class="split-detail" ref={record} tabIndex={-1} aria-label="Open record">
          <Close />
          <div class="split-record">{detail}</div>
        </section>
      )}
      <p class="offscreen" role="status">
        {open && heard.value}
      </p>
    </div>
  )
}

function Close() {
  const close = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    closeRecord()
  }
  return (
    <a class="button close" data-kind="quiet" href={listAddress()} onClick={close}>
      <span class="close-beside">Close</span>
      <span class="close-page">Back to the list</span>
    </a>
  )
}

interface ListViewProps<T> {
  list: List<T>
  /** The rows, in words: "approvals". */
  what: string
  /** The height of the skeleton. */
  lines?: number
  empty: ComponentChildren
  children: (rows: T[]) => ComponentChildren
}

/** The states of a list. */
export function ListView<T>({ list, what, lines = 8, empty, children }: ListViewProps<T>) {
  return (
    <LoadedView loaded={list} {...{ what, lines }}>
      {(rows) => (
        <>
          {list.rests && <Rests {...{ list }} />}
          {rows.length === 0 && !list.more ? empty : children(rows)}
        </>
      )}
    </LoadedView>
  )
}

function Rests({ list: { reload } }: { list: Pick<List<unknown>, 'reload'> }) {
  return (
    <div class="list-filter bar" data-wrap>
      <span role="status">So long a list no longer updates by itself: its rows are as they were loaded.</span>
      <Button text="Reload the list" kind="quiet" onClick={reload} />
    </div>
  )
}

interface TableListProps<T> extends Omit<ListViewProps<T>, 'lines' | 'children'> {
  caption: string
  columns: Column<T>[]
  id: (row: T) => string
  current?: string | undefined
}

/** A list as a table. */
export function TableList<T>({ list, what, empty, ...table }: TableListProps<T>) {
  return <ListView {...{ list, what, empty }}>{(rows) => <Table {...{ rows, list }} {...table} />}</ListView>
}

interface Statuses<S extends string> {
  status: S
  /** The status in the query of an address: undefined for the first one. */
  query: string | undefined
  tabs: JSX.Element
  panel: { id: string; 'aria-label': string }
}

/** Tabs by status. The status is in the address; the first one needs no query. */
export function useStatuses<S extends string>(titles: Record<S, string>, panel: string): Statuses<S> {
  const all = Object.keys(titles) as S[]
  const queryOf = (name: S) => (name === all[0] ? undefined : name)
  const wanted = address.value.query.get('status')
  const status = all.find((name) => name === wanted) ?? all[0]!
  const tabs = (
    <Tabs
      label="Status"
      {...{ panel, titles }}
      current={status}
      onChange={(name) => setQuery({ status: queryOf(name) })}
    />
  )
  return { status, query: queryOf(status), tabs, panel: { id: panel, 'aria-label': titles[status] } }
}

/** The props of an open record. */
export interface OpenProps {
  id: string
  /** Called when the list beside it has to be loaded again. */
  onChange: () => void
}

interface DetailProps<T> {
  loaded: Pick<Loaded<T>, 'value' | 'problem' | 'reload'>
  /** The record, in words: "the request". */
  what: string
  title: string | ((value: T) => string)
  /** The name of the record, which screen readers hear when it opens. */
  name?: (value: T) => string
  actions?: (value: T) => ComponentChildren
  children: (value: T) => ComponentChildren
}

/** The open record, as a card. */
export function Detail<T>({ loaded, what, title, name, actions, children }: DetailProps<T>) {
  return (
    <LoadedView {...{ loaded, what }} lines={12}>
      {(value) => (
        <OpenRecord
          title={typeof title === 'string' ? title : title(value)}
          name={name?.(value) ?? ''}
          actions={actions?.(value)}
        >
          {children(value)}
        </OpenRecord>
      )}
    </LoadedView>
  )
}

interface OpenRecordProps {
  title: string
  /** Stored text. */
  name: string
  actions?: ComponentChildren
  children: ComponentChildren
}

/** A record that is there. */
export function OpenRecord({ title, name, actions, children }: OpenRecordProps) {
  useHeard(title, shown(name).slice(0, name_characters_max))
  return (
    <Card {...{ title, actions }}>
      <div class="card-body">{children}</div>
    </Card>
  )
}

/** Of a name that is read out. */
const name_characters_max = 200

export function DetailTitle({ children }: { children: string | JSX.Element }) {
  return (
    <h3 class="detail-title">{typeof children === 'string' ? <bdi>{shown(children)}</bdi> : children}</h3>
  )
}

interface CrumbsProps {
  href: string
  /** The list that this is part of. */
  all: string
  children: ComponentChildren
}

/** The way back to the list of lists. */
export function Crumbs({ href, all, children }: CrumbsProps) {
  return (
    <nav class="crumbs parts" aria-label="Where this is">
      <a href={href}>{all}</a>
      <span aria-hidden="true">/</span>
      {children}
    </nav>
  )
}

interface RowProps {
  href: string
  text: string
  current?: boolean
  /** At the end of the row. */
  children: ComponentChildren
}

/** A row of a list without columns. */
export function Row({ href, text, current = false, children }: RowProps) {
  return (
    <li aria-current={current || undefined}>
      <a href={href}>
        <bdi>{shown(text)}</bdi>
      </a>
      <span class="rows-side">{children}</span>
    </li>
  )
}

interface FailureProps {
  href: string
  /** The cause. */
  title: string
  /** The thing that failed; null leaves its line out. */
  what: ComponentChildren
}

/** A failure in two lines, the cause first. Both lines have their height before what failed is known. */
export function FailureCell({ href, title, what }: FailureProps) {
  return (
    <div class="failure">
      <a class="failure-title" {...{ href }}>
        <bdi>{shown(title.slice(0, title_characters_max))}</bdi>
      </a>
      {what !== null && (
        <span class="failure-what muted small">
          {typeof what === 'string' ? <bdi>{shown(what)}</bdi> : what}
        </span>
      )}
    </div>
  )
}

const title_characters_max = 200

export interface Moment {
  id: string
  tone: Tone
  title: ComponentChildren
  at: string
  note?: ComponentChildren
}

export function History({ what, moments }: { what: string; moments: Moment[] }) {
  return (
    <ol class="history" aria-label={what}>
      {moments.map(({ id, tone, title, at, note }) => (
        <li key={id} data-tone={tone}>
          <div class="history-head bar" data-wrap>
            <span class="history-title">{title}</span>
            <Time at={at} />
          </div>
          {note && <p class="muted small">{note}</p>}
        </li>
      ))}
    </ol>
  )
}

interface AttemptsProps<T> {
  title: string
  attempts: List<T>
  /** Said before the first. */
  none: string
  momentOf: (attempt: T) => Moment
}

/** The attempts of a call, as a part of its record. */
export function Attempts<T>({ title, attempts, none, momentOf }: AttemptsProps<T>) {
  return (
    <Part {...{ title }}>
      <LoadedView loaded={attempts} what="attempts" lines={2}>
        {(all) =>
          all.length === 0 ? (
            <p class="muted">{none}</p>
          ) : (
            <>
              <History what="Attempts, newest first" moments={all.map(momentOf)} />
              <More list={attempts} />
            </>
          )
        }
      </LoadedView>
    </Part>
  )
}
