// Brings the schema to that of this code: each migration once, in order, one transaction each.

import { hashOf } from '../base/keys.ts'
import { type Db, type Reader, type Tx, unnamed, unnamedAcrossTenants } from './db.ts'
import { render } from './dialect.ts'
import { distribute, isDistributed } from './distributed.ts'
import { changeSchema } from './schema-lock.ts'

/** A step of the schema. A released one is never edited: a test holds its hash. */
export interface Migration {
  /** Unique: `kv/0001`. */
  name: string
  text: string
}

/** Name to hash of what a database has. */
type Applied = ReadonlyMap<string, string>

// Differs because each engine lists its tables elsewhere.
const TABLES = unnamed<{ name: string }>(
  'migrate.tables',
  `select tablename as name from pg_tables
    where schemaname = current_schema() and tablename in ('applied_migrations', 'schema_migrations')`,
)
const TABLES_SQLITE = unnamed<{ name: string }>(
  'migrate.tables',
  `select name from sqlite_master where name in ('applied_migrations', 'schema_migrations')`,
)
const CREATE = `create table applied_migrations (
  name {text} primary key,
  hash {text} not null,
  applied_at {integer} not null
) {keyed}`
const APPLIED = unnamed<{ name: string; hash: string }>(
  'migrate.applied',
  'select name, hash from applied_migrations',
)
const KEEP = unnamed(
  'migrate.keep',
  'insert into applied_migrations (name, hash, applied_at) values (:name, :hash, :now)',
)

/** Returns the schema version that now holds, the number of migrations. Throws when the database was made by other code. */
export async function migrate(db: Db, list: readonly Migration[]): Promise<number> {
  let applied = await changeSchema(db, (tx) => prepare(db, tx))
  requireKnown(applied, list)
  for (const migration of list) {
    if (applied.has(migration.name)) continue
    applied = await changeSchema(db, (tx) => apply(db, tx, migration))
    requireKnown(applied, list) // a newer release may have come in between
  }
  // Tables that a migration has created on a distributed database are distributed as well.
  if (db.engine === 'postgres' && (await isDistributed(db))) await distribute(db)
  return applied.size
}

function requireKnown(applied: Applied, list: readonly Migration[]): void {
  const known = new Map(list.map(({ name, text }) => [name, hashOf(text)]))
  for (const [name, hash] of applied) {
    if (!known.has(name)) {
      throw new Error(
        `the database has schema version ${applied.size}, this release knows ${list.length}: run a newer release`,
      )
    }
    if (known.get(name) !== hash) {
      throw new Error(
        `the database was made with another ${name} than this release has: run the release that made it`,
      )
    }
  }
}

/** Returns the schema version of a database that a service has opened before; throws when it is not this release's. Writes nothing. */
export async function requireCurrent(db: Db, list: readonly Migration[]): Promise<number> {
  const applied = (await appliedOf(db, db)) ?? new Map<string, string>()
  requireKnown(applied, list)
  if (applied.size < list.length)
    throw new Error(`the database has schema version ${applied.size}, this release has ${list.length}`)
  return applied.size
}

/** False also for an empty database. Writes nothing. */
export async function hasApplied(db: Db, name: string): Promise<boolean> {
  return (await appliedOf(db, db))?.has(name) ?? false
}

/** Returns the schema version of a copy; throws when this release cannot bring it to its own. */
export function requireUpgradable(
  applied: readonly { name: string; hash: string }[],
  list: readonly Migration[],
): number {
  requireKnown(new Map(applied.map(({ name, hash }) => [name, hash])), list)
  return applied.length
}

async function prepare(db: Db, tx: Tx): Promise<Applied> {
  const known = await appliedOf(db, tx)
  if (known) return known
  await tx.run(unnamed('migrate.create', render(db.engine, CREATE)), {})
  return new Map()
}

/**
 * Null for an empty database. Throws for one from before there was a release. An older release that was started once
 * on a database of this one leaves its own table there, which is not read.
 */
async function appliedOf(db: Db, q: Reader): Promise<Applied | null> {
  const tables = await q.all(db.engine === 'postgres' ? TABLES : TABLES_SQLITE, {})
  if (tables.some(({ name }) => name === 'applied_migrations'))
    return new Map((await q.all(APPLIED, {})).map(({ name, hash }) => [name, hash]))
  if (tables.length > 0)
    throw new Error('the database was made before release 0.1.0 and cannot be read: use a new one')
  return null
}

async function apply(db: Db, tx: Tx, { name, text }: Migration): Promise<Applied> {
  const applied = await prepare(db, tx)
  if (applied.has(name)) return applied
  for (const part of render(db.engine, text).split(/;\s*$/m)) {
    const statement = part.replace(/^\s*--.*$/gm, '').trim()
    if (statement) await tx.run(unnamedAcrossTenants(`migrate.${name}`, statement), {})
  }
  const hash = hashOf(text)
  await tx.run(KEEP, { name, hash, now: tx.now })
  return new Map([...applied, [name, hash]])
}
