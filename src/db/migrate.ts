// Brings the schema to the version of this code: each file once, in order, one transaction each.

import { limit } from '../base/limit.ts'
import { type Db, DbError, type Turn, type Tx, unnamed } from './db.ts'
import { render } from './dialect.ts'
import init from './migrations/0001_init.sql' with { type: 'text' }
import work from './migrations/0002_work.sql' with { type: 'text' }
import rest from './migrations/0003_rest.sql' with { type: 'text' }
import lost_and_ended from './migrations/0004_lost_and_ended.sql' with { type: 'text' }
import edge from './migrations/0005_edge.sql' with { type: 'text' }
import usage from './migrations/0006_usage.sql' with { type: 'text' }
import rate_list from './migrations/0007_rate_list.sql' with { type: 'text' }

export interface Migration {
  version: number
  name: string
  text: string
}

export const migrations: Migration[] = [
  { version: 1, name: 'init', text: init },
  { version: 2, name: 'work', text: work },
  { version: 3, name: 'rest', text: rest },
  { version: 4, name: 'lost_and_ended', text: lost_and_ended },
  { version: 5, name: 'edge', text: edge },
  { version: 6, name: 'usage', text: usage },
  { version: 7, name: 'rate_list', text: rate_list },
]

// Differs because PostgreSQL may be shared by nodes that start at the same time; SQLite has one writer.
const LOCK_POSTGRES = unnamed<{ locked: unknown }>(
  'migrate.lock',
  'select pg_advisory_xact_lock(8420) as locked',
)
const CREATE = unnamed(
  'migrate.create',
  'create table if not exists schema_migrations (version bigint primary key, name text not null, applied_at bigint not null)',
)
const CREATE_SQLITE = unnamed(
  'migrate.create',
  'create table if not exists schema_migrations (version integer primary key, name text not null, applied_at integer not null) strict',
)
const VERSION = unnamed<{ version: number | null }>(
  'migrate.version',
  'select max(version) as version from schema_migrations',
)
const APPLIED = unnamed(
  'migrate.applied',
  'insert into schema_migrations (version, name, applied_at) values (:version, :name, :now)',
)

/** An index on a large table takes its time. */
const migration_turn: Turn = { key: 'migration', ms_max: null }

/** How often a node asks again while another one migrates; each try waits for the lock's own time-out. */
const tries_max = limit(
  'db.migration_tries',
  30,
  'attempts',
  'How often a node asks again while another one migrates. Past it the service does not start.',
)

/**
 * Answers the schema version that now holds. Throws when the database was made by newer code.
 */
export async function migrate(db: Db, list: Migration[] = migrations): Promise<number> {
  const newest = list.at(-1)?.version ?? 0
  let version = await withPatience(() => db.write(migration_turn, (tx) => prepare(db, tx)))
  mustNotBeNewer(version, newest)
  for (const migration of list) {
    version = await withPatience(() => db.write(migration_turn, (tx) => apply(db, tx, migration)))
    mustNotBeNewer(version, newest) // a newer release may have come in between
  }
  return version
}

function mustNotBeNewer(version: number, newest: number): void {
  if (version <= newest) return
  throw new Error(
    `the database has schema version ${version}, this release knows ${newest}: run a newer release`,
  )
}

/** The schema of a database that a server has opened before; throws when it is not this release's. Writes nothing. */
export async function mustBeCurrent(db: Db): Promise<number> {
  const newest = migrations.at(-1)!.version
  const version = (await db.one(VERSION, {}))?.version ?? 0
  if (version !== newest)
    throw new Error(`the database has schema version ${version}, this release has ${newest}`)
  return version
}

async function prepare(db: Db, tx: Tx): Promise<number> {
  if (db.engine === 'postgres') await tx.one(LOCK_POSTGRES, {})
  await tx.run(db.engine === 'postgres' ? CREATE : CREATE_SQLITE, {})
  return (await tx.one(VERSION, {}))?.version ?? 0
}

async function apply(db: Db, tx: Tx, migration: Migration): Promise<number> {
  const version = await prepare(db, tx)
  if (version >= migration.version) return version
  for (const text of render(db.engine, migration.text).split(/;\s*$/m)) {
    const statement = text.replace(/^\s*--.*$/gm, '').trim()
    if (statement) await tx.run(unnamed(`migrate.${migration.name}`, statement), {})
  }
  await tx.run(APPLIED, { version: migration.version, name: migration.name, now: tx.now })
  return migration.version
}

async function withPatience<T>(action: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await action()
    } catch (error) {
      const waiting = error instanceof DbError && error.kind === 'busy'
      if (!waiting || tries === tries_max) throw error
    }
  }
}
