// Every page of the console, in the order of the navigation. A new page is a folder and a line here.

import type { JSX } from 'preact'
import { Approvals } from './approvals/list.tsx'
import { Audit } from './audit/list.tsx'
import { DeadLetters } from './dead-letters/list.tsx'
import { Effects } from './effects/list.tsx'
import { Inboxes } from './inboxes/list.tsx'
import { Keys } from './keys/keys.tsx'
import { KeyValues } from './kv/list.tsx'
import { Overview } from './overview/overview.tsx'
import { RateLimits } from './rate-limits/list.tsx'
import { Schedules } from './schedules/list.tsx'
import { Subscriptions } from './subscriptions/list.tsx'
import { Workflows } from './workflows/list.tsx'

export interface PageEntry {
  title: string
  /** As in match(): `/console/dlq/:id?`. The navigation leads to the part before the parameters. */
  pattern: string
  /** Rendered with the parameters of the path. */
  page: (props: { params: Record<string, string> }) => JSX.Element
}

export const pages: readonly PageEntry[] = [
  { title: 'Overview', pattern: '/console', page: Overview },
  { title: 'Workflows', pattern: '/console/workflows/:id?', page: Workflows },
  { title: 'Approvals', pattern: '/console/approvals/:id?', page: Approvals },
  { title: 'Effects', pattern: '/console/effects/:id?', page: Effects },
  { title: 'Schedules', pattern: '/console/schedules/:id?', page: Schedules },
  { title: 'Dead letters', pattern: '/console/dlq/:id?', page: DeadLetters },
  { title: 'Audit', pattern: '/console/audit/:id?', page: Audit },
  { title: 'KV', pattern: '/console/kv/:namespace?/:key?', page: KeyValues },
  { title: 'Inboxes', pattern: '/console/inboxes/:id?/:message?', page: Inboxes },
  { title: 'Rate limits', pattern: '/console/rate-limits', page: RateLimits },
  { title: 'Subscriptions', pattern: '/console/subscriptions/:id?', page: Subscriptions },
  { title: 'Agents and keys', pattern: '/console/keys/:part?/:id?', page: Keys },
]
