// The events of a tenant in the journal, with or without numbers.

import { rowsOf } from './job-bench.ts'
import type { TestService } from './service.ts'

export interface Left {
  type: string
  /** `<kind> <id>` */
  subject: string
  workflow_id: string | null
  actor: string
  agent_id: string | null
  request_id: string | null
  data: Record<string, unknown>
}

type Row = Omit<Left, 'subject' | 'data'> & { subject_kind: string; subject_id: string; data: string }

/** In the order of the changes, those about this kind of subject. */
export async function eventsOf(service: TestService, tenant_id: string, ...kinds: string[]): Promise<Left[]> {
  const rows = await rowsOf<Row>(
    service.app.db,
    `select type, subject_kind, subject_id, workflow_id, actor, agent_id, request_id, data
       from events where tenant_id = '${tenant_id}' order by position`,
  )
  return rows
    .filter(({ subject_kind }) => kinds.length === 0 || kinds.includes(subject_kind))
    .map(({ subject_kind, subject_id, data, ...row }) => ({
      ...row,
      subject: `${subject_kind} ${subject_id}`,
      data: JSON.parse(data),
    }))
}

/** By how much the events of a tenant change what each of its workflows waits for. */
export async function waitingOf(service: TestService, tenant_id: string): Promise<Record<string, number>> {
  const rows = await rowsOf<{ workflow_id: string; waiting: number }>(
    service.app.db,
    `select workflow_id, waiting from events where tenant_id = '${tenant_id}' and workflow_id is not null order by position`,
  )
  const sums: Record<string, number> = {}
  for (const { workflow_id, waiting } of rows) sums[workflow_id] = (sums[workflow_id] ?? 0) + waiting
  return sums
}
