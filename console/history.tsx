// What happened to something, step by step.

import type { ComponentChildren, JSX } from 'preact'
import { Time, type Tone } from './ui/basics.tsx'

export interface Moment {
  id: string
  tone: Tone
  title: ComponentChildren
  at?: string | undefined
  note?: ComponentChildren
}

export function History({ what, moments }: { what: string; moments: Moment[] }): JSX.Element {
  return (
    <ol class="history" aria-label={what}>
      {moments.map(({ id, tone, title, at, note }) => (
        <li key={id} data-tone={tone}>
          <div class="history-head">
            <span class="history-title">{title}</span>
            {at && <Time at={at} />}
          </div>
          {note && <p class="muted small">{note}</p>}
        </li>
      ))}
    </ol>
  )
}

interface CommandsProps {
  title: string
  lead: string
  children: ComponentChildren
}

/** What only agents may do, folded away. */
export function Elsewhere({ title, lead, children }: CommandsProps): JSX.Element {
  return (
    <details class="elsewhere">
      <summary>{title}</summary>
      <p class="muted">{lead}</p>
      <div class="commands">{children}</div>
    </details>
  )
}
