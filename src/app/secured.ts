// Row-level security at the start: the tables are prepared by their owner, then the service takes the role that it binds.

import { OnceAMinute } from '../base/once-a-minute.ts'
import { Repeat } from '../base/repeat.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'
import { isUnavailable } from '../db/errors.ts'
import { migrate } from '../db/migrate.ts'
import { type OpenOptions, openDb } from '../db/open.ts'
import { refusesRole, refusesSettings } from '../db/postgres-session.ts'
import { loginOf, type RowSecurity, roleOf, secureRows } from '../db/row-security.ts'
import { areOneDatabase } from '../db/same-database.ts'
import { migrations } from '../features.ts'
import type { Log } from '../http/answers.ts'
import { requireWhole } from '../quarantine/service.ts'
import { ConfigError, connections_min } from '../settings.ts'
import type { AppOptions } from './start.ts'

export const unsecured_message =
  'row-level security is off: only the conditions of statements keep tenants apart; see docs/row-level-security.md'

export const secured_message = 'row-level security is in force from now on'

const lost_role =
  'a pooler dropped the role of the connection: run npm run admin -- session-settings, then RECONNECT in the pooler, and start again'

/** The pause after which tables that were in use are tried again. */
const again_ms = 10_000
/** Of lines: a table is still in use. */
const late = 'late'

function unsecured({ row_level_security }: Config, log: Log, reason: string): void {
  if (row_level_security === 'required') throw new ConfigError('ROW_LEVEL_SECURITY', reason)
  if (row_level_security === 'auto') log.warn({ reason }, unsecured_message)
}

/** Migrates as the owner of the tables. Where row-level security is off, the log says so. */
export async function securedRows(config: Config, options: AppOptions): Promise<RowSecurity> {
  const found = await prepareRows(config, options)
  if ('off' in found) unsecured(config, options.log, found.off)
  return found
}

/** Brings row-level security into force in a service that began without it, because a table was in use. */
export class LateRows {
  readonly #repeat = new Repeat(again_ms, () => this.secure())
  readonly #lines: OnceAMinute
  #is_over = false

  constructor(
    private readonly config: Config,
    private readonly options: AppOptions,
    private readonly db: Db,
  ) {
    this.#lines = new OnceAMinute(options.clock)
    this.#lines.isDue(late) // the start has told it
  }

  start(onError: (error: unknown) => void): void {
    this.#repeat.start(onError)
  }

  stop(): Promise<void> {
    this.#is_over = true
    return this.#repeat.stop()
  }

  /** Tries it once more. */
  async secure(): Promise<void> {
    if (this.#is_over || this.db.is_away) return
    const { log } = this.options
    const found = await prepareRows(this.config, this.options)
    if ('off' in found) {
      this.#is_over = !found.is_late
      if (this.#is_over || this.#lines.isDue(late)) unsecured(this.config, log, found.off)
      return
    }
    const { role } = found
    const lost = await this.#take(role)
    this.#is_over = true
    if (lost === null) log.info({ role }, secured_message)
    else unsecured(this.config, log, lost)
  }

  /** Null, or the reason that connections do not get the role. Throws where it is to be tried again. */
  async #take(role: string): Promise<string | null> {
    try {
      return (await this.db.takeRole(role)) ? null : lost_role
    } catch (error) {
      if (isUnavailable(error) && !refusesSettings(error) && !refusesRole(error)) throw error
      return `${lost_role}; ${(error as Error).message}`
    }
  }
}

async function prepareRows(
  config: Config,
  { clock, onFatal }: Pick<AppOptions, 'clock' | 'onFatal'>,
): Promise<RowSecurity> {
  const { database_url, database_owner_url: url, database_role, row_level_security } = config
  const is_own = url === database_url
  const off = { off: 'ROW_LEVEL_SECURITY is off', is_late: false }
  if (is_own && row_level_security === 'off') return off // the service migrates by itself
  const options = { clock, connections_max: connections_min, onFatal, exclusive: false }
  const owner = await openedBy(is_own ? 'DATABASE_URL' : 'DATABASE_OWNER_URL', url, options)
  try {
    if (!is_own) await requireSame(owner, await openedBy('DATABASE_URL', database_url, options))
    await requireWhole(owner) // before anything is written to it
    await migrate(owner, migrations)
    if (row_level_security === 'off') return off
    return await secureRows(owner, database_role, loginOf(config))
  } finally {
    await owner.close()
  }
}

async function openedBy(
  setting: 'DATABASE_URL' | 'DATABASE_OWNER_URL',
  url: string,
  options: OpenOptions,
): Promise<Db> {
  try {
    return await openDb(url, options)
  } catch (error) {
    throw new ConfigError(setting, (error as Error).message)
  }
}

/** Otherwise one would be served, and another one migrated, administered and backed up. Closes `served`. */
async function requireSame(owner: Db, served: Db): Promise<void> {
  try {
    if (await areOneDatabase(owner, served)) return
    throw new ConfigError('DATABASE_OWNER_URL', 'leads to a different database than DATABASE_URL')
  } finally {
    await served.close()
  }
}

/** Throws when row-level security is required and a pooler has dropped the role. */
export async function requireRole(db: Db, role: string, config: Config, log: Log): Promise<void> {
  if ((await roleOf(db)) === role) return
  if (config.row_level_security === 'required') await db.close()
  unsecured(config, log, lost_role)
}
