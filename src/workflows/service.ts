// Lists of workflows, by their latest activity or by the beginning of their ids, and one with its events.

import { beginOf, type TextRange } from '../base/text-range.ts'
import type { AdminCaller, AgentCaller } from '../contract/caller.ts'
import type { EventRow } from '../contract/event.ts'
import { looked_max } from '../contract/page.ts'
import type { Reader } from '../db/db.ts'
import * as journal from '../journal/service.ts'
import type { WorkflowRow } from './store.ts'
import * as store from './store.ts'
import { isIn, type Status } from './workflow.ts'

export interface Listed {
  rows: WorkflowRow[]
  /** The last workflow that was looked at when too few matched to fill the page; null at the end. */
  reached: WorkflowRow | null
}

/** The latest activity first; `before_seq` is where the page before ended. */
export async function listLatest(
  q: Reader,
  tenant_id: string,
  status: Status | undefined,
  before_seq: number,
  rows_max: number,
): Promise<Listed> {
  if (status !== 'idle') {
    const rows = await store.listLatest(q, tenant_id, status ?? 'all', before_seq, rows_max)
    return { rows, reached: null }
  }
  const looked = await store.listLatest(q, tenant_id, 'all', before_seq, looked_max)
  return matching(looked, (row) => isIn(row, status), rows_max)
}

/** Those whose ids begin so, in the order of their ids after the last of the page before. */
export async function listByPrefix(
  q: Reader,
  tenant_id: string,
  range: TextRange,
  status: Status | undefined,
  rows_max: number,
): Promise<Listed> {
  const looks = status === undefined ? rows_max : looked_max
  const rows = await store.listById(q, tenant_id, beginOf(range), looks)
  const end = rows.findIndex((row) => !row.workflow_id.startsWith(range.prefix))
  if (end !== -1) return matching(rows.slice(0, end), (row) => isIn(row, status), rows_max, true)
  return matching(rows, (row) => isIn(row, status), rows_max, rows.length < looks)
}

/** `whole`: nothing follows the rows that were looked at. */
function matching(
  looked: WorkflowRow[],
  matches: (row: WorkflowRow) => boolean,
  rows_max: number,
  whole = looked.length < looked_max,
): Listed {
  const rows = looked.filter(matches).slice(0, rows_max)
  return { rows, reached: whole || rows.length === rows_max ? null : looked.at(-1)! }
}

export interface Timeline {
  workflow: WorkflowRow
  /** Oldest first, those alone that the caller may see. */
  events: EventRow[]
  next_after: number
  more: boolean
}

/** Null when no event of it is there for the caller. */
export async function read(
  q: Reader,
  caller: AdminCaller | AgentCaller,
  workflow_id: string,
  { after, rows_max }: { after: number; rows_max: number },
): Promise<Timeline | null> {
  const { tenant_id } = caller
  const wanted = { workflow_id, viewer: caller.kind === 'admin' ? null : caller.agent_id }
  const looked = await journal.page(q, tenant_id, wanted, { after, rows_max: rows_max + 1 })
  const events = looked.slice(0, rows_max)
  const oldest = () => journal.page(q, tenant_id, wanted, { after: 0, rows_max: 1 })
  const workflow =
    (await store.find(q, tenant_id, workflow_id)) ?? ofPrivate(workflow_id, [...(await oldest()), ...events])
  const next_after = events.at(-1)?.seq ?? after
  return workflow && { workflow, events, next_after, more: looked.length > rows_max }
}

/** Private events are not counted: a workflow of such alone is that of those that the caller sees. */
function ofPrivate(workflow_id: string, events: readonly EventRow[]): WorkflowRow | null {
  const [first, last] = [events[0], events.at(-1)]
  if (!first || !last) return null
  const { at: last_at, seq: last_seq, type: last_type } = last
  return { workflow_id, events: 0, waiting: 0, failing: 0, first_at: first.at, last_at, last_seq, last_type }
}
