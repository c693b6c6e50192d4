// The empty list of something that was never used: what it is for, and the one command that makes the first.

import type { ComponentChildren } from 'preact'
import type { Query } from '../api/address.ts'
import type { PageOf } from '../api/client.ts'
import { useGet } from '../api/load.ts'
import { to } from '../router.ts'
import { Command, DocsLink } from './basics.tsx'
import { Skeleton } from './page.tsx'
import './first.css'

/** The words of a noun; each noun has its own in `first.ts`. */
export interface FirstUse {
  title: string
  /** The use of it, in a sentence or two. */
  purpose: string
  /** Makes the first, with a key from the environment of the shell. */
  command: () => string
  /** The variable that the command takes the key from. */
  key?: 'AGENT_KEY' | 'ADMIN_KEY'
  /** The page of the documentation, `kv`. */
  page: string
}

export function First({ title, purpose, command, key = 'AGENT_KEY', page }: FirstUse) {
  return (
    <div class="first">
      <p class="empty-title">{title}</p>
      <p class="muted">{purpose}</p>
      <Command what="Command that makes the first">{command()}</Command>
      <p class="muted small">
        {key === 'AGENT_KEY' ? (
          <>
            AGENT_KEY is the key of one of your <a href={to('/console/keys')}>agents</a>.
          </>
        ) : (
          'ADMIN_KEY is the key that you signed in with.'
        )}{' '}
        <DocsLink page={page}>Documentation</DocsLink>
      </p>
    </div>
  )
}

interface NeverProps {
  /** The list without a filter. */
  path: string
  query?: Query
  first: FirstUse
  /** Shown when there are some, in another status than the one that is looked at. */
  children: ComponentChildren
}

/** Looks once whether there is any at all. */
export function Never({ path, query = {}, first, children }: NeverProps) {
  const { value, problem } = useGet<PageOf<unknown>>(path, { ...query, limit: 1 })
  if (value === null && !problem) return <Skeleton lines={4} what="the list" />
  const none = value !== null && value.items.length === 0 && value.next_cursor === null
  return none ? <First {...first} /> : children
}
