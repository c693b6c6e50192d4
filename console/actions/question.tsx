// The question before a change. A refusal is said in words, above what will happen.

import type { ComponentChildren, JSX } from 'preact'
import { useAction } from '../api/action.ts'
import type { Problem, Result } from '../api/client.ts'
import type { ButtonKind } from '../ui/basics.tsx'
import { Question } from '../ui/dialog.tsx'
import { Refusal } from './refusal.tsx'

interface ChangeQuestionProps<T> {
  title: string
  verb: string
  kind?: ButtonKind
  disabled?: boolean
  /** Makes the change. A value of null: nothing was done, and the question stays. */
  work: () => Promise<Result<T | null>>
  /** Says a problem in another way; null where it does not. */
  refusal?: (problem: Problem) => JSX.Element | null
  /** Called once it is done and the question closed. */
  onDone: (done: T) => void
  onClose: () => void
  children: ComponentChildren
}

export function ChangeQuestion<T>(props: ChangeQuestionProps<T>) {
  const { work, refusal, onDone, children, ...question } = props
  const { busy, problem, run } = useAction()
  const confirm = async () => {
    const done = await run(work)
    if (done === null) return
    question.onClose()
    onDone(done)
  }
  return (
    <Question {...question} action={{ busy, problem: null }} onConfirm={() => void confirm()}>
      {problem && (refusal?.(problem) ?? <Refusal {...{ problem }} />)}
      {children}
    </Question>
  )
}
