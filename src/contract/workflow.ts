// The workflow that a record belongs to: `workflow_id` in bodies, in answers and in the filters of lists.

import { Type } from 'typebox'
import type { Requested } from './caller.ts'
import { label_characters_max, Nullable, Text } from './schemas.ts'

export const WorkflowId = Text(
  label_characters_max,
  'Ties together what belongs to one piece of work; default that of X-Workflow-Id; empty for none.',
)

/** In answers. */
export const ShownWorkflowId = Nullable(Type.String({ description: 'Null when it belongs to none.' }))

/** Of a list. */
export const WorkflowFilter = Type.Optional(Type.String({ description: 'Only those of this workflow.' }))

/** The workflow of what a call creates: that of the body, or the one that the caller works in. Null: none. */
export function workflowOf(given: string | undefined, caller: Pick<Requested, 'workflow_id'>): string | null {
  return (given ?? caller.workflow_id) || null
}

/** The caller without the workflow of X-Workflow-Id where the body says that it is none: events take that of the cause. */
export function callerFor<C extends Pick<Requested, 'workflow_id'>>(caller: C, given: string | undefined): C {
  return given === '' ? { ...caller, workflow_id: null } : caller
}
