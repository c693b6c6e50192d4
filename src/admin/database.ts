// Commands on the database as a whole.

import { requireWholeDatabase } from '../backup/whole.ts'
import { iso } from '../base/clock.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/db.ts'
import { distribute as distributeTables } from '../db/distributed.ts'
import { sqlitePath } from '../db/open.ts'
import { postgresFaults } from '../db/postgres-faults.ts'
import { setForRole } from '../db/postgres-session.ts'
import { loginOf, rowSecurity } from '../db/row-security.ts'
import { databaseBytes, tableSizes } from '../db/table-sizes.ts'
import { vacuumPostgres, vacuumSqlite } from '../db/vacuum.ts'
import * as jobs from '../jobs/service.ts'
import * as quarantine from '../quarantine/service.ts'
import * as seal from '../seal/service.ts'
import * as tenants from '../tenants/service.ts'
import type { Cell, DatabaseCommand, OwnCommand } from './command.ts'

const check: DatabaseCommand = {
  usage: 'check',
  about: 'checks the whole database for damage, and every journal against its seal',
  /** Throws when something is damaged, with what the engine says about it. */
  async run(db, _, { config }) {
    const notes: string[] = []
    const faults =
      db.engine === 'sqlite' ? await db.faults() : await ofPostgres(config.database_owner_url, notes)
    if (db.engine === 'postgres') notes.push(await rowSecurityNote(db, config))
    for (const { tenant_id } of await tenants.all(db)) {
      const fault = await seal.faultOf(db, tenant_id)
      if (fault !== null) faults.push(`the journal of ${tenant_id}: ${fault}`)
    }
    if (faults.length > 0) throw new Error(`the database is damaged:\n${faults.join('\n')}`)
    return { text: ['the database is whole', ...notes].join('\n'), value: { faults: [], notes } }
  },
}

async function rowSecurityNote(db: Db, config: Config): Promise<string> {
  const { database_role, row_level_security } = config
  if (row_level_security === 'off') return 'row-level security is off: ROW_LEVEL_SECURITY says so'
  const found = await rowSecurity(db, database_role, loginOf(config))
  return 'off' in found
    ? `row-level security is off: ${found.off}`
    : `row-level security is in force for the role ${found.role}`
}

async function ofPostgres(url: string, notes: string[]): Promise<string[]> {
  const { faults, denied, checks_indexes, data_checksums } = await postgresFaults(url)
  if (!checks_indexes) notes.push('indexes were not checked: create extension amcheck')
  for (const reason of denied) notes.push(`indexes were not checked: ${reason}`)
  if (!data_checksums) notes.push('data checksums are off: a changed byte in a table would not be noticed')
  return faults
}

const stats: DatabaseCommand = {
  usage: 'stats',
  about: 'sizes, tenants, due jobs and quarantine of the database',
  async run(db, _, { config }) {
    const all = await tenants.all(db)
    const now = db.clock.now()
    const found = await db.read({ key: 'admin', ms_max: null }, (q) => jobs.dueOverview(q, now))
    const row = await quarantine.find(db)
    const facts: Record<string, Cell> = {
      ...{ engine: db.engine, bytes: await databaseBytes(db, sqlitePath(config.database_url)) },
      ...{ tenants: all.length, frozen: all.filter(({ frozen_at }) => frozen_at !== null).length },
      pending_deletion: all.filter(({ status }) => status === 'pending_deletion').length,
      due_jobs: found.reduce((sum, { jobs }) => sum + jobs, 0),
      oldest_due: found.length === 0 ? null : iso(Math.min(...found.map(({ since }) => since))),
      quarantined_since: row === null ? null : iso(row.since),
    }
    return { rows: [...rowsOf(facts), ...(await tableRows(db))] }
  },
}

function rowsOf(facts: Record<string, Cell>) {
  return Object.entries(facts).map(([name, value]) => ({ name, value, bytes: null as Cell }))
}

async function tableRows(db: Db) {
  const sizes = await tableSizes(db)
  return sizes.map(({ table, rows, bytes }) => ({ name: `rows of ${table}`, value: rows as Cell, bytes }))
}

const vacuum: OwnCommand = {
  usage: 'vacuum',
  about: 'returns the space of removed rows to the disk; SQLite: only while the service is stopped',
  async runAlone(_, { config }) {
    const path = sqlitePath(config.database_url)
    await requireWholeDatabase(config.database_owner_url)
    if (path === null) {
      await vacuumPostgres(config.database_owner_url)
      return { text: 'vacuumed and analyzed', value: { vacuumed: true } }
    }
    const { before, after } = vacuumSqlite(path)
    return { text: `${path} had ${before} bytes and has ${after}`, value: { before, after } }
  },
}

const sessionSettings: OwnCommand = {
  usage: 'session-settings',
  about: 'PostgreSQL behind a pooler: sets for the role what the pooler does not pass on',
  async runAlone(_, { config }) {
    if (sqlitePath(config.database_url) !== null) throw new Error('session-settings is for PostgreSQL')
    const statements = await setForRole(
      config.database_url,
      config.row_level_security === 'off' ? null : config.database_role,
    )
    return { text: statements.join('\n'), value: { statements } }
  },
}

const distribute: DatabaseCommand = {
  usage: 'distribute',
  about: 'spreads the tables of a PostgreSQL database over the servers of Citus',
  async run(db) {
    const tables = await distributeTables(db)
    const end =
      tables.length === 0
        ? 'every table was already distributed'
        : `${tables.length} tables are distributed now`
    return { text: [...tables, end].join('\n'), value: { tables } }
  },
}

export const database_commands = [check, stats, vacuum, sessionSettings, distribute]
