// The link from a record to the line of its workflow.

import { pathOf } from '../api/address.ts'
import { to } from '../router.ts'
import { Code } from './basics.tsx'

export function workflowPath(workflow_id: string): string {
  return pathOf('/console/workflows', workflow_id)
}

export function WorkflowLink({ id }: { id: string }) {
  return (
    <a href={to(workflowPath(id))}>
      <Code>{id}</Code>
    </a>
  )
}
