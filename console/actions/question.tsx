// The question before a change. A refusal is said in words, above what will happen.

import type { ComponentChildren, JSX } from 'preact'
import type { Action } from '../api/action.ts'
import type { Problem } from '../api/client.ts'
import type { ButtonKind } from '../ui/basics.tsx'
import { Question } from '../ui/dialog.tsx'
import { Refusal } from './refusal.tsx'

interface ChangeQuestionProps {
  title: string
  verb: string
  kind?: ButtonKind
  disabled?: boolean
  action: Pick<Action, 'busy' | 'problem'>
  /** Says a problem in another way; null where it does not. */
  refusal?: (problem: Problem) => JSX.Element | null
  onConfirm: () => Promise<void>
  onClose: () => void
  children: ComponentChildren
}

export function ChangeQuestion({ action, refusal, onConfirm, children, ...question }: ChangeQuestionProps) {
  const { busy, problem } = action
  return (
    <Question {...question} action={{ busy, problem: null }} onConfirm={() => void onConfirm()}>
      {problem && (refusal?.(problem) ?? <Refusal {...{ problem }} />)}
      {children}
    </Question>
  )
}
