// A table of any length: only the visible rows, and some around them, are in the page.

import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { List } from '../api/load.ts'
import { ScrollBox } from '../ui/basics.tsx'
import { useKeptFocus } from '../ui/focus.ts'
import { Head, More, Rows, type RowsProps } from '../ui/table.tsx'

/** As in the style: rows of one height are counted, not measured. */
const row_px = 34
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
  const { scroll, measure, from, to } = useWindow(rows.length, list)
  useKeptFocus(scroll)
  return (
    <div class="window">
      <ScrollBox place={scroll} kind="table-scroll" label={caption} onScroll={measure}>
        <table class="table" aria-rowcount={list.more ? -1 : rows.length + 1}>
          <caption class="offscreen">{caption}</caption>
          <Head {...{ rows, from }} {...props} />
          <Gap rows={from} />
          <Rows rows={rows.slice(from, to)} {...{ from }} {...props} />
          <Gap rows={rows.length - to} />
        </table>
      </ScrollBox>
      <More {...{ list }} />
    </div>
  )
}

/** The range of rows to draw, which follows the scroll position. */
function useWindow(total: number, { more, showMore }: Pick<List<unknown>, 'more' | 'showMore'>) {
  const scroll = useRef<HTMLElement>(null)
  const first = useSignal(0)
  const visible = useSignal(rows_visible)
  const asked_at = useRef(-1)
  const measure = () => {
    const place = scroll.current
    if (!place) return
    const top = Math.floor(place.scrollTop / row_px)
    visible.value = Math.ceil(place.clientHeight / row_px)
    first.value = Math.max(0, top - (top % step_rows) - rows_around)
    const at_end = place.scrollTop > 0 && top + visible.value + rows_around >= total
    // Once for each length: scrolling does not repeat a request that is under way or failed.
    if (!more || !at_end || asked_at.current === total) return
    asked_at.current = total
    showMore()
  }
  useLayoutEffect(() => {
    measure()
    addEventListener('resize', measure)
    return () => removeEventListener('resize', measure)
  })
  const from = Math.min(first.value, total)
  const to = Math.min(total, from + visible.value + 2 * rows_around + step_rows)
  return { scroll, measure, from, to }
}

/** As high as the rows that are not drawn. */
function Gap({ rows }: { rows: number }) {
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
