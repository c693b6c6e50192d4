// The link from a record to the line of its workflow.

import { pathOf } from '../api/address.ts'
import { to } from '../router.ts'
import { Code } from './basics.tsx'

export function workflowHref(id: string): string {
  return isDots(id) ? to('/console/workflows', { id }) : to(pathOf('/console/workflows', id))
}

/** Browsers resolve such a part of a path, encoded or not: it cannot name a record. */
export function isDots(id: string): boolean {
  return id === '.' || id === '..'
}

export function WorkflowLink({ id }: { id: string }) {
  return (
    <a href={workflowHref(id)}>
      <Code>{id}</Code>
    </a>
  )
}

/** For the facts of a record: null when it belongs to no workflow. */
export function workflowOf(id: string | null) {
  return id === null ? null : <WorkflowLink id={id} />
}
