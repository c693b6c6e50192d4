// Statements that list inboxes.

import type { Millis } from '../base/clock.ts'
import { newestFirst, past_all_ids } from '../base/ids.ts'
import { newestWith } from '../db/chunk.ts'
import { type Reader, sql } from '../db/db.ts'
import { type InboxRow, total_max } from './inbox.ts'
import { columns } from './store.ts'

const live = 'counted = 1 and deleted = 0 and expires_at > :now'
const LIST = listStatement('list', {
  ...{ index: 'inboxes_live', where: `tenant_id = :tenant_id and ${live}`, order: 'id desc' },
})

const in_workflow = newestWith('inboxes_workflow', ['workflow_id'], `${live} and workflow_id is not null`)
const LIST_WORKFLOW = listStatement('list_workflow', in_workflow)
const COUNT_WORKFLOW = sql<{ total: number }>(
  'inbox.count_workflow',
  `select count(*) as total
     from (select id from inboxes {by inboxes_workflow} where ${in_workflow.where}
            order by ${in_workflow.order} limit :total_max) as live_inboxes`,
)

function listStatement(
  name: string,
  { index, where, order }: { index: string; where: string; order: string },
) {
  return sql<InboxRow>(
    `inbox.${name}`,
    `select ${columns}
     from (select tenant_id, id, token, label, forward_url, workflow_id, last_seq, expires_at, created_at,
                  row_number() over (order by id desc) as place
             from (select * from inboxes {by ${index}} where ${where}
                    order by ${order} limit :last_place) as live_inboxes) as shown
    where place > :skipped`,
  )
}

/** The part of a list that is asked for. */
export interface Listed {
  /** Undefined: of any, and of none. */
  workflow_id: string | undefined
  skipped: number
  rows_max: number
}

/** Newest first, expired ones left out. */
export async function list(
  q: Reader,
  tenant_id: string,
  now: Millis,
  { workflow_id, skipped, rows_max }: Listed,
) {
  const place = { tenant_id, now, skipped, last_place: skipped + rows_max }
  const rows =
    workflow_id === undefined
      ? await q.all(LIST, place)
      : await q.all(LIST_WORKFLOW, { ...place, workflow_id, before_id: past_all_ids })
  return rows.sort(newestFirst)
}

/** Those of a workflow that have not expired, `total_max` at most. */
export async function countWorkflow(
  q: Reader,
  tenant_id: string,
  now: Millis,
  workflow_id: string,
): Promise<number> {
  const params = { tenant_id, now, workflow_id, before_id: past_all_ids, total_max }
  return (await q.one(COUNT_WORKFLOW, params))!.total
}
