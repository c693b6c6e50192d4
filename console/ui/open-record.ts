// The record that is open beside its list, or as a page of its own where both do not fit: focus, positions and keys.

import { signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { closeRecord } from '../router.ts'
import { isSeen } from './focus.ts'
import { dialogs } from './toast.tsx'

/** As in the style: the distance of the record from the edges of the window. */
const gap_px = 16

/** The record that was opened, in words for screen readers. */
export const heard = signal('')

/** Called by a record once its name is known. The title of the document has the name too. */
export function useHeard(what: string, name: string | null): void {
  useLayoutEffect(() => {
    if (name === null) return
    const title = document.title
    heard.value = `Opened: ${what}${name === '' ? '' : `, ${name}`}.`
    if (name !== '') document.title = `${name} · ${title}`
    return () => {
      heard.value = ''
      document.title = title
    }
  }, [what, name])
}

interface Places {
  list: RefObject<HTMLElement | null>
  record: RefObject<HTMLElement | null>
}

/** `path` is the address of the open record, null without one. */
export function useOpenRecord(places: Places, path: string | null): void {
  const { list, record } = places
  const before = useRef<string | null>(null)
  const mounted = useRef(false)
  const position = useRef<Position | null>(null)
  const row = useRef<HTMLElement | null>(null)
  // Read while the list is still there: without it the page is shorter, and the position lost.
  if (path !== null && before.current === null) position.current = list.current && positionOf(list.current)
  useLayoutEffect(() => {
    row.current = list.current?.querySelector<HTMLElement>('[aria-current] a[href]') ?? row.current
  })
  useLayoutEffect(() => {
    const was = before.current
    before.current = path
    if (path === null && was !== null) close(places, row.current, position.current)
    else if (path !== null && mounted.current) open(places)
    if (path === null) row.current = null
    mounted.current = true
  }, [path])
  useLayoutEffect(() => (path === null ? undefined : fitted(list.current!, record.current!)), [path])
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => onPress(event, list.current, path !== null)
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [path])
}

interface Position {
  page_px: number
  boxes: [box: Element, top_px: number][]
}

function positionOf(list: HTMLElement): Position {
  const boxes = [...list.querySelectorAll('.table-scroll')]
  return { page_px: scrollY, boxes: boxes.map((box) => [box, box.scrollTop]) }
}

/** Beside the list the focus stays in the list, so that the next row is a key away. */
function open({ list, record }: Places): void {
  record.current!.scrollTop = 0
  const as_page = !isSeen(list.current!)
  if (as_page) scrollTo(0, 0)
  if (as_page || isFocusLost()) record.current!.focus({ preventScroll: true })
}

function close({ list }: Places, row: HTMLElement | null, position: Position | null): void {
  const place = row?.isConnected ? row : list.current!
  const was_page = list.current!.dataset.hidden === 'true'
  if (was_page && position) {
    scrollTo(0, position.page_px)
    for (const [box, top_px] of position.boxes) box.scrollTop = top_px
  }
  if (isFocusLost()) place.focus({ preventScroll: !was_page || position !== null })
}

function isFocusLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body
}

/** Keeps the height of the record within the window, however far the page is scrolled. */
function fitted(list: HTMLElement, record: HTMLElement): () => void {
  const fit = () => {
    list.dataset.hidden = String(!isSeen(list))
    const top_px = Math.max(gap_px, record.parentElement!.getBoundingClientRect().top)
    record.style.setProperty('--top', `${Math.round(top_px)}px`)
    // At the end of a long list the record would be pushed out of the window by what follows the list.
    const { height, bottom } = list.getBoundingClientRect()
    const is_long = height >= innerHeight - 2 * gap_px
    const bottom_px = is_long ? Math.max(gap_px, innerHeight - bottom) : gap_px
    record.style.setProperty('--bottom', `${Math.round(bottom_px)}px`)
  }
  fit()
  addEventListener('scroll', fit, { passive: true })
  addEventListener('resize', fit)
  return () => {
    removeEventListener('scroll', fit)
    removeEventListener('resize', fit)
  }
}

const controls = 'a[href], button, input[type=checkbox]'
const fields = 'input:not([type=checkbox]), textarea, select'

/** Arrow keys move between the rows, and Enter opens one, as any link. Escape closes the record. */
function onPress(event: KeyboardEvent, list: HTMLElement | null, is_open: boolean): void {
  const { key, target, defaultPrevented, altKey, ctrlKey, metaKey, shiftKey } = event
  const is_taken = defaultPrevented || altKey || ctrlKey || metaKey || shiftKey || dialogs.value > 0
  if (is_taken || !(target instanceof Element) || target.matches(fields)) return
  if (key === 'Escape' && is_open) {
    event.preventDefault()
    closeRecord()
  }
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
  const row = target.closest('tr, li')
  if (step === 0 || !row || !list?.contains(row)) return
  const rows = [...list.querySelectorAll('tbody > tr, .rows > li')].filter((each) =>
    each.querySelector(controls),
  )
  const next = rows[rows.indexOf(row) + step]
  if (!rows.includes(row) || !next) return
  event.preventDefault()
  const column = [...row.querySelectorAll(controls)].indexOf(target)
  const [first, ...others] = next.querySelectorAll<HTMLElement>(controls)
  ;([first, ...others][column] ?? first)?.focus()
}
