// Row-level security at the start: the tables are prepared by their owner, then the service takes the role that it binds.

import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'
import { migrate } from '../db/migrate.ts'
import { openDb } from '../db/open.ts'
import { loginOf, type RowSecurity, roleOf, secureRows } from '../db/row-security.ts'
import { migrations } from '../features.ts'
import type { Log } from '../http/answers.ts'
import { requireWhole } from '../quarantine/service.ts'
import { ConfigError, connections_min } from '../settings.ts'
import type { AppOptions } from './start.ts'

export const unsecured_message =
  'row-level security is off: the conditions of statements alone keep tenants apart; see docs/row-level-security.md'

const lost_role = 'a pooler dropped the role of the connection: run the command session-settings once'

function unsecured({ row_level_security }: Config, log: Log, reason: string): void {
  if (row_level_security === 'required') throw new ConfigError('ROW_LEVEL_SECURITY', reason)
  if (row_level_security === 'auto') log.info({ reason }, unsecured_message)
}

/**
 * Migrates as the owner of the tables, and returns the role that row-level security binds; undefined where it is off, which
 * the log says.
 */
export async function securedRole(config: Config, options: AppOptions): Promise<string | undefined> {
  const found = await prepareRows(config, options)
  if ('role' in found) return found.role
  unsecured(config, options.log, found.off)
  return undefined
}

async function prepareRows(
  config: Config,
  { clock, onFatal }: Pick<AppOptions, 'clock' | 'onFatal'>,
): Promise<RowSecurity> {
  const { database_url, database_owner_url: url, database_role, row_level_security } = config
  const is_own = url === database_url
  const off = { off: 'ROW_LEVEL_SECURITY is off' }
  if (is_own && row_level_security === 'off') return off // the service migrates by itself
  const setting = is_own ? 'DATABASE_URL' : 'DATABASE_OWNER_URL'
  let owner: Db
  try {
    owner = await openDb(url, { clock, connections_max: connections_min, onFatal, exclusive: false })
  } catch (error) {
    throw new ConfigError(setting, (error as Error).message)
  }
  try {
    await requireWhole(owner) // before anything is written to it
    await migrate(owner, migrations)
    if (row_level_security === 'off') return off
    return await secureRows(owner, database_role, loginOf(config))
  } finally {
    await owner.close()
  }
}

/** Throws when row-level security is required and a pooler has dropped the role. */
export async function requireRole(db: Db, role: string, config: Config, log: Log): Promise<void> {
  if ((await roleOf(db)) === role) return
  if (config.row_level_security === 'required') await db.close()
  unsecured(config, log, lost_role)
}
