// A question in front of the page: the browser keeps the focus inside, and it returns to where it was.

import type { ComponentChildren, JSX } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { dialogs, Toast } from './toast.tsx'

const fields = 'input, textarea, select'

interface DialogProps {
  title: string
  children: ComponentChildren
  /** Escape, a click beside it, or one of its own buttons. */
  onClose: () => void
}

/** Open as long as it is rendered. What stands in `data-focus` gets the focus, otherwise the first field. */
export function Dialog({ title, children, onClose }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    dialog?.showModal()
    const first =
      dialog?.querySelector<HTMLElement>(`[data-focus] :is(button, ${fields})`) ??
      dialog?.querySelector<HTMLElement>(fields)
    first?.focus()
    dialogs.value += 1
    return () => {
      dialogs.value -= 1
      dialog?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      // Chromium lets a second Escape close it without asking: as long as it is rendered it is open.
      onClose={() => element.current?.isConnected && !element.current.open && element.current.showModal()}
      onPointerDown={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog-inside">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
      <Toast in_dialog />
    </dialog>
  )
}
