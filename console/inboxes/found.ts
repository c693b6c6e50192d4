// The messages of an inbox that a search finds. Each page is a call of /api, which plans count: nothing is repeated.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Message } from '../../sdk/src/types.ts'
import { pathOf } from '../api/address.ts'
import type { Problem } from '../api/client.ts'
import type { List } from '../api/load.ts'
import { ask } from '../api/session.ts'

interface Found {
  /** The inbox and the text. */
  of: string
  items: Message[]
  /** Null when all messages have been looked at. */
  before: string | null
  problem: Problem | null
}

interface FoundPage {
  items: Message[]
  nextBefore: string | null
}

/** A page without a match is followed by the next one, this many at a time. */
const pages_a_search = 4

/** Empty text finds nothing, without a call. */
export function useFound(inbox_id: string, q: string): List<Message> {
  const of = `${inbox_id} ${q}`
  const state = useSignal<Found | null>(null)
  const running = useRef(new AbortController())
  const known = state.value?.of === of ? state.value : null
  const load = async (old: Found) => {
    running.current.abort()
    running.current = new AbortController()
    const { signal } = running.current
    const found = { ...old, problem: null }
    for (let page = 0; page < pages_a_search; page += 1) {
      const query = { q, before: found.before ?? undefined }
      const path = `${pathOf('/api/webhook', inbox_id)}/search`
      const result = await ask<FoundPage>('GET', path, { query, signal })
      if (signal.aborted) return
      if (!result.ok) {
        state.value = { ...found, problem: result.problem }
        return
      }
      found.items = [...found.items, ...result.value.items]
      found.before = result.value.nextBefore
      if (found.before === null || found.items.length > old.items.length) break
    }
    state.value = found
  }
  const nothing: Found = { of, items: [], before: null, problem: null }
  useEffect(() => {
    if (q !== '') void load(nothing)
    return () => running.current.abort()
  }, [of])
  const failed = known?.problem && known.items.length === 0
  return {
    value: known && !failed ? known.items : null,
    text: '',
    problem: known?.problem ?? null,
    reload: () => void load(nothing),
    more: (known?.before ?? null) !== null,
    showMore: () => void load(known ?? nothing),
  }
}
