// The thing that an event of a checkpoint is about.

import { type Cause, service_cause } from '../contract/event.ts'
import type { CheckpointRow } from './checkpoint.ts'

export function aboutOf(
  tenant_id: string,
  { id: subject_id, workflow_id }: Pick<CheckpointRow, 'id' | 'workflow_id'>,
  cause: Cause = service_cause,
) {
  return { tenant_id, cause, subject_id, workflow_id }
}
