// The focus, where a field takes the place of its button or gives it back.

import { useLayoutEffect, useRef } from 'preact/hooks'

/** The place in which the first field takes the focus once it is open, and the last button once it is closed again. */
export function useFocusAt(is_open: boolean) {
  const place = useRef<HTMLElement>(null)
  const was_open = useRef(is_open)
  useLayoutEffect(() => {
    if (was_open.current === is_open) return
    was_open.current = is_open
    // It closed by itself while another field had the focus.
    if (!is_open && document.activeElement !== document.body) return
    const fields = place.current?.querySelectorAll<HTMLElement>('textarea')
    const buttons = place.current?.querySelectorAll<HTMLElement>('button')
    const wanted = is_open ? fields?.[0] : buttons?.[buttons.length - 1]
    wanted?.focus()
  }, [is_open])
  return place
}
