// A button with a question behind it.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Button, type ButtonKind, setTo } from '../ui/basics.tsx'

interface AskingProps {
  /** The verb: "Retry". */
  text: string
  kind?: ButtonKind
  /** The button's name for screen readers, where several have one text. */
  label?: string
  /** True when the API would refuse: the button is disabled. */
  refused?: boolean
  /** True when there is nothing to offer: no button. */
  absent?: boolean
  /** Makes the question. */
  children: (close: () => void) => ComponentChildren
}

/** An open question stays until it is answered, also when its record changes meanwhile; the API then says so in it. */
export function Asking({ text, refused = false, absent = false, children, ...shown }: AskingProps) {
  const open = useSignal(false)
  return (
    <>
      {!absent && refused && <Button {...{ text }} disabled />}
      {!absent && !refused && <Button text={`${text}…`} {...shown} onClick={setTo(open, true)} />}
      {open.value && children(setTo(open, false))}
    </>
  )
}
