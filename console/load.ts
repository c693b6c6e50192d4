// What a page loads: once, again when what it depends on changes, and every so often while somebody looks.

import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Query } from './address.ts'
import { isSame, type Problem, type Result } from './api.ts'
import { ask } from './session.ts'

export interface Loaded<T> {
  /** Null until the first answer; kept while a later one fails. */
  value: T | null
  /** The answer as it came. */
  text: string
  /** Of the latest try. */
  problem: Problem | null
  reload: () => void
}

interface State<T> {
  value: T | null
  text: string
  problem: Problem | null
  /** What it was loaded for. */
  of: string
}

/**
 * `of` names what is loaded, such as the path with its query: another name loads anew and shows nothing old. Leaving
 * the page aborts the call. `every_ms` repeats it, not while the tab is hidden.
 */
export function useLoad<T>(
  of: string,
  load: (signal: AbortSignal) => Promise<Result<T>>,
  { every_ms = 0 }: { every_ms?: number } = {},
): Loaded<T> {
  const state: Signal<State<T>> = useSignal({ value: null, text: '', problem: null, of } as State<T>)
  const again = useRef(() => {})
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    let running: AbortController | null = null
    let timer = 0
    const run = async (asked_by_hand = false) => {
      clearTimeout(timer)
      running?.abort()
      const controller = new AbortController()
      running = controller
      const result = await latest.current(controller.signal)
      if (running !== controller || controller.signal.aborted) return
      const old = state.value.of === of ? state.value : { value: null, text: '' }
      // The same failure, seen again, is not told again: a screen reader would read it out at every look.
      const told = state.value.of === of && !asked_by_hand ? state.value.problem : null
      state.value = result.ok
        ? { value: result.value, text: result.text, problem: null, of }
        : {
            ...{ value: old.value, text: old.text, of },
            problem: isSame(told, result.problem) ? told : result.problem,
          }
      if (every_ms > 0 && !document.hidden) timer = window.setTimeout(() => void run(), every_ms)
    }
    const onVisible = () => {
      if (!document.hidden && every_ms > 0) void run()
    }
    // Lists that are too long to be repeated are left alone, unless they stand on an error.
    const onOnline = () => {
      if (every_ms > 0 || state.value.problem !== null) void run()
    }
    again.current = () => void run(true)
    document.addEventListener('visibilitychange', onVisible)
    addEventListener('online', onOnline)
    void run()
    return () => {
      document.removeEventListener('visibilitychange', onVisible)
      removeEventListener('online', onOnline)
      clearTimeout(timer)
      running?.abort()
      running = null
    }
  }, [of, every_ms])
  const { value, text, problem, of: loaded } = state.value
  const reload = () => again.current()
  return loaded === of ? { value, text, problem, reload } : { value: null, text: '', problem: null, reload }
}

/** A GET with the admin key; null as `path` loads nothing. */
export function useGet<T>(path: string, query: Query = {}, options: { every_ms?: number } = {}): Loaded<T> {
  const of = `${path} ${JSON.stringify(query)}`
  return useLoad<T>(of, (signal) => ask<T>('GET', path, { query, signal }), options)
}

interface PageOf<T> {
  items: T[]
  next_cursor: string | null
}

export interface Pages<T> extends Loaded<T[]> {
  /** There is more than what is shown. */
  more: boolean
  showMore: () => void
}

interface PagesOptions<T> {
  every_ms?: number
  /** What is kept of each item, where a list may grow long and its items are large. */
  keep?: (item: T) => T
}

/**
 * A list of /v1, page by page. "Show more" asks for the next page alone; a repeat loads again as many pages as are
 * shown, and stays away when these are more than four.
 */
export function usePages<T>(path: string, query: Query = {}, options: PagesOptions<T> = {}): Pages<T> {
  const of = `${path} ${JSON.stringify(query)}`
  const held = useRef<Held<T>>({ of, pages: 0, items: [], cursor: null, next: false })
  if (held.current.of !== of) held.current = { of, pages: 0, items: [], cursor: null, next: false }
  const loaded = useLoad<Held<T>>(
    of,
    async (signal) => {
      const old = held.current
      const pages = old.next ? old.pages + 1 : Math.max(1, old.pages)
      const fresh: Held<T> = { of, pages, items: [], cursor: null, next: false }
      let from = 0
      if (old.next) [fresh.items, fresh.cursor, from] = [[...old.items], old.cursor, old.pages]
      old.next = false
      for (let page = from; page < pages; page += 1) {
        const cursor = fresh.cursor ?? undefined
        const result = await ask<PageOf<T>>('GET', path, { query: { ...query, cursor }, signal })
        if (!result.ok) return result
        fresh.items.push(...(options.keep ? result.value.items.map(options.keep) : result.value.items))
        fresh.cursor = result.value.next_cursor
        if (fresh.cursor === null) break
      }
      held.current = fresh
      return { ok: true, value: fresh, text: '' }
    },
    { every_ms: held.current.pages > pages_repeated_max ? 0 : (options.every_ms ?? 0) },
  )
  const more = loaded.value !== null && loaded.value.cursor !== null
  const showMore = () => {
    held.current.next = true
    loaded.reload()
  }
  // A page may be empty and yet not the last one: the service looks at so many rows at a time, whether they fit or not.
  const looks_on = loaded.value?.items.length === 0 && more && !loaded.problem
  useEffect(() => {
    if (looks_on) showMore()
  }, [loaded.value])
  return { ...loaded, value: loaded.value?.items ?? null, more, showMore }
}

interface Held<T> {
  of: string
  pages: number
  items: T[]
  cursor: string | null
  /** The next load is that of the next page. */
  next: boolean
}

const pages_repeated_max = 4
