// Lists of /api, page by page. Every page is a call that counts against the plan: nothing is loaded twice, or by itself.

import { useRef } from 'preact/hooks'
import type { Query } from './address.ts'
import { type Loaded, useLoad } from './load.ts'
import { ask } from './session.ts'

export interface Offsets<T> extends Loaded<T[]> {
  /** How many there are in all. */
  total: number
  more: boolean
  showMore: () => void
}

interface Held<T> {
  of: string
  items: T[]
  total: number
  /** The next load is that of the next page, and not all anew. */
  next: boolean
}

const rows_a_page = 50

export function useOffsets<T>(path: string, idOf: (item: T) => string, query: Query = {}): Offsets<T> {
  const of = `${path} ${JSON.stringify(query)}`
  const nothing: Held<T> = { of, items: [], total: 0, next: false }
  const held = useRef(nothing)
  if (held.current.of !== of) held.current = nothing
  const loaded = useLoad<Held<T>>(of, async (signal) => {
    const { items: old, next } = held.current
    held.current.next = false
    const offset = next ? old.length : 0
    const page = { ...query, limit: rows_a_page, offset }
    const result = await ask<{ items: T[]; total: number }>('GET', path, { query: page, signal })
    if (!result.ok) return result
    const { items, total } = result.value
    // What came or went meanwhile moved the places: a page may begin with what the one before ended with.
    const known = new Set(next ? old.map(idOf) : [])
    const fresh = items.filter((item) => !known.has(idOf(item)))
    held.current = { of, items: next ? [...old, ...fresh] : items, total, next: false }
    return { ok: true, value: held.current, text: '' }
  })
  const value = loaded.value?.items ?? null
  return {
    ...loaded,
    value,
    total: loaded.value?.total ?? 0,
    more: value !== null && value.length < held.current.total,
    showMore: () => {
      held.current.next = true
      loaded.reload()
    },
  }
}
