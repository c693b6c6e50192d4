// Every page of the console, in the order of the navigation. A new page is a file in pages/ and a line here.

import type { JSX } from 'preact'
import { Approvals } from './pages/approvals.tsx'
import { Overview } from './pages/overview.tsx'

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
]
