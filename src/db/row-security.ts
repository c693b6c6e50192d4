// Row-level security of PostgreSQL: behind the conditions of the statements, the database itself shows a role without
// ownership the rows of one tenant alone. bound.ts says how a statement names it; docs/row-level-security.md has the SQL.

import { limit } from '../base/limit.ts'
import { all_tenants, hash_setting, tenant_setting } from './bound.ts'
import { type Db, type Reader, type Tx, unnamed } from './db.ts'
import { isDistributed, other_columns } from './distributed.ts'
import { changeSchema, isLocked, type Tries } from './schema-lock.ts'

/** `off`: the reason, a sentence without its first capital and its full stop. `is_late`: a table was in use; another try may find it free. */
export type RowSecurity = { role: string } | { off: string; is_late: boolean }

/** A start waits no longer for a table in use: 2 s, in most of which others have it. */
const tries: Tries = {
  tries_max: limit(
    'row_security.tries',
    5,
    'attempts',
    'How often a start tries to prepare a table in use for row-level security. Past it the service works without it, and tries again every ten seconds.',
  ),
  pause_ms: 300,
}

/** The login of the service, when another one prepares the tables; otherwise null. */
export function loginOf(urls: { database_url: string; database_owner_url: string }): string | null {
  if (urls.database_url === urls.database_owner_url) return null
  return decodeURIComponent(new URL(urls.database_url).username) || null
}

interface Facts {
  /** The role that this connection logged in as. */
  login: string
  may_create: boolean
  exists: boolean
  /** A superuser, or a role that bypasses row-level security. */
  bypasses: boolean
  /** A role is the whole server's: true when another login than these two has it, or is it. */
  is_of_others: boolean
  /** Null when the login may use none of those in its search_path. */
  schema_name: string | null
  may_use_schema: boolean
}

interface Table {
  name: string
  owner: string
  has_tenant: boolean
  is_forced: boolean
  /** JSON of its policies. */
  policies: string
  may_use: boolean
  /** Those of its columns, which the role may not read; null for none. Dumps read them. */
  closed_sequences: string | null
  /** The role has what its owner has. */
  is_owned: boolean
}

interface Policy {
  name: string
  roles: string[]
  is_for_all: boolean
  /** As PostgreSQL writes them. */
  seen: string | null
  made: string | null
}

const FACTS = unnamed<Facts>(
  'row_security.facts',
  `select session_user as login, own.rolsuper or own.rolcreaterole as may_create, role.oid is not null as exists,
          coalesce(role.rolsuper or role.rolbypassrls, false) as bypasses, current_schema() as schema_name,
          coalesce(role.rolcanlogin and role.rolname not in (session_user, cast(:login as name)), false)
            or exists (select 1 from pg_auth_members m join pg_roles r on r.oid = m.member
                        where m.roleid = role.oid and r.rolname not in (session_user, cast(:login as name))) as is_of_others,
          coalesce(has_schema_privilege(role.oid, current_schema(), 'usage'), false) as may_use_schema
     from pg_roles own left join pg_roles role on role.rolname = :role
    where own.rolname = session_user`,
)

// A role that was granted before PostgreSQL 16 can always be taken.
const MAY_TAKE = unnamed<{ may: boolean }>(
  'row_security.may_take',
  `select case when exists (select 1 from pg_roles where rolname = :login)
               then pg_has_role(:login, :role,
                                case when cast(current_setting('server_version_num') as integer) < 160000 then 'member' else 'set' end)
               else false end as may`,
)

const TABLES = unnamed<Table>(
  'row_security.tables',
  `select c.relname as name, pg_get_userbyid(c.relowner) as owner,
          exists (select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped) as has_tenant,
          c.relrowsecurity and c.relforcerowsecurity as is_forced,
          coalesce((select cast(json_agg(json_build_object(
                             'name', p.polname, 'is_for_all', p.polpermissive and p.polcmd = '*',
                             'roles', array(select rolname from pg_roles r where r.oid = any (p.polroles) order by 1),
                             'seen', pg_get_expr(p.polqual, p.polrelid), 'made', pg_get_expr(p.polwithcheck, p.polrelid))
                             order by p.polname) as text)
                      from pg_policy p where p.polrelid = c.oid), '[]') as policies,
          coalesce(has_table_privilege(role.oid, c.oid, 'select')
                   and (c.relname = 'applied_migrations'
                        or has_table_privilege(role.oid, c.oid, 'insert') and has_table_privilege(role.oid, c.oid, 'update')
                           and has_table_privilege(role.oid, c.oid, 'delete')), false) as may_use,
          (select string_agg(quote_ident(s.relname), ', ') from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
            where d.refclassid = cast('pg_class' as regclass) and d.refobjid = c.oid and d.deptype in ('a', 'i')
              and not coalesce(has_table_privilege(role.oid, s.oid, 'select'), false)) as closed_sequences,
          coalesce(pg_has_role(role.oid, c.relowner, 'member'), false) as is_owned
     from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_roles role on role.rolname = :role
    where n.nspname = current_schema() and c.relkind in ('r', 'p')
    order by c.relname`,
)

// A table that is prepared shows its rows to a statement with its tenant alone, whatever the others are: a start may have
// found some of them in use. The policy of its owner shows all of them.
const BOUND = unnamed<Bound>(
  'row_security.bound',
  `select coalesce(bool_or(row_security_active(c.oid)), false) as bound,
          coalesce(bool_and(row_security_active(c.oid) and not pg_has_role(c.relowner, 'usage')), false) as secured
     from pg_class c
    where c.relkind in ('r', 'p') and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('tenants'))
      and exists (select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped)`,
)

/** The tables with tenants to which row-level security applies as the role of these connections sees them. */
export interface Bound {
  /** In one of them at least: then every statement has to carry its tenant. */
  bound: boolean
  /** In all of them, and the role has the rights of no owner. */
  secured: boolean
}

export async function boundTables(q: Reader): Promise<Bound> {
  return (await q.one(BOUND, {}))!
}

const ROLE = unnamed<{ name: string }>('row_security.role', 'select current_user as name')

/** The role that the connections have. */
export async function roleOf(q: Reader): Promise<string> {
  return (await q.one(ROLE, {}))!.name
}

/** True when these connections have this role, and it is bound in every table. */
export async function isBoundAs(role: string, q: Reader): Promise<boolean> {
  return (await roleOf(q)) === role && (await boundTables(q)).secured
}

/** The names of the two policies of a table: for the role of the service, and for the owner of the tables. */
const of_tenant = 'waystation_of_tenant'
const of_owner = 'waystation_of_owner'

/** The condition under which the role of the service sees a row. */
function conditionOf(table: string): string {
  const given = `current_setting('${tenant_setting}', true)`
  const column = other_columns[table]
  const hash = column === undefined ? '' : ` or ${column} = current_setting('${hash_setting}', true)`
  return `tenant_id = ${given} or ${given} = '${all_tenants}'${hash}`
}

/**
 * Prepares the role and the tables as far as this connection may, and returns how it stands then. `login`: who is to take the
 * role; null: who has this connection.
 */
export async function secureRows(db: Db, role: string, login: string | null = null): Promise<RowSecurity> {
  const before = await standing(db, role, login)
  if ('role' in before) return before
  if (before.is_final) return { off: before.off, is_late: false }
  const failures = await prepare(db, role, login)
  const after = await standing(db, role, login)
  if ('role' in after) return after
  const [first] = failures
  const off = first === undefined ? after.off : `${after.off}; ${(first as Error).message}`
  return { off, is_late: failures.length > 0 && failures.every(isLocked) }
}

/** Returns what failed. */
async function prepare(db: Db, role: string, login: string | null): Promise<unknown[]> {
  try {
    await makeRole(db, role, login)
    return await prepareTables(db, role)
  } catch (error) {
    return [error]
  }
}

/** How it stands; changes nothing. */
export async function rowSecurity(db: Db, role: string, login: string | null = null): Promise<RowSecurity> {
  const found = await standing(db, role, login)
  return 'role' in found ? found : { off: found.off, is_late: false }
}

type Standing =
  | { role: string }
  | { off: string /** No statement of ours can change it. */; is_final: boolean }

async function standing(db: Db, role: string, given: string | null): Promise<Standing> {
  if (await isDistributed(db)) return final('the tables are distributed by Citus')
  const tables = await db.all(TABLES, { role })
  const others = tables.find(({ policies }) => isOfOther(policies, role))
  if (others) return final(`the table ${others.name} is prepared for another role than ${role}`)
  const facts = await factsOf(db, role, given)
  const login = given ?? facts.login
  if (facts.schema_name === null) return final(`${facts.login} may use no schema in its search_path`)
  if (!facts.exists) {
    const off = `there is no role ${role}, and ${facts.login} may not create it`
    return { off, is_final: !facts.may_create }
  }
  if (facts.bypasses) return final(`the role ${role} bypasses it`)
  if (facts.is_of_others)
    return final(`another login has the role ${role}, such as that of another service: set DATABASE_ROLE`)
  const owned = tables.find(({ is_owned }) => is_owned)
  if (owned?.owner === role) return final(`the role ${role} owns the tables`)
  if (owned) return final(`the role ${role} is a member of ${owned.owner}, which owns the tables`)
  if (login !== role && !(await db.one(MAY_TAKE, { login, role }))!.may)
    return { off: `${login} may not take the role ${role}`, is_final: false }
  const open = tables.find((table) => !isSecured(table, role))
  if (open) return { off: `the table ${open.name} is not prepared for the role ${role}`, is_final: false }
  if (!facts.may_use_schema)
    return { off: `the role ${role} may not use the schema ${facts.schema_name}`, is_final: false }
  return { role }
}

function final(off: string): Standing {
  return { off, is_final: true }
}

/** The nodes that have that role see no row once its policy is gone. */
function isOfOther(policies: string, role: string): boolean {
  return policiesOf(policies).some(({ name, roles }) => name === of_tenant && roles.join() !== role)
}

function policiesOf(policies: string): Policy[] {
  return JSON.parse(policies) as Policy[]
}

function isSecured(table: Table, role: string): boolean {
  const { name, has_tenant, is_forced, owner } = table
  const may_use = table.may_use && table.closed_sequences === null
  if (!has_tenant) return may_use
  const wanted = [policy(of_owner, owner, 'true'), policy(of_tenant, role, conditionOf(name))]
  return may_use && is_forced && same(policiesOf(table.policies), wanted)
}

function policy(name: string, role: string, condition: string): Policy {
  return { name, roles: [role], is_for_all: true, seen: condition, made: condition }
}

function same(found: Policy[], wanted: Policy[]): boolean {
  const worded = (policies: Policy[]) =>
    policies.map((one) => ({ ...one, seen: plain(one.seen), made: plain(one.made) }))
  return Bun.deepEquals(worded(found), worded(wanted))
}

/** Without the types and brackets that PostgreSQL adds to a condition. */
function plain(condition: string | null): string {
  return (condition ?? '').toLowerCase().replace(/::text|[()\s]/g, '')
}

/** Roles are the whole server's: two services may make one at the same time, and the second fails. */
async function makeRole(db: Db, role: string, given: string | null): Promise<void> {
  const facts = await factsOf(db, role, given)
  if (!facts.exists)
    await run(db, `create role ${quoted(role)} nologin`).catch(async (error) => {
      if (!(await factsOf(db, role, given)).exists) throw error
    })
  const login = given ?? facts.login
  if (login === role) return
  const taken = async () => (await db.one(MAY_TAKE, { login, role }))!.may
  if (await taken()) return
  await run(db, `grant ${quoted(role)} to ${quoted(login)}`).catch(async (error) => {
    if (!(await taken())) throw error
  })
}

function run(db: Db, text: string): Promise<unknown> {
  return changeSchema(db, async (tx) => tx.run(unnamed('row_security.change', text), {}))
}

async function factsOf(q: Reader, role: string, login: string | null): Promise<Facts> {
  return (await q.one(FACTS, { role, login: login ?? '' }))!
}

/** Others wait no longer than this behind a lock that waits for a table in use. */
const SHORT_LOCK = unnamed('row_security.short_lock', "set local lock_timeout = '100ms'")

/**
 * Each table alone: the policy of its owner lets the nodes go on that have no other role yet. Returns the failures of
 * tables that were in use.
 */
async function prepareTables(db: Db, role: string): Promise<unknown[]> {
  const facts = await factsOf(db, role, null)
  if (!facts.may_use_schema)
    await run(db, `grant usage on schema ${quoted(facts.schema_name!)} to ${quoted(role)}`)
  const failures: unknown[] = []
  for (const table of await db.all(TABLES, { role })) {
    if (isSecured(table, role)) continue
    const change = async (tx: Tx) => {
      await tx.run(SHORT_LOCK, {})
      for (const text of statementsFor(table, role)) await tx.run(unnamed('row_security.change', text), {})
    }
    // One after another that was in use waits for no more: all of them are tried again later.
    const given = failures.length === 0 ? tries : { ...tries, tries_max: 1 }
    await changeSchema(db, change, given).catch((error) => {
      if (!isLocked(error)) throw error
      failures.push(error)
    })
  }
  return failures
}

function statementsFor({ name, owner, has_tenant, closed_sequences }: Table, role: string): string[] {
  const table = quoted(name)
  const rights = name === 'applied_migrations' ? 'select' : 'select, insert, update, delete'
  const grants = [`grant ${rights} on ${table} to ${quoted(role)}`]
  if (closed_sequences !== null)
    grants.push(`grant select on sequence ${closed_sequences} to ${quoted(role)}`)
  if (!has_tenant) return grants
  const condition = conditionOf(name)
  return [
    ...grants,
    `alter table ${table} enable row level security, force row level security`,
    `drop policy if exists ${of_tenant} on ${table}`,
    `drop policy if exists ${of_owner} on ${table}`,
    `create policy ${of_tenant} on ${table} to ${quoted(role)} using (${condition}) with check (${condition})`,
    `create policy ${of_owner} on ${table} to ${quoted(owner)} using (true) with check (true)`,
  ]
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
