// What just happened, said once: on the screen for a while, and to screen readers.

import { signal } from '@preact/signals'
import type { JSX } from 'preact'

const message = signal('')
const shown_ms = 5_000
let timer = 0

export function announce(text: string): void {
  // The same words twice are only said again when the place was empty in between.
  message.value = ''
  clearTimeout(timer)
  queueMicrotask(() => {
    message.value = text
  })
  timer = window.setTimeout(() => {
    message.value = ''
  }, shown_ms)
}

/** Open now. What stands outside of a dialog is inert: it is behind it, and no screen reader says it. */
export const dialogs = signal(0)

export function Toast({ in_dialog = false }: { in_dialog?: boolean }): JSX.Element {
  const text = in_dialog || dialogs.value === 0 ? message.value : ''
  return (
    <div class="toast" role="status" aria-live="polite" data-empty={text === ''}>
      {text}
    </div>
  )
}
