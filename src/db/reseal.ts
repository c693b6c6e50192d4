// Seals texts again under another key: the columns that features declare are all that is sealed at rest.

import { limit } from '../base/limit.ts'
import { type Db, type Statement, sql, type Turn, type Value } from './db.ts'

/** A column of sealed texts. */
export interface SealedColumn {
  table: string
  /** True for a table without tenants. */
  of_service?: true
  /** The primary key after tenant_id, and a value before the first of each column. */
  key: readonly (readonly [column: string, before: string | number])[]
  column: string
  /** The context that the text of this row is bound to; null when it is not sealed. */
  context(row: Record<string, Value>): string | null
}

/** With its statements; made once. */
export interface Resealed extends SealedColumn {
  page: Statement<Record<string, Value>>
  update: Statement
}

const rows_max = limit(
  'secrets.resealed_rows',
  200,
  'rows',
  'Rows whose sealed texts one transaction of a rotation of SECRET_KEY writes, so that requests wait for no more than these.',
)

export function resealed(declared: SealedColumn): Resealed {
  const { table, of_service, key, column } = declared
  const names = key.map(([name]) => name)
  const tenant = of_service ? [] : ['tenant_id = :tenant_id']
  const params = names.map((name) => `:${name}`).join(', ')
  const after = names.length === 0 ? [] : [`(${names.join(', ')}) > (${params})`]
  const own = names.map((name) => `${name} = :${name}`)
  const columns = [...(of_service ? [] : ['tenant_id']), ...names]
  return {
    ...declared,
    page: sql(
      `reseal.page_${table}_${column}`,
      `select ${[...columns, `${column} as sealed`].join(', ')} from ${table}
        where ${[...tenant, ...after].join(' and ')}
        order by ${columns.join(', ')} limit :rows_max`,
    ),
    update: sql(
      `reseal.update_${table}_${column}`,
      `update ${table} set ${column} = :sealed
        where ${[...tenant, ...own].join(' and ')} and ${column} = :sealed_before`,
    ),
  }
}

interface Sealer {
  seal(context: string, text: string): string
  open(context: string, sealed: string): string
}

const turn: Turn = { key: 'reseal', ms_max: null }

export interface ResealCounts {
  resealed: number
  /** Contexts of texts that open under neither key. */
  unreadable: string[]
}

/**
 * Everything of these tenants, and of the service, that opens under `from` and not under `to`. A text that changes meanwhile stays as
 * it is.
 */
export async function reseal(
  db: Db,
  columns: readonly Resealed[],
  tenant_ids: readonly string[],
  sealers: { to: Sealer; from: Sealer },
): Promise<ResealCounts> {
  const counts: ResealCounts = { resealed: 0, unreadable: [] }
  for (const column of columns) {
    if (column.of_service) await resealColumn(db, column, {}, { ...sealers, counts })
    else
      for (const tenant_id of tenant_ids)
        await resealColumn(db, column, { tenant_id }, { ...sealers, counts })
  }
  return counts
}

async function resealColumn(
  db: Db,
  column: Resealed,
  owner: { tenant_id?: string },
  { counts, ...sealers }: { to: Sealer; from: Sealer; counts: ResealCounts },
): Promise<void> {
  let after: Record<string, Value> = Object.fromEntries(column.key)
  for (;;) {
    const rows = await db.all(column.page, { ...owner, ...after, rows_max })
    const again = rows.flatMap((row) => sealedAgain(column, row, sealers, counts))
    if (again.length > 0)
      counts.resealed += await db.write(turn, async (tx) => {
        let changed = 0
        for (const params of again) changed += await tx.run(column.update, params)
        return changed
      })
    const last = rows.at(-1)
    if (!last || rows.length < rows_max || column.key.length === 0) return
    after = Object.fromEntries(column.key.map(([name]) => [name, last[name]!]))
  }
}

/** The parameters of its update; none when it needs none. */
function sealedAgain(
  { key, of_service, context }: Resealed,
  row: Record<string, Value>,
  { to, from }: { to: Sealer; from: Sealer },
  counts: ResealCounts,
): Record<string, Value>[] {
  const bound = context(row)
  const sealed_before = row.sealed
  if (bound === null || typeof sealed_before !== 'string' || opened(to, bound, sealed_before) !== null)
    return []
  const text = opened(from, bound, sealed_before)
  if (text === null) {
    counts.unreadable.push(bound)
    return []
  }
  const names = key.map(([name]) => [name, row[name]!] as const)
  const owner = of_service ? {} : { tenant_id: row.tenant_id! }
  return [{ ...owner, ...Object.fromEntries(names), sealed_before, sealed: to.seal(bound, text) }]
}

/** Null when it was sealed under another key. */
function opened(sealer: Sealer, context: string, sealed: string): string | null {
  try {
    return sealer.open(context, sealed)
  } catch {
    return null
  }
}
