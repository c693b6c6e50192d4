// The newest items of a card, and their number.

import type { ComponentChildren } from 'preact'
import { count } from '../text/words.ts'
import { Empty } from '../ui/page.tsx'

/** The rows of a card. The page of the noun has the others. */
export const rows_max = 6

interface NewestProps {
  items: unknown[]
  /** There are more than these. */
  cut: boolean
  /** Said of the items, after their number. */
  of: string
  empty: string
  /** The use of the card, while it is empty. */
  hint: ComponentChildren
  children: ComponentChildren
}

/** The number of items, and the first ones as rows. */
export function Newest({ items, cut, of, empty, hint, children }: NewestProps) {
  if (items.length === 0 && !cut) return <Empty title={empty}>{hint}</Empty>
  return (
    <>
      <p class="figure">
        {count(items.length)}
        {cut && '+'} <span class="muted">{of}</span>
      </p>
      <ul class="rows">{children}</ul>
    </>
  )
}
