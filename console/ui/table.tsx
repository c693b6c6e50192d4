// Rows of records. On a narrow screen the columns that matter less are left out, and the rest may be scrolled.

import type { ComponentChildren, JSX } from 'preact'
import { Button } from './basics.tsx'

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
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="table-scroll" tabIndex={0} aria-label={caption}>
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
      {more && (
        <div class="more">
          <Button onClick={() => onMore?.()}>Show more</Button>
        </div>
      )}
    </>
  )
}

function marks({ wide, number, grow }: Pick<Column<never>, 'wide' | 'number' | 'grow'>) {
  return { 'data-wide': wide, 'data-number': number, 'data-grow': grow }
}
