// A table of any length: only the visible rows, and some around them, are in the page.

import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { List } from '../api/load.ts'
import { step } from '../api/step.ts'
import { ScrollBox } from '../ui/basics.tsx'
import { useKeptFocus } from '../ui/focus.ts'
import { Head, More, Rows, type RowsProps } from '../ui/table.tsx'

/** As in the style: rows of one height are counted, not measured. On a narrow screen a row has two lines. */
const row_px_wide = 36
const row_px_stacked = 58
const stacked = matchMedia('(max-width: 719px)')
/** Rows drawn above and below the visible ones, and the step in which they change. */
const rows_around = 20
const step_rows = 10
/** The number of visible rows until the height is known. */
const rows_visible = 30

interface WindowTableProps<T> extends RowsProps<T> {
  caption: string
  /** Asked for more by the button, and by scrolling to the end. */
  list: Pick<List<T>, 'more' | 'showMore'>
}

/** A table whose rows are drawn while they are visible. */
export function WindowTable<T>({ caption, list, rows, ...props }: WindowTableProps<T>) {
  const { scroll, measure, from, to, row_px } = useWindow(rows.length, list)
  useKeptFocus(scroll)
  return (
    <div class="window">
      <ScrollBox place={scroll} kind="table-scroll" label={caption} onScroll={measure}>
        <table class="table" aria-rowcount={list.more ? -1 : rows.length + 1}>
          <caption class="offscreen">{caption}</caption>
          <Head {...{ rows, from }} {...props} />
          <Gap rows={from} {...{ row_px }} />
          <Rows rows={rows.slice(from, to)} {...{ from }} {...props} />
          <Gap rows={rows.length - to} {...{ row_px }} />
        </table>
      </ScrollBox>
      <More {...{ list }} />
    </div>
  )
}

/** True once a list has taken the position that it had before a reload. */
let restored = false

interface Window {
  scroll: RefObject<HTMLElement | null>
  measure: () => void
  from: number
  to: number
  row_px: number
}

/** The range of rows to draw, which follows the position of the list, or of the page where that scrolls. */
function useWindow(total: number, { more, showMore }: Pick<List<unknown>, 'more' | 'showMore'>): Window {
  const scroll = useRef<HTMLElement>(null)
  const first = useSignal(0)
  const visible = useSignal(rows_visible)
  const row_px = useSignal(rowHeight())
  const asked_at = useRef(-1)
  const measure = () => {
    const place = scroll.current
    // A list behind its record keeps its place.
    if (!place || place.getClientRects().length === 0) return
    row_px.value = rowHeight()
    const { beyond_px, height_px } = viewOf(place)
    const top = Math.floor(beyond_px / row_px.value)
    visible.value = Math.ceil(height_px / row_px.value)
    first.value = Math.max(0, top - (top % step_rows) - rows_around)
    const at_end = beyond_px > 0 && top + visible.value + rows_around >= total
    // Once for each length: scrolling does not repeat a request that is under way or failed.
    if (!more || !at_end || asked_at.current === total) return
    asked_at.current = total
    showMore()
  }
  useLayoutEffect(() => {
    if (!restored && total > 0 && scroll.current) {
      restored = true
      scroll.current.scrollTop = step().list_px ?? 0
    }
    // After a list that comes back has taken its position.
    queueMicrotask(measure)
    addEventListener('resize', measure)
    addEventListener('scroll', measure, { passive: true })
    return () => {
      removeEventListener('resize', measure)
      removeEventListener('scroll', measure)
    }
  })
  const from = Math.min(first.value, total)
  const to = Math.min(total, from + visible.value + 2 * rows_around + step_rows)
  return { scroll, measure, from, to, row_px: row_px.value }
}

function rowHeight(): number {
  return stacked.matches ? row_px_stacked : row_px_wide
}

/** The part of the list above what is seen, and the height of what can be seen. */
function viewOf(place: HTMLElement): { beyond_px: number; height_px: number } {
  if (!stacked.matches) return { beyond_px: place.scrollTop, height_px: place.clientHeight }
  return { beyond_px: Math.max(0, -place.getBoundingClientRect().top), height_px: innerHeight }
}

interface GapProps {
  rows: number
  row_px: number
}

/** As high as the rows that are not drawn. */
function Gap({ rows, row_px }: GapProps) {
  return (
    <tbody aria-hidden="true">
      {rows > 0 && (
        <tr class="gap" style={{ height: `${rows * row_px}px` }}>
          {/* A row without a cell has no height. */}
          <td style={{ height: `${rows * row_px}px` }} />
        </tr>
      )}
    </tbody>
  )
}
