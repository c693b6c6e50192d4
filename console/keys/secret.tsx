// What the service shows once: a new key, its link, a secret. It lives in the component that shows it and nowhere else.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { Button, Copy } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'

export interface Secret {
  /** "Key", "Link". */
  name: string
  text: string
}

interface OneTimeProps {
  title: string
  secrets: Secret[]
  children?: ComponentChildren
  onClose: () => void
}

/** Escape, or a click beside it, asks first: what is closed by mistake is lost. */
export function OneTime({ title, secrets, children, onClose }: OneTimeProps): JSX.Element {
  const asked = useSignal(false)
  return (
    <Dialog
      title={title}
      onClose={() => {
        if (asked.peek()) onClose()
        asked.value = true
      }}
    >
      <p>Copy it now: it is shown here once, and never again.</p>
      {secrets.map(({ name, text }, i) => (
        <div key={name} class="secret">
          <p class="label">{name}</p>
          <div class="secret-line">
            <code class="code">{text}</code>
            <span data-focus={i === 0 ? '' : undefined}>
              <Copy text={text} what={`the ${name.toLowerCase()}`} />
            </span>
          </div>
        </div>
      ))}
      {children}
      <p class="muted small secret-note" role="status">
        {asked.value && 'Is it kept? Press Escape once more, or Done, to close.'}
      </p>
      <div class="dialog-buttons">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  )
}
