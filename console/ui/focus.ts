// Focus: where it goes when the focused element goes away, and with a new page.

import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'

/**
 * For a component that removes rows or buttons as it renders. `place` gets the focus when an element in it, or beside
 * it under the same parent, had it and is gone. It must be focusable.
 */
export function useKeptFocus(place: RefObject<HTMLElement | null>): void {
  const focused = document.activeElement
  const inside =
    focused !== null && focused !== document.body && place.current?.parentElement?.contains(focused)
  useLayoutEffect(() => {
    const lost = document.activeElement === null || document.activeElement === document.body
    if (inside && lost && !focused.isConnected) place.current?.focus({ preventScroll: true })
  })
}

/** The record that has the page for itself, or null when there is none, or when its list is beside it. */
export function recordAsPage(): HTMLElement | null {
  const record = document.querySelector<HTMLElement>('.split-detail')
  return record && !isSeen(record.parentElement!.querySelector('.split-list')!) ? record : null
}

export function isSeen(element: Element): boolean {
  return element.getClientRects().length > 0
}
