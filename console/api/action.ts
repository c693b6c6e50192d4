// Changes that a page makes: one at a time, with the answer or the problem.

import { useSignal } from '@preact/signals'
import { type Issue, issuesOf, type Problem, type Result } from './client.ts'
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

/** A form that creates a record. */
export interface Creation<T, F extends Record<string, string>> extends Pick<Action, 'busy' | 'problem'> {
  values: F
  /** For a field of the form: its value, its problem, and its changes. */
  field: <N extends keyof F>(
    name: N,
  ) => { value: F[N]; error: string | undefined; onInput: (value: F[N]) => void }
  /** Answers null when it was refused. */
  create: (body: unknown) => Promise<T | null>
}

/**
 * A repeat of the same form has the same Idempotency-Key: when an answer was lost, the repeat gets the record that the
 * first one created. `problem` is null when fields show all of it; `known` has the sentences for other codes. `send` is a call
 * without the session.
 */
export function useCreation<T, F extends Record<string, string>>(
  path: string,
  initial: F,
  known: { [code in Problem['code']]?: [field: keyof F, error: string] } = {},
  send: typeof ask = ask,
): Creation<T, F> {
  const values = useSignal(initial)
  const idempotency_key = useSignal(newKey())
  const { busy, problem, clear, run } = useAction()
  const [known_field, known_error] = (problem && known[problem.code]) ?? []
  const errorOf = (name: keyof F) => (name === known_field ? known_error : issueOf(problem, pointerOf(name)))
  return {
    busy,
    problem: known_field ? null : unseen(problem, Object.keys(initial).map(pointerOf)),
    values: values.value,
    field: (name) => ({
      value: values.value[name],
      error: errorOf(name),
      onInput: (value) => {
        values.value = { ...values.value, [name]: value }
        idempotency_key.value = newKey()
        clear()
      },
    }),
    create: (body) => {
      const headers = { 'idempotency-key': idempotency_key.peek() }
      return run(() => send<T>('POST', path, { body, headers }))
    },
  }
}

/** An Idempotency-Key. Pages that are not served over HTTPS have no crypto.randomUUID. */
export function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}

function pointerOf(field: PropertyKey): string {
  return `/${String(field)}`
}

/** The problem of a field, by its JSON pointer; of a list, that of its first wrong entry. */
export function issueOf(problem: Problem | null, path: string): string | undefined {
  const found = issuesOf(problem).find(isUnder(path))
  const [, entry] = /^\/(\d+)$/.exec(String(found?.path).slice(path.length)) ?? []
  return entry === undefined ? found?.message : `Entry ${Number(entry) + 1} ${found!.message}`
}

/** The rest of a problem beside fields that show their own issues, by the pointers of these; null when there is none. */
export function unseen(problem: Problem | null, paths: readonly string[]): Problem | null {
  const all = issuesOf(problem)
  const issues = all.filter((issue) => !paths.some((path) => isUnder(path)(issue)))
  if (problem === null || issues.length === all.length) return problem
  return issues.length === 0 ? null : { ...problem, details: { ...problem.details, issues } }
}

function isUnder(path: string): (issue: Issue) => boolean {
  return (issue) => issue.path === path || issue.path.startsWith(`${path}/`)
}
