// A database that Citus spreads over several PostgreSQL servers: every table by its tenant, so that what one request reads
// and writes lies on one server. See docs/citus.md.

import { postgres_session } from './connection-settings.ts'
import { type Db, type Reader, type Tx, unnamed } from './db.ts'
import { changeSchema } from './schema-lock.ts'

/** Statements here are told to one engine alone, which has these tables and functions with the extension. */
const EXTENSION = unnamed<{ found: number }>(
  'citus.extension',
  `select count(*) as found from pg_extension where extname = 'citus'`,
)
const DISTRIBUTED = unnamed<{ name: string }>(
  'citus.distributed',
  `select c.relname as name from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
     join pg_namespace n on n.oid = c.relnamespace where n.nspname = current_schema()`,
)
const TABLES = unnamed<{ name: string; has_tenant: boolean }>(
  'citus.tables',
  `select c.relname as name, exists (select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id') as has_tenant
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind = 'r'
    order by c.relname = 'tenants' desc, c.relname`,
)

const DATABASE = unnamed<{ name: string; is_own: boolean }>(
  'citus.database',
  `select datname as name, pg_has_role(datdba, 'usage') as is_own from pg_database where datname = current_database()`,
)
const DATABASE_SETTINGS = unnamed<{ setting: string }>(
  'citus.database_settings',
  `select unnest(s.setconfig) as setting from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
    where d.datname = current_database() and s.setrole = 0`,
)

/** Rows of these are found by another column: a service on the row of a key or token does not know its tenant yet. */
export const other_columns: Record<string, string> = { tenant_lookups: 'value' }

/** True when the tables of the service lie on several servers. */
export async function isDistributed(db: Reader): Promise<boolean> {
  if ((await db.one(EXTENSION, {}))!.found === 0) return false
  return (await distributedTables(db)).has('tenants')
}

async function distributedTables(q: Reader): Promise<Set<string>> {
  return new Set((await q.all(DISTRIBUTED, {})).map(({ name }) => name))
}

/**
 * Distributes every table that is not yet, `tenants` first, and tells every server the settings of a session. Returns the
 * names of the tables that it distributed. Throws when the extension is missing, or settings that the owner alone may set.
 */
export async function distribute(db: Db): Promise<string[]> {
  if (db.engine !== 'postgres') throw new Error('only a PostgreSQL database can be distributed')
  if ((await db.one(EXTENSION, {}))!.found === 0)
    throw new Error('the extension citus is missing: run `create extension citus` on every server')
  const settings = await missingSettings(db)
  await removePolicies(db)
  const known = await distributedTables(db)
  const done: string[] = []
  for (const { name, has_tenant } of await db.all(TABLES, {})) {
    if (known.has(name) || !has_tenant) continue
    if (await changeSchema(db, (tx) => distributeTable(tx, name))) done.push(name)
  }
  for (const text of settings)
    await changeSchema(db, (tx) => Promise.resolve(tx.run(unnamed('citus.set', text), {})))
  return done
}

const SECURED = unnamed<{ name: string; policy: string }>(
  'citus.secured',
  `select c.relname as name, p.polname as policy from pg_policy p join pg_class c on c.oid = p.polrelid
     join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and p.polname in ('waystation_of_tenant', 'waystation_of_owner')`,
)

/** Row-level security that a service prepared before, whose settings and roles the other servers do not know. */
async function removePolicies(db: Db): Promise<void> {
  if ((await db.all(SECURED, {})).length === 0) return
  await changeSchema(db, async (tx) => {
    for (const { name, policy } of await tx.all(SECURED, {})) {
      await tx.run(unnamed('citus.unsecure', `drop policy ${policy} on ${name}`), {})
      const open = `alter table ${name} disable row level security, no force row level security`
      await tx.run(unnamed('citus.unsecure', open), {})
    }
  })
}

/** False when another node has distributed it meanwhile. */
async function distributeTable(tx: Tx, name: string): Promise<boolean> {
  if ((await distributedTables(tx)).has(name)) return false
  await tx.all(distributeStatement(name), {})
  return true
}

function distributeStatement(table: string) {
  const column = other_columns[table] ?? 'tenant_id'
  const beside = table === 'tenants' || column !== 'tenant_id' ? 'none' : 'tenants'
  return unnamed(
    'citus.distribute',
    `select create_distributed_table('${table}', '${column}', colocate_with => '${beside}') as done`,
  )
}

/** How every server is to plan: a worker does not see what the coordinator's connections began with. Time-outs are the coordinator's. */
const planner_settings = Object.entries(postgres_session).filter(
  ([name]) => name.startsWith('enable_') || name === 'jit',
)

/** The statements that set what the database does not have yet. Throws when the login may not run them. */
async function missingSettings(db: Db): Promise<string[]> {
  const set = new Set((await db.all(DATABASE_SETTINGS, {})).map(({ setting }) => setting))
  const missing = planner_settings.filter(([name, value]) => !set.has(`${name}=${value}`))
  const { name: database, is_own } = (await db.one(DATABASE, {}))!
  if (missing.length > 0 && !is_own)
    throw new Error(`only the owner of the database ${database} can set how Citus plans its statements`)
  const quoted = `"${database.replaceAll('"', '""')}"`
  return missing.map(([name, value]) => `alter database ${quoted} set ${name} = '${value}'`)
}
