// The frame of a page, its cards, and the states of loaded data: loading, empty, failed.

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { issuesOf, type Problem } from '../api/client.ts'
import type { Loaded } from '../api/load.ts'
import { shown } from '../text/words.ts'
import { Button, Code, DocsLink } from './basics.tsx'
import { recordAsPage } from './focus.ts'

interface PageProps {
  title: string
  lead?: ComponentChildren
  /** The page of the documentation, `kv`. */
  docs?: string
  actions?: ComponentChildren
  children: ComponentChildren
}

let first = true

/** A new title takes the focus, so that screen readers read it. */
export function Page({ title, lead, docs, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    document.title = `${shown(title)} · Waystation`
    if (!first) (recordAsPage() ?? heading.current)?.focus({ preventScroll: true })
    first = false
  }, [title])
  return (
    <div class="page">
      <header class="page-head bar" data-wrap>
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {shown(title)}
          </h1>
          {lead && (
            <p class="muted">
              {lead} {docs && <DocsLink page={docs}>Learn more</DocsLink>}
            </p>
          )}
        </div>
        {actions && <div class="parts">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface CardProps {
  title: string
  /** Of rows of two lines. */
  tall?: boolean
  actions?: ComponentChildren
  children: ComponentChildren
}

export function Card({ title, tall, actions, children }: CardProps) {
  return (
    <section class="card" aria-label={title} data-tall={tall}>
      <header class="card-head bar">
        <h2>{title}</h2>
        {actions && <div class="parts">{actions}</div>}
      </header>
      {children}
    </section>
  )
}

/** A part of a card, with a heading. */
export function Part({ title, children }: Omit<CardProps, 'actions' | 'tall'>) {
  return (
    <section class="detail-part" aria-label={title}>
      <h3 class="label">{title}</h3>
      {children}
    </section>
  )
}

/** Grey lines as high as the data that will replace them, so that nothing moves. */
export function Skeleton({ lines, what }: { lines: number; what: string }) {
  return (
    <div class="skeleton" role="status">
      <span class="offscreen">Loading {what}…</span>
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class="skeleton-line" aria-hidden="true" />
      ))}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  )
}

/** A problem in words, and a way to go on. */
export function ErrorBox({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="error bar" data-wrap role="alert">
      <div>
        <p class="error-title">{headline(problem)}</p>
        {problem.code !== 'OFFLINE' && <Message {...{ problem }} />}
        {problem.request_id && (
          <p class="muted small">
            {problem.code} · request {shown(problem.request_id)}
          </p>
        )}
      </div>
      {retry && <Button text="Try again" onClick={retry} />}
    </div>
  )
}

const issues_max = 10

/** Of a request that breaks rules, these rules: the message only says that there are some. */
function Message({ problem }: { problem: Problem }) {
  const issues = problem.code === 'VALIDATION_FAILED' ? issuesOf(problem).slice(0, issues_max) : []
  if (issues.length === 0) return <p>{shown(problem.message)}</p>
  return (
    <ul class="issues">
      {issues.map(({ path, message }) => (
        <li key={path}>
          {path !== '' && <Code>{path.replace(/^\/|^(query|path|header)\./, '')}</Code>} {shown(message)}
        </li>
      ))}
    </ul>
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
  loaded: Pick<Loaded<T>, 'value' | 'problem' | 'reload'>
  what: string
  /** The height of the skeleton. */
  lines?: number
  children: (value: T) => ComponentChildren
}

/** All states of loaded data. A failure after a success keeps the old value, and shows the problem. */
export function LoadedView<T>({ loaded, what, lines = 4, children }: LoadedViewProps<T>) {
  const { value, problem, reload } = loaded
  return (
    <>
      {problem && problem.code !== 'ABORTED' && <ErrorBox problem={problem} retry={reload} />}
      {value === null ? !problem && <Skeleton lines={lines} what={what} /> : children(value)}
    </>
  )
}
