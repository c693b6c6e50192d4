// Loading, empty, failed: every view has all three.

import type { ComponentChildren, JSX } from 'preact'
import type { Problem } from '../api.ts'
import { shown } from '../text.ts'
import { Button } from './basics.tsx'

/** Grey lines as high as what will stand there, so that nothing moves when it comes. */
export function Skeleton({ lines, what }: { lines: number; what: string }): JSX.Element {
  return (
    <div class="skeleton" role="status">
      <span class="offscreen">Loading {what}…</span>
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class="skeleton-line" aria-hidden="true" />
      ))}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  )
}

/** What went wrong, in words, and how to go on. */
export function ErrorBox({
  problem,
  retry,
}: {
  problem: Problem
  retry?: (() => void) | undefined
}): JSX.Element {
  return (
    <div class="error" role="alert">
      <div>
        <p class="error-title">{headline(problem)}</p>
        {problem.code !== 'OFFLINE' && <p>{shown(problem.message)}</p>}
        {problem.request_id && (
          <p class="muted small">
            {problem.code} · request {shown(problem.request_id)}
          </p>
        )}
      </div>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  )
}

function headline({ code, status }: Problem): string {
  if (code === 'OFFLINE') return navigator.onLine ? 'The service does not answer.' : 'You are offline.'
  if (code === 'UNAVAILABLE' && status < 500) return 'The service does not answer.'
  if (code === 'UNAUTHORIZED') return 'This key is not valid.'
  if (code === 'FORBIDDEN') return 'This key may not do that.'
  if (code === 'TENANT_PENDING_DELETION') return 'This tenant is about to be deleted.'
  if (code === 'QUOTA_EXCEEDED') return 'The plan’s limit is reached.'
  if (code === 'RATE_LIMITED') return 'Too many requests. Wait a moment.'
  if (status === 404) return 'There is no such thing here.'
  return status >= 500 ? 'The service could not do that.' : 'That was refused.'
}

interface LoadedViewProps<T> {
  loaded: { value: T | null; problem: Problem | null; reload: () => void }
  what: string
  /** How high the place is while nothing is there. */
  lines?: number
  children: (value: T) => ComponentChildren
}

/** The three states around what was loaded. A failure after a success keeps what is known, and says so. */
export function LoadedView<T>({ loaded, what, lines = 4, children }: LoadedViewProps<T>): JSX.Element {
  const { value, problem, reload } = loaded
  return (
    <>
      {problem && problem.code !== 'ABORTED' && <ErrorBox problem={problem} retry={reload} />}
      {value === null ? !problem && <Skeleton lines={lines} what={what} /> : children(value)}
    </>
  )
}
