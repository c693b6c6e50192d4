// Tables of records. A narrow screen leaves out the less important columns and scrolls the others.

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { List } from '../api/load.ts'
import { Button, Code, ScrollBox, Text, Time } from './basics.tsx'
import { useKeptFocus } from './focus.ts'

export interface Column<T> {
  title: string
  /** The title is for screen readers only. */
  untitled?: boolean
  cell: (row: T) => ComponentChildren
  /** Left out below 720 px. */
  wide?: boolean
  /** Aligns the digits. */
  number?: boolean
  /** Takes the width that is left; long text ends in an ellipsis. */
  grow?: boolean
  /** The cells are headers of their rows. */
  header?: boolean
  /** For style sheets. */
  kind?: 'select' | 'actions'
  /** Columns of a WindowTable keep their widths; those without one share the rest. */
  width_px?: number
}

/** The first column: the name of a record, which opens it. Names of machines are shown as code. */
export function linkColumn<T>(
  title: string,
  linkOf: (row: T) => [href: string, text: string],
  Name: typeof Text | typeof Code = Text,
): Column<T> {
  const cell = (row: T) => {
    const [href, text] = linkOf(row)
    return (
      <a href={href}>
        <Name>{text}</Name>
      </a>
    )
  }
  return { title, grow: true, cell }
}

export function codeColumn<T>(title: string, codeOf: (row: T) => string | null): Column<T> {
  return { title, wide: true, cell: (row) => codeOf(row) && <Code>{codeOf(row)!}</Code> }
}

export function timeColumn<T>(title: string, timeOf: (row: T) => string | null, wide = false): Column<T> {
  return { title, wide, cell: (row) => timeOf(row) && <Time at={timeOf(row)!} /> }
}

export interface RowsProps<T> {
  columns: Column<T>[]
  rows: readonly T[]
  id: (row: T) => string
  /** The row that is open beside the table. */
  current?: string | undefined
  /** The number of rows before these. Without it all rows are drawn. */
  from?: number
}

interface TableProps<T> extends RowsProps<T> {
  /** The name of the table, for screen readers. */
  caption: string
  /** The list that the rows belong to, when it has more pages. */
  list?: Pick<List<T>, 'more' | 'showMore'>
}

export function Table<T>({ caption, list, ...props }: TableProps<T>) {
  const scroll = useRef<HTMLElement>(null)
  useKeptFocus(scroll)
  return (
    <>
      <ScrollBox place={scroll} kind="table-scroll" label={caption}>
        <table class="table">
          <caption class="offscreen">{caption}</caption>
          <Head {...props} />
          <Rows {...props} />
        </table>
      </ScrollBox>
      {list && <More {...{ list }} />}
    </>
  )
}

export function Head<T>({ columns, from }: RowsProps<T>) {
  return (
    <thead>
      <tr aria-rowindex={from === undefined ? undefined : 1}>
        {columns.map((column) => (
          <th key={column.title} scope="col" {...marks(column)} style={widthOf(column)}>
            {column.untitled ? <span class="offscreen">{column.title}</span> : column.title}
          </th>
        ))}
      </tr>
    </thead>
  )
}

export function Rows<T>({ columns, rows, id, current, from }: RowsProps<T>) {
  return (
    <tbody>
      {rows.map((row, i) => (
        <tr
          key={id(row)}
          aria-rowindex={from === undefined ? undefined : from + i + 2}
          aria-current={current === id(row) || undefined}
        >
          {columns.map((column) => {
            const Cell = column.header ? 'th' : 'td'
            return (
              <Cell key={column.title} scope={column.header ? 'row' : undefined} {...marks(column)}>
                {column.cell(row)}
              </Cell>
            )
          })}
        </tr>
      ))}
    </tbody>
  )
}

function widthOf({ width_px }: { width_px?: number }) {
  return width_px === undefined ? undefined : { width: `${width_px}px` }
}

function marks({ wide, number, grow, kind }: Pick<Column<never>, 'wide' | 'number' | 'grow' | 'kind'>) {
  return {
    'data-wide': wide || undefined,
    'data-number': number,
    'data-grow': grow || undefined,
    'data-kind': kind,
  }
}

/** The button below a list. After the last page its text takes the place of the button, and the focus. */
export function More({ list: { more, showMore } }: { list: Pick<List<unknown>, 'more' | 'showMore'> }) {
  const place = useRef<HTMLDivElement>(null)
  const end = useRef<HTMLParagraphElement>(null)
  const pressed = useRef(false)
  const focused = place.current?.contains(document.activeElement) ?? false
  useLayoutEffect(() => {
    if (focused && !more) end.current?.focus({ preventScroll: true })
  }, [more])
  if (!more && !pressed.current) return null
  const press = () => {
    pressed.current = true
    showMore()
  }
  return (
    <div ref={place} class="more">
      {more ? (
        <Button text="Show more" onClick={press} />
      ) : (
        <p ref={end} tabIndex={-1} class="muted small">
          That is all.
        </p>
      )}
    </div>
  )
}
