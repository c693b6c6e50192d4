// Warnings before a page is left with something on it that is lost then.

import { useLayoutEffect, useRef } from 'preact/hooks'
import { stayHere } from '../router.ts'

/** The browser asks before a reload, and before another page than the console's. A layout effect runs before what is drawn. */
export function useWarning(is_on = true): void {
  useLayoutEffect(() => {
    if (!is_on) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [is_on])
}

/** The same, and "back" calls `onBack` instead of leading to another page of the console. */
export function useStay(is_on: boolean, onBack: () => void): void {
  useWarning(is_on)
  const latest = useRef(onBack)
  latest.current = onBack
  useLayoutEffect(() => (is_on ? stayHere(() => latest.current()) : undefined), [is_on])
}

/** A key that is on its way comes to the form that asked for it: "back" does not leave it. */
export function useStayFor(busy: boolean): void {
  useStay(busy, () => {})
}
