// Short messages: on the screen for a while, and read once by screen readers.

import { signal } from '@preact/signals'

/** Where the message leads on to. */
export interface ToastLink {
  href: string
  text: string
}

const nothing: { text: string; link?: ToastLink | undefined } = { text: '' }
const message = signal(nothing)
const shown_ms = 5_000
/** Reaching a link takes longer than reading. */
const link_shown_ms = 15_000
let timer = 0

export function announce(text: string, link?: ToastLink): void {
  // A screen reader reads the same words again only when the element was empty in between.
  message.value = nothing
  clearTimeout(timer)
  queueMicrotask(() => {
    message.value = { text, link }
  })
  timer = window.setTimeout(hide, link ? link_shown_ms : shown_ms)
}

function hide(): void {
  message.value = nothing
}

/** The number of open dialogs. Elements outside a dialog are inert: screen readers do not read them. */
export const dialogs = signal(0)

export function Toast({ in_dialog = false }: { in_dialog?: boolean }) {
  const { text, link } = in_dialog || dialogs.value === 0 ? message.value : nothing
  return (
    <div class="toast" role="status" aria-live="polite" data-empty={text === ''}>
      {text}
      {link && (
        <>
          {' '}
          <a href={link.href} onClick={hide}>
            {link.text}
          </a>
        </>
      )}
    </div>
  )
}
