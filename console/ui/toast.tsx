// Short messages: on the screen for a while, and read once by screen readers.

import { signal } from '@preact/signals'

const message = signal('')
const shown_ms = 5_000
let timer = 0

export function announce(text: string): void {
  // A screen reader reads the same words again only when the element was empty in between.
  message.value = ''
  clearTimeout(timer)
  queueMicrotask(() => {
    message.value = text
  })
  timer = window.setTimeout(() => {
    message.value = ''
  }, shown_ms)
}

/** The number of open dialogs. Elements outside a dialog are inert: screen readers do not read them. */
export const dialogs = signal(0)

export function Toast({ in_dialog = false }: { in_dialog?: boolean }) {
  const text = in_dialog || dialogs.value === 0 ? message.value : ''
  return (
    <div class="toast" role="status" aria-live="polite" data-empty={text === ''}>
      {text}
    </div>
  )
}
