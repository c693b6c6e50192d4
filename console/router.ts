// The router: the address of the browser says which page is shown, and may be shared.

import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { base, decoded, type Query, withQuery } from './api/address.ts'
import { type Step, step } from './api/step.ts'

export interface Address {
  /** Without the base: `/console/dlq/dlq_1`. */
  path: string
  query: URLSearchParams
}

export const address = signal<Address>(read())

let instead: (() => void) | null = null

addEventListener('popstate', () => {
  if (instead) instead()
  else address.value = read()
})

/** Until it is ended, "back" and "forward" call this and lead nowhere. Answers how to end it. */
export function stayHere(onStep: () => void): () => void {
  const [state, href] = [history.state, location.href]
  const stay = () => {
    history.pushState(state, '', href)
    onStep()
  }
  instead = stay
  return () => {
    if (instead === stay) instead = null
  }
}

// Links are plain links: another tab, a middle click and "copy address" work.
document.addEventListener('click', (event) => {
  const link = (event.target as Element).closest?.('a')
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
  if (!link || !plain || event.defaultPrevented || link.target || link.origin !== location.origin) return
  if (!link.pathname.startsWith(`${base}/console`) || (link.hash && link.pathname === location.pathname))
    return
  event.preventDefault()
  follow(link)
})

/**
 * A row of a list opens its record as one step of the history, and the next row takes its place: "back" leads to the list.
 */
function follow(link: HTMLAnchorElement): void {
  const list = link.closest('.split-list')
  const is_open = list?.parentElement?.dataset.open === 'true'
  const kept = is_open ? step() : list ? { ...step(), opened: true as const } : {}
  go(link.href, is_open ? 'replace' : 'push', kept)
}

/** Closes the record that the last part of the path names. */
export function closeRecord(): void {
  if (step().opened) history.back()
  else go(listAddress())
}

/** The steps that an answer leads to. It leads nowhere once the component is gone: the reader has left its page. */
export function useWayOn() {
  const is_gone = useRef(false)
  useEffect(
    () => () => {
      is_gone.current = true
    },
    [],
  )
  const ifThere = (go: typeof navigate) => (path: string, query?: Query) => is_gone.current || go(path, query)
  return { navigate: ifThere(navigate), leaveRemoved: ifThere(leaveRemoved) }
}

/** Leaves what was removed for its list. Neither "back" nor "forward" leads to it again. */
function leaveRemoved(path: string, query: Query = {}): void {
  const { opened } = step()
  const leave = (kept: Step) => go(to(path, query), 'replace', kept)
  leave({})
  if (!opened) return
  // The step before shows the list, or is another page of what was removed.
  addEventListener('popstate', () => leave(step()), { once: true })
  history.back()
}

/** The address of the list that the open record belongs to. */
export function listAddress(): string {
  const { path, query } = address.value
  return to(path.slice(0, path.lastIndexOf('/')), Object.fromEntries(query))
}

function read(): Address {
  return {
    path: location.pathname.slice(base.length).replace(/\/$/, ''),
    query: new URLSearchParams(location.search),
  }
}

function go(href: string, way: 'push' | 'replace' = 'push', kept: Step = {}): void {
  if (way === 'replace') history.replaceState(kept, '', href)
  else if (href !== location.href) history.pushState(kept, '', href)
  address.value = read()
}

/** For `href`: a path of the console with its query. */
export function to(path: string, query: Query = {}): string {
  return base + withQuery(path, query)
}

export function navigate(path: string, query: Query = {}): void {
  go(to(path, query))
}

/** Changes part of the query. It replaces the address, so "back" leaves the page. */
export function setQuery(changes: Query): void {
  const all = { ...Object.fromEntries(address.value.query), ...changes }
  go(to(address.value.path, all), 'replace')
}

/** `/console/dlq/:id?` on `/console/dlq/dlq_1` is `{ id: 'dlq_1' }`; null when it does not fit. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (given.length > wanted.length) return null
  const params: Record<string, string> = {}
  for (const [i, part] of wanted.entries()) {
    const value = given[i]
    if (part.startsWith(':')) {
      if (value) params[part.replace(/^:|\?$/g, '')] = decoded(value)
      else if (!part.endsWith('?')) return null
    } else if (part !== value) return null
  }
  return params
}
