// Lists of a tenant's rows, newest first: all of them, those of one status, of one workflow, or of both.

import { newestFirst } from '../base/ids.ts'
import { bytesOf, inChunk, newestWith } from './chunk.ts'
import { type Reader, type Statement, sql } from './db.ts'

interface Listed {
  /** With the indexes `<table>_status`, `<table>_workflow` and `<table>_workflow_status`. */
  table: string
  columns: string
  /** The columns that may be large. */
  texts: readonly string[]
  /** The condition of the indexes by workflow. */
  has_workflow: string
}

export interface NewestFilters<Status> {
  status?: Status
  workflow_id?: string
}

interface PageOfNewest {
  rows_max: number
  bytes_max: number
  before_id: string
}

/** A list of `rows_max` rows at most, and none after the first that takes them to `bytes_max`. */
export function newestLists<Row extends { id: string }, Status extends string>(listed: Listed) {
  const { table, has_workflow: only } = listed
  const in_all = { index: null, order: 'id desc', where: 'tenant_id = :tenant_id and id < :before_id' }
  const all = list<Row>(listed, 'list', in_all)
  const of_status = list<Row>(listed, 'list_status', newestWith(`${table}_status`, ['status']))
  const in_workflow = newestWith(`${table}_workflow`, ['workflow_id'], only)
  const in_both = newestWith(`${table}_workflow_status`, ['workflow_id', 'status'], only)
  const of_workflow = list<Row>(listed, 'list_workflow', in_workflow)
  const of_both = list<Row>(listed, 'list_workflow_status', in_both)

  return async (q: Reader, tenant_id: string, filters: NewestFilters<Status>, page: PageOfNewest) => {
    const { status, workflow_id } = filters
    const any_status = status === undefined
    const any_workflow = workflow_id === undefined
    const statement = any_workflow ? (any_status ? all : of_status) : any_status ? of_workflow : of_both
    const given = { status: status ?? null, workflow_id: workflow_id ?? null }
    const rows = await q.all(statement, { tenant_id, ...given, ...page })
    return rows.sort(newestFirst)
  }
}

type Scan = Pick<Parameters<typeof inChunk>[0], 'index' | 'order' | 'where'>

function list<Row>({ table, columns, texts }: Listed, name: string, scan: Scan): Sized<Row> {
  return sql<Row & { bytes: number }>(
    `${table}.${name}`,
    `select ${columns}, ${bytesOf(texts)} as bytes from ${table} where ${inChunk({
      ...{ table, key: 'tenant_id, id', only_read: true, texts, ...scan },
    })}`,
  )
}

type Sized<Row> = Statement<Row & { bytes: number }>
