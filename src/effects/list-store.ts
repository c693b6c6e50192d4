// Lists of effects, newest first, without payloads and results.

import { newestFirst } from '../base/ids.ts'
import { looked_max, type PageOfIds } from '../contract/page.ts'
import { bytesOf, inChunk, newestWith } from '../db/chunk.ts'
import { of_shard, type Reader, type Statement, sql } from '../db/db.ts'
import { bytesOf as sumOfBytes } from '../db/stored.ts'
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

const OF_KEY = list('list_key', {
  ...{ index: 'effects_pair', order: 'tenant_id, key, type' },
  where: `${of_shard} (tenant_id, key, type) > (:tenant_id, :key, :after) and (tenant_id, key) <= (:tenant_id, :key)`,
})

const OF_PAIR = sql<Listed>(
  'effects.list_pair',
  `select ${listed_columns}, ${bytesOf(texts)} as bytes from effects {by effects_pair}
    where tenant_id = :tenant_id and key = :key and type = :type`,
)

export interface Filter {
  status?: EffectStatus
  type?: string
  workflow_id?: string
}

/**
 * A page of at most `rows_max` rows, and none after the first that takes them to `bytes_max`. With a filter that the index does not
 * choose by, pieces of that size are read and filtered until the page is full or `looked_max` rows were read: `reached` is the last
 * of them when there may be more.
 */
export async function newest(
  q: Reader,
  tenant_id: string,
  filter: Filter,
  { before_id, ...size }: PageOfIds,
): Promise<{ rows: Listed[]; reached: string | null }> {
  const by = leading(filter)
  const { status = '', type = '', workflow_id = '' } = filter
  const piece = async (before_id: string) => {
    const given = { tenant_id, status, type, workflow_id, before_id, ...size }
    return (await q.all(LIST[by], given)).sort(newestFirst)
  }
  if (!choosesBeside(by, filter)) return { rows: await piece(before_id), reached: null }
  const rows: Listed[] = []
  for (let reached = before_id, looked = 0, bytes = 0; ; ) {
    const found = await piece(reached)
    rows.push(...found.filter((row) => matches(row, filter)))
    looked += found.length
    bytes += sumOfBytes(found)
    if (!isFull(found, size)) return { rows, reached: null }
    reached = found.at(-1)!.id
    const is_over = rows.length >= size.rows_max || looked >= looked_max || bytes >= size.bytes_max
    if (is_over) return { rows, reached }
  }
}

const leads = { all: null, status: 'status', type: 'type', workflow: 'workflow_id' } as const

/** True when there is a filter that the index does not choose by. */
function choosesBeside(by: keyof typeof LIST, filter: Filter): boolean {
  return Object.entries(filter).some(([name, value]) => value !== undefined && name !== leads[by])
}

/** The index to walk, the most selective first: a workflow has few effects, and fewer are open or failed than have a type. */
function leading({ status, type, workflow_id }: Filter): keyof typeof LIST {
  if (workflow_id !== undefined) return 'workflow'
  if (status !== undefined && status !== 'succeeded') return 'status'
  return type === undefined ? 'all' : 'type'
}

/**
 * Those of a key, by type, after this one; with a type the one of the pair. `reached` is the last that was looked at when there
 * may be more.
 */
export async function ofKey(
  q: Reader,
  tenant_id: string,
  { key, ...filter }: Filter & { key: string },
  { after, ...size }: { after: string } & Size,
): Promise<{ rows: Listed[]; reached: string | null }> {
  const { type } = filter
  if (type !== undefined) {
    const pair = type > after ? await q.all(OF_PAIR, { tenant_id, key, type }) : []
    return { rows: pair.filter((row) => matches(row, filter)), reached: null }
  }
  const found = await q.all(OF_KEY, { tenant_id, key, after, ...size })
  found.sort((a, b) => (a.type < b.type ? -1 : 1))
  const rows = found.filter((row) => matches(row, filter))
  return { rows, reached: isFull(found, size) ? found.at(-1)!.type : null }
}

function matches(row: Listed, { status, type, workflow_id }: Filter): boolean {
  const { status: own_status, type: own_type, workflow_id: own_workflow } = row
  if (status !== undefined && status !== own_status) return false
  if (type !== undefined && type !== own_type) return false
  return workflow_id === undefined || workflow_id === own_workflow
}

type Size = Pick<PageOfIds, 'rows_max' | 'bytes_max'>

function isFull(rows: readonly Listed[], { rows_max, bytes_max }: Size): boolean {
  return rows.length === rows_max || sumOfBytes(rows) >= bytes_max
}
