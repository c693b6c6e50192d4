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
  status: list('list_status', newestWith('effects_status', ['status'])),
  type: list('list_type', newestWith('effects_type', ['type'])),
  type_status: list('list_type_status', newestWith('effects_type_status', ['type', 'status'])),
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

/**
 * `rows_max` at most, and none after the first that takes them to `bytes_max`. Those of a type in a workflow are chosen from
 * as many: `reached` is the last that was looked at when there may be more.
 */
export async function newest(
  q: Reader,
  tenant_id: string,
  { status, type, workflow_id }: Filter,
  page: PageOfIds,
): Promise<{ rows: Listed[]; reached: string | null }> {
  const by = workflow_id !== undefined ? 'workflow' : type !== undefined ? 'type' : null
  const name =
    by === null
      ? status === undefined
        ? 'all'
        : 'status'
      : status === undefined
        ? by
        : (`${by}_status` as const)
  const given = { status: status ?? '', type: type ?? '', workflow_id: workflow_id ?? '' }
  const found = (await q.all(LIST[name], { tenant_id, ...given, ...page })).sort(newestFirst)
  if (by !== 'workflow' || type === undefined) return { rows: found, reached: null }
  const is_full = isFull(found, page.rows_max, page.bytes_max)
  return { rows: found.filter((row) => row.type === type), reached: is_full ? found.at(-1)!.id : null }
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
