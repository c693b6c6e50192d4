// Dialogs: a modal window, a question with two answers, a form.

import type { ComponentChildren, JSX, TargetedMouseEvent } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { type Action, useAction } from '../api/action.ts'
import type { Problem, Result } from '../api/client.ts'
import { Button, type ButtonKind, Text } from './basics.tsx'
import { Form } from './form.tsx'
import { ErrorBox } from './page.tsx'
import { dialogs, Toast } from './toast.tsx'

const fields = 'input, textarea, select'

interface DialogProps {
  title: ComponentChildren
  children: ComponentChildren
  /** A change is under way. */
  busy?: boolean
  /** Called by Escape, by a click beside the dialog, and by its own buttons. */
  onClose: () => void
}

/** Open while it is rendered. The element in `data-focus` gets the focus, otherwise the first field. */
export function Dialog({ title, children, busy = false, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    const places = placesAround(before)
    dialog?.showModal()
    const first =
      dialog?.querySelector<HTMLElement>(`[data-focus] :is(button, ${fields})`) ??
      dialog?.querySelector<HTMLElement>(fields)
    first?.focus()
    dialogs.value += 1
    return () => {
      dialogs.value -= 1
      dialog?.close()
      // The button may have gone meanwhile, or do nothing any more.
      for (const place of places) {
        place.focus({ preventScroll: place !== before })
        if (document.activeElement === place) return
      }
      // The whole page has changed below it.
      document.querySelector<HTMLElement>('#main, main input')?.focus({ preventScroll: true })
    }
  }, [])
  useLayoutEffect(() => {
    // A refusal stands above its buttons: in a small window it may be out of view.
    const refusal = element.current?.querySelector<HTMLElement>('[aria-invalid=true], [role=alert]')
    if (refusal?.matches(fields)) refusal.focus()
    else refusal?.scrollIntoView({ block: 'nearest' })
  }, [busy])
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      // In Chromium a second Escape closes the dialog without an event that can be cancelled.
      onClose={() => element.current?.isConnected && !element.current.open && element.current.showModal()}
      // The second half of a double click began where there was no dialog yet.
      onMouseDown={(event) => {
        if (event.target !== element.current || event.detail > 1 || !isBeside(event)) return
        // The focus goes back to where it was, not to what is below the pointer.
        event.preventDefault()
        onClose()
      }}
    >
      <div class="dialog-inside stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
      <Toast in_dialog />
    </dialog>
  )
}

/** The element, and everything around it that takes the focus, from the inside out. */
function placesAround(element: Element | null): HTMLElement[] {
  if (!(element instanceof HTMLElement)) return []
  return [element, ...placesAround(element.parentElement?.closest('[tabindex]') ?? null)]
}

/** True on the backdrop. The dialog scrolls, and its scrollbar is also nothing but the dialog. */
function isBeside({ clientX: x, clientY: y, currentTarget }: TargetedMouseEvent<HTMLDialogElement>): boolean {
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect()
  return x < left || x > right || y < top || y > bottom
}

interface QuestionProps extends DialogProps {
  /** The label of the button that confirms. */
  verb: string
  /** The label of the other one. */
  back?: string
  kind?: ButtonKind
  /** It cannot be confirmed yet. */
  disabled?: boolean
  action: Pick<Action, 'busy' | 'problem'>
  onConfirm: () => void
}

/** A question before a change. "Back" has the focus; while the change is under way the dialog stays open. */
export function Question(props: QuestionProps) {
  const { title, verb, back = 'Go back', kind = 'danger', disabled = false, action } = props
  const { onConfirm, onClose, children } = props
  const close = () => action.busy || onClose()
  return (
    <Dialog title={title} busy={action.busy} onClose={close}>
      {action.problem && <ErrorBox problem={action.problem} />}
      {children}
      <div class="dialog-buttons parts">
        <span data-focus>
          <Button text={back} onClick={close} />
        </span>
        <Button text={verb} busy={action.busy} onClick={onConfirm} {...{ kind, disabled }} />
      </div>
    </Dialog>
  )
}

/** The record that a question is about. */
export function Emphasis({ children }: { children: string | JSX.Element }) {
  return (
    <p class="emphasis">
      <strong>{typeof children === 'string' ? <Text>{children}</Text> : children}</strong>
    </p>
  )
}

interface ConfirmProps extends Pick<QuestionProps, 'title' | 'verb' | 'back' | 'onClose' | 'children'> {
  work: () => Promise<Result<unknown>>
  /** Called once it is done and the question closed. */
  onDone: () => void
}

/** The question before a removal. */
export function Confirm({ work, onDone, ...question }: ConfirmProps) {
  const action = useAction()
  const confirm = async () => {
    // A record that is gone already counts as removed. An empty answer is undefined, so `true` stands for it.
    const done = await action.run(async () => {
      const result = await work()
      return result.ok || isGone(result.problem) ? { ok: true, value: true, text: '' } : result
    })
    if (!done) return
    question.onClose()
    onDone()
  }
  return <Question {...question} {...{ action }} onConfirm={() => void confirm()} />
}

/** True for a 404 of the service itself. One of something in front of it says nothing about the record. */
function isGone({ code }: Problem): boolean {
  return code.endsWith('_NOT_FOUND') && code !== 'ROUTE_NOT_FOUND'
}

interface FormDialogProps extends DialogProps {
  action: Pick<Action, 'busy' | 'problem'>
  /** The label of the button that sends it. */
  verb?: string
  /** The label of the button that leaves. */
  back?: string
  own_checks?: boolean
  onSubmit: () => void
}

/** A form that creates or changes a record. Its first child gets the focus. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, verb = 'Create', back = 'Go back', own_checks = false } = props
  const { onSubmit, onClose, children } = props
  const close = () => action.busy || onClose()
  return (
    <Dialog title={title} busy={action.busy} onClose={close}>
      <Form kind="stack" {...{ own_checks, onSubmit }}>
        {children}
        {action.problem && <ErrorBox problem={action.problem} />}
        <div class="dialog-buttons parts">
          <Button text={back} onClick={close} />
          <Button text={verb} kind="primary" type="submit" busy={action.busy} />
        </div>
      </Form>
    </Dialog>
  )
}
