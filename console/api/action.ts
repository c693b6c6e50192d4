// Changes that a page makes: one at a time, with the answer or the problem.

import { type Signal, useSignal } from '@preact/signals'
import type { Problem, Result } from './client.ts'
import { ask } from './session.ts'

export interface Action {
  busy: boolean
  problem: Problem | null
  /** Removes the problem, once its cause is being changed. */
  clear: () => void
  /** Answers null when the change was refused; `problem` then says why. */
  run: <T>(work: () => Promise<Result<T>>) => Promise<T | null>
}

export function useAction(): Action {
  const busy = useSignal(false)
  const problem = useSignal<Problem | null>(null)
  return {
    busy: busy.value,
    problem: problem.value,
    clear: () => {
      problem.value = null
    },
    run: async (work) => {
      if (busy.peek()) return null
      busy.value = true
      const result = await work()
      busy.value = false
      problem.value = result.ok ? null : result.problem
      return result.ok ? result.value : null
    },
  }
}

export interface Creation<T> extends Action {
  create: (body: unknown) => Promise<T | null>
  /** The value of a form field, and its changes. */
  bind: <V extends string>(field: Signal<V>) => { value: V; onInput: (value: V) => void }
}

/**
 * A creation by a form. A repeat of the same form has the same Idempotency-Key: when an answer was lost, the repeat
 * gets what the first one created.
 */
export function useCreation<T>(path: string): Creation<T> {
  const idempotency_key = useSignal(crypto.randomUUID())
  const action = useAction()
  return {
    ...action,
    create: (body) => {
      const headers = { 'idempotency-key': idempotency_key.peek() }
      return action.run(() => ask<T>('POST', path, { body, headers }))
    },
    bind: (field) => ({
      value: field.value,
      onInput: (value) => {
        field.value = value
        idempotency_key.value = crypto.randomUUID()
        action.clear()
      },
    }),
  }
}

/** The problem of a field, by its JSON pointer. */
export function issueOf(problem: Problem | null, path: string): string | undefined {
  const issues = problem?.details.issues
  if (!Array.isArray(issues)) return undefined
  return issues.find((issue) => issue?.path === path)?.message
}
