// Statements that have lost their conditions on the tenant, planted under a service on PostgreSQL.

import type { SQL } from 'bun'
import type { Statement } from '../../src/db/db.ts'
import { Queries } from '../../src/db/postgres-queries.ts'

/** The statement without its conditions on the tenant. Its parameters stay, with the types that they had. */
export function withoutTenant<Row>(statement: Statement<Row>): Statement<Row> {
  const place = statement.params.indexOf('tenant_id') + 1
  if (place === 0) return statement
  const any = `cast($${place} as text) is not null`
  const text = statement.text
    .replace(new RegExp(`\\b(\\w+\\.)?tenant_id\\s*(=|>=|<=)\\s*\\$${place}\\b`, 'g'), () => any)
    .replace(
      /\(tenant_id, ([\w, ]+)\)(\s*(?:=|<=?|>=?)\s*)\((\$\d+), ([^()]+)\)/g,
      (whole, columns, sign, first, rest) =>
        first === `$${place}` ? `(${any} and (${columns})${sign}(${rest}))` : whole,
    )
  return text === statement.text ? statement : { ...statement, text }
}

const mutants = new WeakMap<Statement<unknown>, Statement<unknown>>()

function mutantOf(statement: Statement<unknown>): Statement<unknown> {
  const known = mutants.get(statement) ?? withoutTenant(statement)
  mutants.set(statement, known)
  return known
}

type Query = (this: Queries, statement: Statement<unknown>, params: never) => Promise<unknown>
const prototype = Queries.prototype as unknown as { query: Query }
const honest = prototype.query

/** Each table with a tenant. */
export const tables = `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1`

/** Swaps every statement for its mutant, while `isPlanted` says so. Returns what ends it. */
export function plant(isPlanted: () => boolean): () => void {
  prototype.query = function (statement, params) {
    return honest.call(this, isPlanted() ? mutantOf(statement) : statement, params)
  }
  return () => {
    prototype.query = honest
  }
}

/** The rows of a tenant in every table. */
export async function rowsOf(all: SQL, tenant_id: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const { name } of await all.unsafe(tables)) {
    const rows = await all.unsafe(`select t::text as row from ${name} t where tenant_id = $1 order by 1`, [
      tenant_id,
    ])
    found[name] = rows.map(({ row }: { row: string }) => row)
  }
  return found
}
