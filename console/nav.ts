// Every page of the console, in the order of the navigation. A new page is a file in pages/ and a line here.

import type { JSX } from 'preact'
import { Approvals } from './pages/approvals.tsx'
import { Audit } from './pages/audit.tsx'
import { DeadLetters } from './pages/dlq.tsx'
import { Inboxes } from './pages/inboxes.tsx'
import { Keys } from './pages/keys.tsx'
import { KeyValues } from './pages/kv.tsx'
import { Overview } from './pages/overview.tsx'
import { RateLimits } from './pages/rate-limits.tsx'
import { Schedules } from './pages/schedules.tsx'

export interface PageEntry {
  /** As in match(): `/console/dlq/:id?`. */
  pattern: string
  /** Where the navigation leads. */
  path: string
  title: string
  /** Rendered with the parts of the path that the pattern names. */
  page: (props: { params: Record<string, string> }) => JSX.Element
}

export const pages: readonly PageEntry[] = [
  { pattern: '/console', path: '/console', title: 'Overview', page: Overview },
  { pattern: '/console/approvals/:id?', path: '/console/approvals', title: 'Approvals', page: Approvals },
  { pattern: '/console/schedules/:id?', path: '/console/schedules', title: 'Schedules', page: Schedules },
  { pattern: '/console/dlq/:id?', path: '/console/dlq', title: 'Dead letters', page: DeadLetters },
  { pattern: '/console/audit/:id?', path: '/console/audit', title: 'Audit', page: Audit },
  { pattern: '/console/kv/:namespace?/:key?', path: '/console/kv', title: 'KV', page: KeyValues },
  {
    ...{ pattern: '/console/inboxes/:id?/:message?', path: '/console/inboxes' },
    ...{ title: 'Inboxes', page: Inboxes },
  },
  { pattern: '/console/rate-limits', path: '/console/rate-limits', title: 'Rate limits', page: RateLimits },
  { pattern: '/console/keys/:part?/:id?', path: '/console/keys', title: 'Agents and keys', page: Keys },
]
