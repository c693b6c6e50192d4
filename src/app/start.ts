// The steps of a start that can fail. Each throws one line that names the setting to look at.

import { requireServable } from '../backup/facts-store.ts'
import { removeRestoring } from '../backup/file.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Overload } from '../base/overload.ts'
import { requireClock } from '../clock/service.ts'
import type { Config } from '../config.ts'
import type { Secrets as Sealer } from '../contract/dependencies.ts'
import type { Db } from '../db/db.ts'
import type { DiskOptions } from '../db/disk.ts'
import { isDistributed } from '../db/distributed.ts'
import type { DbMeasures } from '../db/measures.ts'
import { migrate, requireCurrent } from '../db/migrate.ts'
import { openDb, sqlitePath } from '../db/open.ts'
import type { Sync } from '../db/sqlite-flush.ts'
import { migrations } from '../features.ts'
import type { Log } from '../http/answers.ts'
import type { Limiters } from '../http/limits.ts'
import { requireWhole } from '../quarantine/service.ts'
import { hasServed, type KeptSecret, keptKeys, keptSecret, secretsOf } from '../secrets/service.ts'
import { ConfigError } from '../settings.ts'
import * as tenants from '../tenants/service.ts'
import { serverIn } from './outages.ts'
import { LateRows, requireRole, securedRows } from './secured.ts'

const damaged_message =
  'THE DATABASE FILE IS DAMAGED: nothing more is written, reads continue as far as possible; restore a backup, or rescue what can be read'

export interface AppOptions {
  clock: Clock
  log: Log
  /** The disk failed under a write. */
  onFatal: (error: unknown) => void
  /** The room on the disk of the database; read from the system unless given. */
  space?: DiskOptions['space']
  /** Flushes the log of a SQLite database; fdatasync(2) unless given. */
  sync?: Sync | undefined
  /** False: no timer is set and jobs start in ticks alone, so that nothing runs beside a request. Default true. */
  background?: boolean
  /** False: waiting requests look only when they are notified. For tests. Default true. */
  looks_again?: boolean
  /** Beside other processes of this service, which listen on the same port. */
  shares_port?: boolean
  /** The limits per client address; counted in this process unless given. */
  limiters?: Limiters
  /** Says whether new work is refused; judged by the delay of the event loop unless given. For tests. */
  overload?: Overload
  /** True: a stop waits until clients have noticed that their connections end. Default false. */
  lingers?: boolean
}

export interface Secrets {
  cron_secret: KeptSecret
  secret_key: KeptSecret
  /** While SECRET_KEY is rotated, otherwise null. */
  secret_key_previous: string | null
}

export function keptSecrets(config: Config): Secrets {
  return naming('DATA_DIR', () => {
    const cron_secret = keptSecret(config.cron_secret, config.data_dir, 'cron_secret')
    const { current, previous } = keptKeys(config)
    return { cron_secret, secret_key: current, secret_key_previous: previous }
  })
}

/** `late_rows`: null unless a table was in use that row-level security needs. */
export async function openDatabase(
  config: Config,
  options: AppOptions,
  measures?: DbMeasures,
): Promise<{ db: Db; late_rows: LateRows | null }> {
  const { clock, log, onFatal, space, sync } = options
  const rows = sqlitePath(config.database_url) === null ? await securedRows(config, options) : null
  const role = rows && 'role' in rows ? rows.role : undefined
  try {
    const path = sqlitePath(config.database_url)
    requireServable(path)
    const db = await openDb(config.database_url, {
      clock,
      database_time: clock === systemClock,
      movable: config.test_clock,
      connections_max: config.database_connections,
      role,
      carries_tenant: config.row_level_security !== 'off', // any node may prepare the tables
      server_listener: serverIn(log),
      onFatal,
      onDamaged: (error) => log.error({ error: String(error) }, damaged_message),
      onDiskUnknown: (error) =>
        log.error({ error: String(error) }, 'the free space on the disk is not known'),
      disk: { reserve_bytes: config.disk_reserve_bytes, ...(space ? { space } : {}) },
      sync,
      measures,
      exclusive: true,
    })
    removeRestoring(path)
    if (role !== undefined) await requireRole(db, role, config, log)
    const is_late = rows !== null && 'off' in rows && rows.is_late
    return { db, late_rows: is_late ? new LateRows(config, options, db) : null }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError('DATABASE_URL', (error as Error).message)
  }
}

/** Does once what every process of a service would do at its start: makes the secrets, and migrates. */
export async function prepareDatabase(config: Config, options: AppOptions): Promise<Secrets> {
  const secrets = keptSecrets(config)
  const { db } = await openDatabase(config, options)
  try {
    await requireUsable(db, config, secrets)
    return secrets
  } finally {
    await db.close()
  }
}

/** Returns the schema version that now holds, and what seals here. Throws when this service must not work on the database. */
export async function requireUsable(
  db: Db,
  config: Config,
  { secret_key, secret_key_previous }: Secrets,
): Promise<{ schema_version: number; sealer: Sealer }> {
  await requireWhole(db) // before anything is written to it
  // Nothing is written to a damaged file; what can be read of it is served.
  const is_damaged = db.trouble()?.kind === 'damaged'
  const schema_version = await (is_damaged ? requireCurrent(db, migrations) : migrate(db, migrations))
  try {
    await requireClock(db, config.test_clock, !is_damaged && !(await hasServed(db)))
  } catch (error) {
    throw new ConfigError('CLOCK', (error as Error).message)
  }
  const sealer = await secretsOf(db, { current: secret_key.value, previous: secret_key_previous })
  // A tenant on a plan without limits would be a tenant without limits.
  for (const { plan } of await plansInUse(db)) {
    if (!Object.hasOwn(config.plans, plan)) {
      throw new ConfigError('PLANS_FILE', `tenants are on the plan "${plan}", which it does not have`)
    }
  }
  return { schema_version, sealer }
}

/** None when a server of Citus is away: a plan that is missing then fails the requests of its tenants, and no others. */
async function plansInUse(db: Db): Promise<{ plan: string }[]> {
  try {
    return await tenants.plansInUse(db)
  } catch (error) {
    if (db.engine === 'postgres' && (await isDistributed(db))) return []
    throw error
  }
}

/** A start that fails says which setting to look at. */
export function naming<T>(setting: 'DATA_DIR' | 'HOST' | 'METRICS', action: () => T): T {
  try {
    return action()
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    if (setting !== 'HOST' || code !== 'EADDRINUSE') throw new ConfigError(setting, message)
    throw new ConfigError('PORT', `${message} Stop what listens there, or set another PORT`)
  }
}
