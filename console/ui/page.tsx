// The frame of a page of the console: its title, what it is about, what can be done.

import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { shown } from '../text.ts'

interface PageProps {
  title: string
  lead?: ComponentChildren
  actions?: ComponentChildren
  children: ComponentChildren
}

let first = true

/** A new title takes the focus: screen readers then say where one is. */
export function Page({ title, lead, actions, children }: PageProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    document.title = `${shown(title)} · Waystation`
    if (!first) heading.current?.focus({ preventScroll: true })
    first = false
  }, [title])
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {shown(title)}
          </h1>
          {lead && <p class="muted">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

interface CardProps {
  title: string
  actions?: ComponentChildren
  children: ComponentChildren
}

export function Card({ title, actions, children }: CardProps): JSX.Element {
  return (
    <section class="card" aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  )
}
