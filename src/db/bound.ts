// Statements as a role takes them that row-level security binds: each carries the tenant whose rows it may see or change.
//
// The tenant is a setting of the transaction, `waystation.tenant`, which the policies compare (row-security.ts). It is set by
// the statement itself: the OFFSET of a query is computed before its first row is asked for, an update or delete stands in
// a WITH clause that such a query reads, and the values of a new row are computed before it is checked. So it takes no other
// statement and no round trip. It lasts until the next statement, which sets its own, also where statements of several tenants
// share a transaction; the end of the transaction leaves nothing behind on a connection of a pooler.
// A statement without its tenant finds no row, and changes none.

import type { Scope, Statement } from './db.ts'
import { type PostgresDialect, postgresText } from './dialect.ts'

export const tenant_setting = 'waystation.tenant'
export const hash_setting = 'waystation.hash'
/** The value of `tenant_setting` under which all rows are seen. No tenant has this id. */
export const all_tenants = '*'

/** Lets a transaction see all rows as its login, for copies, and for looks at the whole database. */
export const see_all_rows = `set local role none; set local ${tenant_setting} = '${all_tenants}'`

/** No tenant has this id, no look-up this hash, and no row either. */
const nothing = '-'

/** Sets what the policies compare, also against what a statement before has set in this transaction. */
function settingsFor({ scope, params, text }: Statement<unknown>): string[] {
  const place = (name: string) => `$${params.indexOf(name) + 1}`
  const tenants: Record<Scope, () => string> = {
    tenant: () => place('tenant_id'),
    all: () => `'${all_tenants}'`,
    hash: () => `'${nothing}'`,
    none: () => `'${nothing}'`,
  }
  const of_tenant = `set_config('${tenant_setting}', ${tenants[scope]()}, true)`
  if (!/\btenant_lookups\b/.test(text)) return [of_tenant] // the other policies know no hash
  return [
    of_tenant,
    `set_config('${hash_setting}', ${scope === 'hash' ? place('hash') : `'${nothing}'`}, true)`,
  ]
}

/** Up to the tenant of a new row, which `set_config` returns. */
const of_values = /^(insert into \w+\s*\(\s*tenant_id,[^()]*\)\s*values\s*\(\s*)(\$\d+)(?=\s*,)/i

/** The text of a statement with its tenant. */
export function boundText(statement: Statement<unknown>, dialect: PostgresDialect = 'postgres'): string {
  const text = postgresText(statement.text, dialect)
  const { scope, params } = statement
  const set = settingsFor(statement)
  const kind = /^\w+/.exec(text)![0].toLowerCase()
  const offset = `offset (${set.map((one) => `${one} is null`).join(' or ')})::int`
  if (kind === 'select' || kind === 'with') {
    const [, query, lock = ''] = /^(.*?)(\s+for (?:update(?: skip locked)?|share))?$/s.exec(text)!
    return `${query} ${offset}${lock}`
  }
  if (!['insert', 'update', 'delete'].includes(kind)) return text // of the schema
  const [begun, begin, value] = of_values.exec(text) ?? []
  const [only, ...others] = set
  const is_own = scope === 'tenant' && value === `$${params.indexOf('tenant_id') + 1}`
  if (begun !== undefined && is_own && others.length === 0)
    return `${begin}${only}${text.slice(begun.length)}`
  const rows = /\breturning\b/i.test(text) ? text : `${text} returning 1`
  return `with changed as (${rows}) select * from changed ${offset}`
}
