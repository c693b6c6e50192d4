// Rows of records. On a narrow screen the columns that matter less are left out, and the rest may be scrolled.

import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Button } from './basics.tsx'
import { useKeptFocus } from './focus.ts'

export interface Column<T> {
  title: string
  cell: (row: T) => ComponentChildren
  /** Left out below 720 px. */
  wide?: boolean
  /** Digits under digits. */
  number?: boolean
  /** Takes the room that is left, and is cut off with an ellipsis. */
  grow?: boolean
}

interface TableProps<T> {
  /** What the table shows, for screen readers. */
  caption: string
  columns: Column<T>[]
  rows: readonly T[]
  id: (row: T) => string
  /** The row that is open beside the table. */
  current?: string | undefined
  more?: boolean
  onMore?: () => void
}

export function Table<T>(props: TableProps<T>): JSX.Element {
  const { caption, columns, rows, id, current, more, onMore } = props
  const scroll = useRef<HTMLElement>(null)
  useKeptFocus(scroll)
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section ref={scroll} class="table-scroll" tabIndex={0} aria-label={caption}>
        <table class="table">
          <caption class="offscreen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title} scope="col" {...marks(column)}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={id(row)} aria-current={current === id(row) || undefined}>
                {columns.map((column) => (
                  <td key={column.title} {...marks(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <More more={more ?? false} onMore={() => onMore?.()} />
    </>
  )
}

/** The button below a list. When it goes with the last page, the focus goes to the words in its place. */
export function More({ more, onMore }: { more: boolean; onMore: () => void }): JSX.Element | null {
  const place = useRef<HTMLDivElement>(null)
  const end = useRef<HTMLParagraphElement>(null)
  const pressed = useRef(false)
  const focused = place.current?.contains(document.activeElement) ?? false
  useLayoutEffect(() => {
    if (focused && !more) end.current?.focus({ preventScroll: true })
  }, [more])
  if (!more && !pressed.current) return null
  return (
    <div ref={place} class="more">
      {more ? (
        <Button
          onClick={() => {
            pressed.current = true
            onMore()
          }}
        >
          Show more
        </Button>
      ) : (
        <p ref={end} tabIndex={-1} class="muted small">
          That is all.
        </p>
      )}
    </div>
  )
}

export function marks({ wide, number, grow }: Pick<Column<never>, 'wide' | 'number' | 'grow'>) {
  return { 'data-wide': wide, 'data-number': number, 'data-grow': grow }
}
