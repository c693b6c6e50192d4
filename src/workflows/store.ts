// Statements on workflows, which the journal keeps while it numbers events.

import type { Millis } from '../base/clock.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'

export interface WorkflowRow {
  workflow_id: string
  events: number
  waiting: number
  failing: number
  first_at: Millis
  last_at: Millis
  last_seq: number
  last_type: string
}

/** Some of its events are kept, or something in it is open. Indexes of lists say the same. */
const listed = '(events > gone or waiting > 0 or failing > 0)'

const columns = 'workflow_id, events, waiting, failing, first_at, last_at, last_seq, last_type'

const FIND = sql<WorkflowRow>(
  'workflows.find',
  `select ${columns} from workflows where tenant_id = :tenant_id and workflow_id = :workflow_id and ${listed}`,
)

/** `open`: those in which something waits, or failed, have an index of their own. */
function latest(name: string, index: string, open: string): Statement<WorkflowRow> {
  return sql(
    `workflows.${name}`,
    `select ${columns} from workflows {by ${index}}
      where tenant_id = :tenant_id and last_seq < :before_seq ${open}
      order by last_seq desc limit :rows_max`,
  )
}

const LATEST = {
  all: latest('list_latest', 'workflows_newest', `and ${listed}`),
  waiting: latest('list_waiting', 'workflows_waiting', 'and waiting > 0'),
  failed: latest('list_failed', 'workflows_failed', 'and failing > 0'),
}

const BY_ID = sql<WorkflowRow>(
  'workflows.list_from',
  `select ${columns} from workflows {by workflows_listed}
    where tenant_id = :tenant_id and workflow_id >= :workflow_id and ${listed}
    order by workflow_id limit :rows_max`,
)

export function find(q: Reader, tenant_id: string, workflow_id: string) {
  return q.one(FIND, { tenant_id, workflow_id })
}

/** The latest activity first. */
export function listLatest(
  q: Reader,
  tenant_id: string,
  of: keyof typeof LATEST,
  before_seq: number,
  rows_max: number,
) {
  return q.all(LATEST[of], { tenant_id, before_seq, rows_max })
}

/** In the bytewise order of their ids, from this one on. */
export function listById(q: Reader, tenant_id: string, workflow_id: string, rows_max: number) {
  return q.all(BY_ID, { tenant_id, workflow_id, rows_max })
}
