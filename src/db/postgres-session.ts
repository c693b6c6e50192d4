// The settings of a PostgreSQL connection where a pooler may stand in between, which does not pass them on: read back,
// and set for the role instead.

import { SQL } from 'bun'
import { newer_session, postgres_session, type Settings, unsafePostgres } from './connection-settings.ts'
import { namingServer, stateOf, Unready } from './errors.ts'
import type { Runner } from './postgres-queries.ts'
import { addressOf } from './postgres-url.ts'

export type Session = Readonly<Record<string, string>>

/** Sent instead of `postgres_session` through a pooler that refuses it: PgBouncer keeps this one for each client. */
export const pooled_session: Session = { application_name: postgres_session.application_name }

/** SQLSTATE of a parameter that the server does not know. */
const undefined_object = '42704'

/** Settings that the role has to bring along where the connection cannot. */
const of_role: Session = Object.fromEntries(
  Object.entries(postgres_session).filter(([name]) => !(name in pooled_session)),
)

/** True for the error of a pooler that does not take the settings of a connection. */
export function refusesSettings(error: unknown): boolean {
  return /unsupported startup parameter/i.test((error as Error).message)
}

/** True for the error of a server that opens no connection with this role: there is none, or the login may not take it. */
export function refusesRole(error: unknown): boolean {
  return ['22023', '42501'].includes(stateOf(error)) // invalid_parameter_value, insufficient_privilege
}

/** The settings with which a connection opens unless others are given. */
export const whole_session: Session = { ...postgres_session, ...newer_session }

/** Those with which to open a connection that was refused so; null when that was not for its settings. */
export function settingsInstead(session: Session, error: unknown): Session | null {
  if (refusesSettings(error) && session !== pooled_session) return pooled_session
  if (stateOf(error) !== undefined_object) return null
  // The sentence around the name is in the language of the server, lc_messages.
  const unknown = Object.keys(newer_session).find((name) => (error as Error).message.includes(name))
  if (unknown === undefined || !(unknown in session)) return null
  return Object.fromEntries(Object.entries(session).filter(([name]) => name !== unknown))
}

const names = Object.keys(of_role).map((name) => `'${name}'`)

const READ = `select name, setting from pg_settings where name in (${names.join(', ')})`

const SET_FOR_ROLE = `
  select format('alter role %I in database %I set %I = %L', current_user, current_database(), $1::text, $2::text) as text
   where $1 = 'role' or exists (select 1 from pg_settings where name = $1)`

/** The reason that a connection must not be used: a setting that it does not have. Null when it has all. */
export async function lostSetting(connection: Runner): Promise<string | null> {
  const rows = (await connection.unsafe(READ, [])) as { name: string; setting: string }[]
  const lost = rows.find(({ name, setting }) => setting !== of_role[name])
  if (!lost) return null
  return [
    `${lost.name} is ${lost.setting}, not ${of_role[lost.name]}: a pooler such as PgBouncer dropped the settings of the`,
    'connection. Run npm run admin -- session-settings once, then RECONNECT in the pooler (docs/postgres.md)',
  ].join(' ')
}

/** Throws for settings of the server with which nothing is served. `lost`: the reason that the connection has not those of the service. */
export function requireSafe(settings: Settings, lost: string | null): void {
  const unsafe = unsafePostgres(settings) ?? lost
  if (unsafe) throw new Error(`refusing to serve from this PostgreSQL: ${unsafe}`)
}

/**
 * Throws Unready where the schema was dropped or taken from the role, so that no request can be answered, and for settings with
 * which what is answered may be lost.
 */
export async function requireReady(connection: Runner, settings: Settings): Promise<void> {
  const rows = await connection.unsafe(
    "select has_table_privilege(to_regclass('tenants'), 'select') as may",
    [],
  )
  if ((rows as { may: boolean | null }[])[0]!.may !== true)
    throw new Unready('the service may not read its tables, or they do not exist')
  const unsafe = unsafePostgres(settings)
  if (unsafe) throw new Unready(`acknowledged writes may be lost: ${unsafe}`)
}

const SETTINGS = `select name, setting from pg_settings where name in
  ('fsync', 'full_page_writes', 'synchronous_commit', 'server_encoding', 'server_version', 'transaction_read_only')
  union all
  select 'collation_c', count(*)::text from pg_collation where collname = 'C'`

/** The settings that durability depends on, as the server reports them. */
export async function settingsOf(connection: Runner): Promise<Settings> {
  const rows = (await connection.unsafe(SETTINGS, [])) as { name: string; setting: string }[]
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

const RESET_ROLE = `
  select format('alter role %I in database %I reset role', current_user, current_database()) as text
    from pg_db_role_setting s join pg_roles r on r.oid = s.setrole join pg_database d on d.oid = s.setdatabase,
         unnest(s.setconfig) as one
   where r.rolname = current_user and d.datname = current_database() and one like 'role=%'`

// A role that it may not take would end every connection.
const IS_PREPARED = `
  select count(*)::int as policies from pg_policy p join pg_roles r on r.oid = any (p.polroles)
   where r.rolname = $1 and r.rolname <> session_user and pg_has_role(session_user, r.oid, 'member')`

/**
 * Sets them for the role of this URL in its database, for every connection that opens from now on, with the role that
 * row-level security binds once a service has prepared it; null takes that back. Returns what it ran.
 */
export async function setForRole(url: string, bound_role: string | null): Promise<string[]> {
  const connection = new SQL({ ...addressOf(url), max: 1, prepare: false })
  try {
    await connection.connect().catch((error) => {
      throw namingServer(url, error)
    })
    return await connection.begin(async (tx) => {
      const texts: string[] = []
      const ran = async (text: string) => {
        await tx.unsafe(text)
        texts.push(text)
      }
      await tx.unsafe('set local role none')
      const [row] = bound_role === null ? [] : await tx.unsafe(IS_PREPARED, [bound_role])
      const taken = row?.policies > 0 ? { role: bound_role } : {}
      if (bound_role === null) {
        const [row] = (await tx.unsafe(RESET_ROLE)) as { text: string }[]
        if (row) await ran(row.text)
      }
      for (const [name, value] of Object.entries({ ...of_role, ...newer_session, ...taken })) {
        const [row] = (await tx.unsafe(SET_FOR_ROLE, [name, value])) as { text: string }[]
        if (row) await ran(row.text)
      }
      return texts
    })
  } finally {
    await connection.close()
  }
}
