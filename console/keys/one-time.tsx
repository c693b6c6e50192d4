// A secret that the service answers once: a new key, its link. It is kept in the component that shows it, nowhere else.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Button, Copy } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { useStay } from '../ui/leaving.ts'
import './keys.css'

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

interface SecretLineProps extends Secret {
  /** The button has the focus when the dialog opens. */
  first?: boolean
  children?: ComponentChildren
}

/** A secret with a button that copies it. */
export function SecretLine({ name, text, first = false, children }: SecretLineProps) {
  return (
    <div class="secret">
      <p class="label">{name}</p>
      <div class="secret-line">
        <code class="code">{text}</code>
        <span data-focus={first ? '' : undefined}>
          <Copy text={text} what={`the ${name.charAt(0).toLowerCase()}${name.slice(1)}`} />
        </span>
      </div>
      {children && <p class="muted small">{children}</p>}
    </div>
  )
}

/** Escape, a click beside the dialog, or "back" asks first: a secret that is closed by mistake is lost. */
export function OneTime({ title, secrets, children, onClose }: OneTimeProps) {
  const asked = useSignal(false)
  const close = () => {
    if (asked.peek()) onClose()
    asked.value = true
  }
  useStay(true, close)
  return (
    <Dialog title={title} onClose={close}>
      <p>Copy it now: it is shown here once, and never again.</p>
      {secrets.map(({ name, text }, i) => (
        <SecretLine key={name} {...{ name, text }} first={i === 0} />
      ))}
      {children}
      <p class="muted small secret-note" role="status">
        {asked.value && 'Have you saved it? Press Escape once more, or Done, to close.'}
      </p>
      <div class="dialog-buttons parts">
        <Button text="Done" kind="primary" onClick={onClose} />
      </div>
    </Dialog>
  )
}
