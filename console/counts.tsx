// The numbers beside the pages of the navigation: requests, unknown effects and dead letters that wait.

import { useEffect, useRef } from 'preact/hooks'
import type { Checkpoint, ListedEffect, Tenant } from '../sdk/src/types.ts'
import type { PageOf } from './api/client.ts'
import { type Loaded, useGet } from './api/load.ts'
import { changes } from './api/session.ts'
import { count } from './text/words.ts'

/** The most items of one answer. */
const items_max = 200

export interface Waiting {
  /** `3`, or `200+` where there are more than one answer has. */
  text: string
  /** The same in words. */
  words: string
  number: number
}

/** By the title of the page, which has none where nothing waits. */
export type Counts = Record<string, Waiting | undefined>

export function useCounts(tenant: Loaded<Tenant>): { counts: Counts; ready: boolean } {
  const asked = { status: 'pending', limit: items_max }
  const pending = useGet<PageOf<Checkpoint>>('/v1/checkpoints', asked, { on: ['checkpoint'] })
  const lost = { status: 'unknown', limit: items_max }
  const unknown = useGet<PageOf<ListedEffect>>('/v1/effects', lost, { on: ['effect'] })
  const made = changes.value
  const before = useRef(made)
  useEffect(() => {
    if (before.current !== made) {
      pending.reload()
      unknown.reload()
      tenant.reload()
    }
    before.current = made
  }, [made])
  const counts = {
    Approvals: waitingIn(pending.value, 'to decide'),
    Effects: waitingIn(unknown.value, 'with unknown outcome'),
    'Dead letters': waiting(tenant.value?.quota.dlq_items?.used ?? 0, '', 'open'),
  }
  return { counts, ready: pending.value !== null && unknown.value !== null && tenant.value !== null }
}

function waitingIn(page: PageOf<unknown> | null, what: string): Waiting | undefined {
  return waiting(page?.items.length ?? 0, page?.next_cursor ? '+' : '', what)
}

function waiting(number: number, cut: string, what: string): Waiting | undefined {
  const text = `${count(number)}${cut}`
  return number > 0 ? { text, words: `${text} ${what}`, number } : undefined
}

/** Read out when a number grows, not when the page is opened. */
export function Announced({ counts, ready }: { counts: Counts; ready: boolean }) {
  const before = useRef<Record<string, number> | null>(null)
  const text = useRef('')
  if (ready) {
    const numbers = Object.fromEntries(
      Object.entries(counts).map(([title, waiting]) => [title, waiting?.number ?? 0]),
    )
    const grown = Object.keys(numbers).filter((title) => numbers[title]! > (before.current?.[title] ?? 0))
    if (before.current && grown.length > 0) {
      text.current = grown.map((title) => `${title}: ${counts[title]!.words}.`).join(' ')
    }
    before.current = numbers
  }
  return (
    <p class="offscreen" role="status">
      {text.current}
    </p>
  )
}
