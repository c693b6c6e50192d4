// Data of a page: loaded once, again when its name changes, and repeatedly while the page is visible.

import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { exactMember } from '../text/json.ts'
import type { Query } from './address.ts'
import { isSame, type PageOf, type Problem, type Result } from './client.ts'
import { begun, type Noun, whenHappened } from './journal.ts'
import { ask } from './session.ts'
import { askShared } from './shared.ts'
import { keep as keepStep, step } from './step.ts'

export interface Loaded<T> {
  /** Null until the first answer. It stays while a later try fails. */
  value: T | null
  /** The answer as it came. */
  text: string
  /** The failure of the latest try. */
  problem: Problem | null
  reload: () => void
}

interface State<T> extends Omit<Loaded<T>, 'reload'> {
  /** The name of what was loaded. */
  of: string
}

export interface LoadOptions {
  /** The interval of repeats, which stop while the tab is hidden. 0 never repeats: the default without `on`. */
  every_ms?: number
  /** Loads again when something happens to one of these nouns. A repeat is then for what no event says, and seldom. */
  on?: readonly Noun[]
}

/** Not more often: an answer has up to a mebibyte. */
const seldom_ms = 60_000

/** Between two loads that events cause: a noun may change a thousand times in a second. */
const gap_ms = 1_000
const no_nouns: readonly Noun[] = []

/**
 * Loads under a name, `of`, such as the path with its query. Another name loads again and hides the old value. Leaving
 * the page aborts the call.
 */
export function useLoad<T>(
  of: string,
  load: (signal: AbortSignal, by_hand: boolean) => Promise<Result<T>>,
  { on = no_nouns, every_ms = on.length > 0 ? seldom_ms : 0 }: LoadOptions = {},
): Loaded<T> {
  const empty: State<T> = { value: null, text: '', problem: null, of }
  const state = useSignal(empty)
  const again = useRef(() => {})
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const run = async (signal: AbortSignal, by_hand: boolean) => {
      // Events that come while the list is on its way are then heard of.
      if (on.length > 0) await begun()
      if (signal.aborted) return
      const result = await latest.current(signal, by_hand)
      if (!signal.aborted) note(state, of, result, by_hand)
    }
    const failing = () => state.value.of === of && state.value.problem !== null
    const { start, startSoon, stop } = repeated(run, every_ms, failing)
    again.current = () => start(true)
    start()
    const forget = on.length > 0 ? whenHappened(on, startSoon) : () => {}
    return () => {
      forget()
      stop()
      // An answer that comes after the page was left reloads nothing.
      again.current = () => {}
    }
  }, [of, every_ms, on.join()])
  const { value, text, problem } = state.value.of === of ? state.value : empty
  return { value, text, problem, reload: () => again.current() }
}

function note<T>(state: Signal<State<T>>, of: string, result: Result<T>, by_hand: boolean): void {
  if (result.ok) {
    state.value = { value: result.value, text: result.text, problem: null, of }
    return
  }
  const old = state.value.of === of ? state.value : { value: null, text: '', problem: null }
  // A repeat that fails alike keeps the problem: a screen reader would read out a new one every time.
  const same = !by_hand && isSame(old.problem, result.problem)
  state.value = { ...old, problem: same ? old.problem : result.problem, of }
}

/** Runs one at a time, every so often while the tab is visible, and when the device is online again. */
function repeated(
  run: (signal: AbortSignal, by_hand: boolean) => Promise<void>,
  every_ms: number,
  failing: () => boolean,
) {
  let running = new AbortController()
  let timer = 0
  let soon = 0
  let is_running = false
  let started_at = 0
  const start = async (by_hand = false) => {
    clearTimeout(timer)
    clearTimeout(soon)
    soon = 0
    running.abort()
    running = new AbortController()
    const { signal } = running
    is_running = true
    started_at = Date.now()
    await run(signal, by_hand)
    if (signal.aborted) return
    is_running = false
    if (every_ms > 0 && !document.hidden) timer = window.setTimeout(() => void start(), every_ms)
  }
  // After what is under way, which may have missed the event, and not more often than every `gap_ms`.
  const startSoon = () => {
    if (soon !== 0) return
    const later = () => {
      soon = 0
      if (is_running) startSoon()
      else void start()
    }
    soon = window.setTimeout(later, Math.max(is_running ? gap_ms : 0, started_at + gap_ms - Date.now()))
  }
  const onVisible = () => {
    if (!document.hidden && every_ms > 0) void start()
  }
  // A list that is too long to repeat loads again only after a failure.
  const onOnline = () => {
    if (every_ms > 0 || failing()) void start()
  }
  document.addEventListener('visibilitychange', onVisible)
  addEventListener('online', onOnline)
  const stop = () => {
    document.removeEventListener('visibilitychange', onVisible)
    removeEventListener('online', onOnline)
    clearTimeout(timer)
    clearTimeout(soon)
    running.abort()
  }
  return { start: (by_hand?: boolean) => void start(by_hand), startSoon, stop }
}

/** A GET with the admin key. Parts of a page that load the same at the same time share it; a reload by hand is a call of its own. */
export function useGet<T>(path: string, query: Query = {}, options: LoadOptions = {}): Loaded<T> {
  const of = `${path} ${JSON.stringify(query)}`
  const load = (signal: AbortSignal, by_hand: boolean) =>
    by_hand ? ask<T>('GET', path, { query, signal }) : askShared<T>(path, query, signal)
  return useLoad<T>(of, load, options)
}

/** The exact text of a member of the answer; null when its value is JSON null. */
export function useMember({ text }: Loaded<unknown>, name: string): string | null {
  return useMemo(() => exactMember(text || '{}', name), [text, name])
}

export interface List<T> extends Loaded<T[]> {
  /** There are more items than those loaded. */
  more: boolean
  showMore: () => void
  /** It has become too long to follow what happens: it stays as it was loaded. */
  rests?: boolean
}

export interface CountedList<T> extends List<T> {
  /** The number of items in all. */
  total: number
  /** Takes out an item that was removed. Nothing is loaded for that. */
  remove: (id: string) => void
}

interface Held<T> {
  of: string
  items: T[]
  pages: number
  /** Null after the last page of a list by cursor. */
  cursor: string | null
  total: number
  /** The next load takes the next page only. */
  next: boolean
}

/** Loads a list and keeps what it holds between loads. */
function useHeld<T>(
  of: string,
  load: (old: Held<T>, signal: AbortSignal) => Promise<Result<Held<T>>>,
  options: (held: Held<T>) => LoadOptions,
): { loaded: Loaded<Held<T>>; showMore: () => void; change: (to: (held: Held<T>) => Held<T>) => void } {
  const changes = useSignal(0)
  const empty: Held<T> = { of, items: [], pages: 0, cursor: null, total: 0, next: false }
  const held = useRef(empty)
  if (held.current.of !== of) held.current = empty
  const loaded = useLoad<Held<T>>(
    of,
    async (signal) => {
      const old = { ...held.current }
      held.current.next = false
      const result = await load(old, signal)
      if (result.ok) held.current = result.value
      return result
    },
    options(held.current),
  )
  const showMore = () => {
    held.current.next = true
    loaded.reload()
  }
  const change = (to: (held: Held<T>) => Held<T>) => {
    held.current = to(held.current)
    changes.value += 1
  }
  const is_changed = changes.value > 0 && loaded.value !== null
  return { loaded: is_changed ? { ...loaded, value: held.current } : loaded, showMore, change }
}

interface PagesOptions<T> extends LoadOptions {
  /** Reduces an item to what is shown, for long lists of large items. */
  keep?: (item: T) => T
}

/** A list that is longer than this is no longer repeated. */
const pages_repeated_max = 4

/** After a reload of the page a list has as many pages as before, up to these. */
const pages_reloaded_max = 10

/** A list of /v1. "Show more" asks for the next page alone; a repeat loads all pages that are shown. */
export function usePages<T>(path: string, query: Query = {}, options: PagesOptions<T> = {}): List<T> {
  const { keep = (item: T) => item, ...repeats } = options
  const of = `${path} ${JSON.stringify(query)}`
  const { loaded, showMore } = useHeld<T>(
    of,
    async (old, signal) => {
      const pages = old.next
        ? old.pages + 1
        : old.pages || Math.min(pages_reloaded_max, step().pages?.[of] ?? 1)
      const fresh: Held<T> = old.next
        ? { ...old, items: [...old.items], pages, next: false }
        : { ...old, items: [], cursor: null, pages }
      for (let page = old.next ? old.pages : 0; page < pages; page += 1) {
        const cursor = fresh.cursor ?? undefined
        const result = await ask<PageOf<T>>('GET', path, { query: { ...query, cursor }, signal })
        if (!result.ok) return result
        fresh.items.push(...result.value.items.map(keep))
        fresh.cursor = result.value.next_cursor
        if (fresh.cursor === null) break
      }
      if (pages > 1) keepStep({ pages: { ...step().pages, [of]: pages } })
      return { ok: true, value: fresh, text: '' }
    },
    ({ pages }) => (pages > pages_repeated_max ? {} : repeats),
  )
  const { value } = loaded
  const more = value !== null && value.cursor !== null
  // A page may be empty and not the last: the service reads a bounded number of rows, whether they match or not.
  const rests = value !== null && value.pages > pages_repeated_max && Boolean(repeats.every_ms || repeats.on)
  const continues = value?.items.length === 0 && more && !loaded.problem
  useEffect(() => {
    if (continues) showMore()
  }, [value])
  return { ...loaded, value: value?.items ?? null, more, showMore, rests }
}

const rows_a_page = 50

interface OffsetsOptions<T> {
  idOf: (item: T) => string
  query?: Query
  /** False for an item that the service lists no longer, because its time is over. */
  stands?: (item: T) => boolean
}

/** A list of /api. Every page is a call that counts against the plan, so nothing is loaded twice or on a timer. */
export function useOffsets<T>(path: string, { idOf, query = {}, stands }: OffsetsOptions<T>): CountedList<T> {
  /** Those that were removed since the latest load began. */
  const removed = useRef(new Set<string>())
  const { loaded, showMore, change } = useHeld<T>(
    `${path} ${JSON.stringify(query)}`,
    async ({ items: all, next, ...old }, signal) => {
      removed.current.clear()
      // The next page begins behind those that are still listed.
      const known = next ? all.filter(stands ?? (() => true)) : []
      const page = { ...query, limit: rows_a_page, offset: known.length }
      const result = await ask<{ items: T[]; total: number }>('GET', path, { query: page, signal })
      if (!result.ok) return result
      // Items that appeared or left in the meantime shift the others: a page may begin with the end of the one before.
      const ids = new Set(known.map(idOf))
      const items = [...known, ...result.value.items.filter((item) => !ids.has(idOf(item)))]
      const left = items.filter((item) => !removed.current.has(idOf(item)))
      const total = result.value.total - (items.length - left.length)
      return { ok: true, value: { ...old, items: left, total, next: false }, text: '' }
    },
    () => ({}),
  )
  const remove = (id: string) => {
    removed.current.add(id)
    change((held) => {
      const items = held.items.filter((item) => idOf(item) !== id)
      return { ...held, items, total: held.total - (held.items.length - items.length) }
    })
  }
  const { value } = loaded
  const total = value?.total ?? 0
  const more = (value?.items.length ?? 0) < total
  return { ...loaded, value: value?.items ?? null, total, more, showMore, remove }
}
