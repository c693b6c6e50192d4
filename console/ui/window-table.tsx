// A table of any length: only the rows that can be seen, and some around them, are in the page.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useKeptFocus } from './focus.ts'
import { type Column, More, marks } from './table.tsx'

/** As in the style: rows of one height can be counted instead of measured. */
const row_px = 34
/** Drawn above and below what is seen, and how far one scrolls before they are drawn anew. */
const rows_around = 20
const step_rows = 10
/** Until the place has been measured. */
const rows_seen = 30

export interface WindowColumn<T> extends Column<T> {
  /** Columns keep their widths while rows come and go; without it they share the rest. */
  width_px?: number
}

interface WindowTableProps<T> {
  caption: string
  columns: WindowColumn<T>[]
  rows: readonly T[]
  id: (row: T) => string
  current?: string | undefined
  /** There are more than `rows`: asked for by the button, and by scrolling to the end. */
  more: boolean
  onMore: () => void
}

export function WindowTable<T>(props: WindowTableProps<T>): JSX.Element {
  const { caption, columns, rows, id, current, more, onMore } = props
  const scroll = useRef<HTMLElement>(null)
  const first = useSignal(0)
  const seen = useSignal(rows_seen)
  const asked_at = useRef(-1)
  useKeptFocus(scroll)
  const look = () => {
    const place = scroll.current
    if (!place) return
    const top = Math.floor(place.scrollTop / row_px)
    seen.value = Math.ceil(place.clientHeight / row_px)
    first.value = Math.max(0, top - (top % step_rows) - rows_around)
    const at_end = place.scrollTop > 0 && top + seen.value + rows_around >= rows.length
    // Once for each length: what is under way, or failed, is not asked for again by scrolling.
    if (!more || !at_end || asked_at.current === rows.length) return
    asked_at.current = rows.length
    onMore()
  }
  useLayoutEffect(() => {
    look()
    addEventListener('resize', look)
    return () => removeEventListener('resize', look)
  })
  const from = Math.min(first.value, rows.length)
  const to = Math.min(rows.length, from + seen.value + 2 * rows_around + step_rows)
  return (
    <div class="window">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section ref={scroll} class="table-scroll" tabIndex={0} aria-label={caption} onScroll={look}>
        <table class="table" aria-rowcount={more ? -1 : rows.length + 1}>
          <caption class="offscreen">{caption}</caption>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <th key={column.title} scope="col" {...marks(column)} style={{ width: widthOf(column) }}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <Gap rows={from} />
          <tbody>
            {rows.slice(from, to).map((row, i) => (
              <tr key={id(row)} aria-rowindex={from + i + 2} aria-current={current === id(row) || undefined}>
                {columns.map((column) => (
                  <td key={column.title} {...marks(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          <Gap rows={rows.length - to} />
        </table>
      </section>
      <More {...{ more, onMore }} />
    </div>
  )
}

/** As high as the rows that are not drawn. */
function Gap({ rows }: { rows: number }): JSX.Element {
  return (
    <tbody aria-hidden="true">
      {rows > 0 && (
        <tr>
          {/* A row without a cell has no height. */}
          <td class="gap" style={{ height: `${rows * row_px}px` }} />
        </tr>
      )}
    </tbody>
  )
}

function widthOf({ width_px }: { width_px?: number }): string | undefined {
  return width_px === undefined ? undefined : `${width_px}px`
}
