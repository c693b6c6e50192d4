// What somebody does on a page: one at a time, and what came of it.

import { useSignal } from '@preact/signals'
import type { Problem, Result } from './api.ts'

export interface Action {
  busy: boolean
  problem: Problem | null
  /** The refusal was read, and what was refused is being changed. */
  forget: () => void
  /** The answer, or null when it was refused: `problem` then says why. */
  run: <T>(work: () => Promise<Result<T>>) => Promise<T | null>
}

export function useAction(): Action {
  const busy = useSignal(false)
  const problem = useSignal<Problem | null>(null)
  return {
    busy: busy.value,
    problem: problem.value,
    forget: () => {
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

/** What is wrong with a field, by its JSON pointer. */
export function issueOf(problem: Problem | null, path: string): string | undefined {
  const issues = problem?.details.issues
  if (!Array.isArray(issues)) return undefined
  return issues.find((issue) => issue?.path === path)?.message
}
