// Lists of effects, newest first, without payloads and results.

import { newestFirst } from '../base/ids.ts'
import type { PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk, newestWith } from '../db/chunk.ts'
import { of_shard, type Reader, type Statement, sql } from '../db/db.ts'
import type { EffectRow, EffectStatus } from './effect.ts'
import { listed_columns } from './store.ts'

type Listed = EffectRow & { bytes: number }

const texts = ['note', 'error', 'key', 'workflow_id']

function list(name: string, scan: { index: string | null; order: string; where: string }): Statement<Listed> {
  return sql(
    `effects.${name}`,
    `select ${listed_columns}, ${bytesOf(texts)} as bytes from effects where ${inChunk({
      ...{ table: 'effects', key: 'tenant_id, id', only_read: true, texts },
      ...scan,
    })}`,
  )
}

const has_workflow = 'workflow_id is not null'
const LIST = {
  all: list('list', { index: null, order: 'id desc', where: 'tenant_id = :tenant_id and id < :before_id' }),
  running: list('list_running', newestWith('effects_running', [], "status = 'running'")),
  status: list('list_status', newestWith('effects_status', ['status'], "status <> 'running'")),
  type: list('list_type', newestWith('effects_type', ['type'])),
  type_status: list(
    'list_type_status',
    newestWith('effects_type_status', ['type', 'status'], "status not in ('running', 'succeeded')"),
  ),
  workflow: list('list_workflow', newestWith('effects_workflow', ['workflow_id'], has_workflow)),
  workflow_status: list(
    'list_workflow_status',
    newestWith('effects_workflow_status', ['workflow_id', 'status'], has_workflow),
  ),
}

const OF_KEY = sql<Listed>(
  'effects.list_key',
  `select ${listed_columns}, ${bytesOf(texts)} as bytes from effects where ${inChunk({
    ...{ table: 'effects', key: 'tenant_id, id', only_read: true, texts },
    ...{ index: 'effects_pair', order: 'tenant_id, key, type' },
    where: `${of_shard} (tenant_id, key, type) > (:tenant_id, :key, :after) and (tenant_id, key) <= (:tenant_id, :key)`,
  })}`,
)

export interface Filter {
  status?: EffectStatus
  type?: string
  workflow_id?: string
}

/** The list that is walked for a filter. What else the filter asks for is chosen from it. */
function listFor({ status, type, workflow_id }: Filter): keyof typeof LIST {
  if (workflow_id !== undefined) return status === undefined ? 'workflow' : 'workflow_status'
  if (status === 'running') return 'running'
  if (type === undefined) return status === undefined ? 'all' : 'status'
  return status === undefined || status === 'succeeded' ? 'type' : 'type_status'
}

/**
 * `rows_max` at most, and none after the first that takes them to `bytes_max`. Of a type, those in a workflow, those that run and
 * those that have succeeded are chosen from as many: `reached` is the last that was looked at when there may be more.
 */
export async function newest(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  page: PageOfIds,
): Promise<{ rows: Listed[]; reached: string | null }> {
  const { status = '', type = '', workflow_id = '' } = filter
  const given = { status, type, workflow_id }
  const found = (await q.all(LIST[listFor(filter)], { tenant_id, ...given, ...page })).sort(newestFirst)
  const rows = found.filter((row) => matches(row, filter))
  if (rows.length === found.length) return { rows, reached: null }
  return { rows, reached: isFull(found, page.rows_max, page.bytes_max) ? found.at(-1)!.id : null }
}

/** Those of a key, by type, after this one. `reached` is the last that was looked at when there may be more. */
export async function ofKey(
  q: Reader,
  tenant_id: string,
  { key, ...filter }: Filter & { key: string },
  { after, rows_max, bytes_max }: { after: string; rows_max: number; bytes_max: number },
): Promise<{ rows: Listed[]; reached: string | null }> {
  const found = await q.all(OF_KEY, { tenant_id, key, after, rows_max, bytes_max })
  found.sort((a, b) => (a.type < b.type ? -1 : 1))
  const rows = found.filter((row) => matches(row, filter))
  return { rows, reached: isFull(found, rows_max, bytes_max) ? found.at(-1)!.type : null }
}

function matches(row: Listed, { status, type, workflow_id }: Filter): boolean {
  const { status: own_status, type: own_type, workflow_id: own_workflow } = row
  if (status !== undefined && status !== own_status) return false
  if (type !== undefined && type !== own_type) return false
  return workflow_id === undefined || workflow_id === own_workflow
}

function isFull(rows: readonly Listed[], rows_max: number, bytes_max: number): boolean {
  return rows.length === rows_max || rows.reduce((sum, { bytes }) => sum + bytes, 0) >= bytes_max
}
