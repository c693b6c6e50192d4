// Statements that read numbered events.

import type { EventRow } from '../contract/event.ts'
import { type Reader, sql } from '../db/db.ts'
import { columns } from './store.ts'

/** Where a look at numbered events begins, and how many it takes. */
export interface Look {
  /** Only events with a higher number. */
  after: number
  rows_max: number
}

const PAGES = {
  log: pageStatement('events_seq', ''),
  workflow: workflowStatement('page_workflow', 'events_private', 'private_to is not null'),
  workflow_of: workflowStatement('page_workflow_of', 'events_private_to', 'private_to = :viewer'),
  subject: pageStatement('events_subject', 'and subject_id = :subject_id'),
  type: pageStatement('events_type', 'and type = :type'),
}

function pageStatement(index: string, condition: string) {
  return sql<EventRow>(
    `journal.page_${index.slice('events_'.length)}`,
    `select ${columns} from events {by ${index}}
      where tenant_id = :tenant_id ${condition} and seq > :after order by seq limit :rows_max`,
  )
}

/** So many public events and so many private ones: in one statement, so that no event comes in between. */
function workflowStatement(name: string, index: string, is_shown: string) {
  const part = (of_index: string, condition: string) =>
    `select ${columns} from events {by ${of_index}}
      where tenant_id = :tenant_id and workflow_id = :workflow_id and ${condition} and seq > :after
      order by seq limit :rows_max`
  return sql<EventRow>(
    `journal.${name}`,
    `select ${columns} from (${part('events_workflow', 'private_to is null')}) as public_events
     union all
     select ${columns} from (${part(index, is_shown)}) as private_events`,
  )
}

/** `viewer`: of a workflow only what this agent may see; null or absent: all. Other filters leave that to the caller. */
interface PageFilter {
  workflow_id?: string
  viewer?: string | null
  subject_id?: string
  type?: string
}

/** Numbered events, oldest first: all, or those that one of the filters names. */
export async function page(
  q: Reader,
  tenant_id: string,
  filter: PageFilter,
  { after, rows_max }: Look,
): Promise<EventRow[]> {
  const look = { tenant_id, after, rows_max }
  const { workflow_id, viewer = null, subject_id, type } = filter
  if (workflow_id !== undefined) {
    const rows = await (viewer === null
      ? q.all(PAGES.workflow, { ...look, workflow_id })
      : q.all(PAGES.workflow_of, { ...look, workflow_id, viewer }))
    return rows.toSorted((one, other) => one.seq - other.seq).slice(0, rows_max)
  }
  if (subject_id !== undefined) return q.all(PAGES.subject, { ...look, subject_id })
  if (type !== undefined) return q.all(PAGES.type, { ...look, type })
  return q.all(PAGES.log, look)
}

const FIND = sql<EventRow>(
  'journal.find',
  `select ${columns} from events {by events_id} where tenant_id = :tenant_id and id = :id and seq is not null`,
)

export function find(q: Reader, tenant_id: string, id: string) {
  return q.one(FIND, { tenant_id, id })
}
