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
export type Counts = Partial<Record<string, Waiting>>

export function useCounts(tenant: Loaded<Tenant>): { counts: Counts; ready: boolean } {
  const query = { status: 'pending', limit: items_max }
  const pending = useGet<PageOf<Checkpoint>>('/v1/checkpoints', query, {
    on: ['checkpoint'],
  })
  const unknown = useGet<PageOf<ListedEffect>>(
    '/v1/effects',
    { status: 'unknown', limit: items_max },
    { on: ['effect'] },
  )
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
  const requests = pending.value?.items.length ?? 0
  const letters = tenant.value?.quota.dlq_items?.used ?? 0
  const cut = pending.value?.next_cursor ? '+' : ''
  const effects = unknown.value?.items.length ?? 0
  const effects_cut = unknown.value?.next_cursor ? '+' : ''
  const counts = {
    ...(requests > 0 && {
      Approvals: {
        text: `${count(requests)}${cut}`,
        words: `${count(requests)}${cut} to decide`,
        number: requests,
      },
    }),
    ...(effects > 0 && {
      Effects: {
        text: `${count(effects)}${effects_cut}`,
        words: `${count(effects)}${effects_cut} with unknown outcome`,
        number: effects,
      },
    }),
    ...(letters > 0 && {
      'Dead letters': { text: count(letters), words: `${count(letters)} open`, number: letters },
    }),
  }
  return { counts, ready: pending.value !== null && unknown.value !== null && tenant.value !== null }
}

/** Read out when a number grows, not when the page is opened. */
export function Announced({ counts, ready }: { counts: Counts; ready: boolean }) {
  const before = useRef<Record<string, number> | null>(null)
  const text = useRef('')
  if (ready) {
    const numbers = Object.fromEntries(
      Object.entries(counts).map(([title, waiting]) => [title, waiting!.number]),
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
