// Lists of effects, newest first, without payloads and results.

import { newestFirst } from '../base/ids.ts'
import { looked_max, type PageOfIds } from '../contract/page.ts'
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

/** The condition of the index by status, literally: neither engine concludes it from the value of a parameter. */
export const in_status_index = "status <> 'succeeded'"

const LIST = {
  all: list('list', { index: null, order: 'id desc', where: 'tenant_id = :tenant_id and id < :before_id' }),
  status: list('list_status', newestWith('effects_status', ['status'], in_status_index)),
  type: list('list_type', newestWith('effects_type', ['type'])),
  workflow: list('list_workflow', newestWith('effects_workflow', ['workflow_id'], 'workflow_id is not null')),
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
 * `rows_max` at most, and none after the first that takes them to `bytes_max`. With more than one filter, and with the status of
 * those that are not indexed by it, they are chosen from the next `looked_max`: `reached` is the last that was looked at when there
 * may be more.
 */
export async function newest(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  { rows_max, ...page }: PageOfIds,
): Promise<{ rows: Listed[]; reached: string | null }> {
  const by = leading(filter)
  const chooses = Object.entries(filter).some(([name, value]) => value !== undefined && name !== leads[by])
  const looked = { ...page, rows_max: chooses ? looked_max : rows_max }
  const { status = '', type = '', workflow_id = '' } = filter
  const found = (await q.all(LIST[by], { tenant_id, status, type, workflow_id, ...looked })).sort(newestFirst)
  if (!chooses) return { rows: found, reached: null }
  const rows = found.filter((row) => matches(row, filter)).slice(0, rows_max)
  return { rows, reached: isFull(found, looked.rows_max, page.bytes_max) ? found.at(-1)!.id : null }
}

const leads = { all: null, status: 'status', type: 'type', workflow: 'workflow_id' } as const

/** The index to walk: of a workflow there are few, and of those that did not succeed fewer than of a type. */
function leading({ status, type, workflow_id }: Filter): keyof typeof LIST {
  if (workflow_id !== undefined) return 'workflow'
  if (status !== undefined && status !== 'succeeded') return 'status'
  return type === undefined ? 'all' : 'type'
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
