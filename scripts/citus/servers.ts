// PostgreSQL servers of this machine's own installation, with Citus or without, for as long as they are needed.

import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { postgresMicros, postmasterOf } from '../../bench/postgres-processes.ts'
import { freePort } from '../../test/support/ports.ts'

/** Few, because every test file has a database of its own with as many shards of each table. */
const shards = 4
const is_root = process.getuid?.() === 0

export interface PostgresServer {
  /** `postgres://postgres@127.0.0.1:port`, without a database. */
  base_url: string
  /** CPU time of all its processes so far, those that have ended included. Seconds. */
  cpuSeconds(): number
}

/** Starts one server for each name; they stop when the work has ended. */
export async function withServers<T>(
  names: readonly string[],
  { citus }: { citus: boolean },
  work: (servers: PostgresServer[]) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'waystation-citus-'))
  if (is_root) chownSync(folder, ...idsOf('postgres'))
  const bin = run(['pg_config', '--bindir'])
  const data_folders: string[] = []
  try {
    const servers: PostgresServer[] = []
    for (const name of names) {
      const [data, port] = [join(folder, name), freePort()]
      asPostgres([
        join(bin, 'initdb'),
        '-D',
        data,
        '-A',
        'trust',
        '-U',
        'postgres',
        '-E',
        'UTF8',
        '--locale=C',
        '-N',
      ])
      const settings = [
        ...[
          `port=${port}`,
          'listen_addresses=127.0.0.1',
          `unix_socket_directories=${folder}`,
          'max_connections=500',
        ],
        ...(citus ? citus_settings : []),
      ].flatMap((setting) => ['-c', setting])
      const log = join(folder, `${name}.log`)
      asPostgres([join(bin, 'pg_ctl'), '-D', data, '-s', '-w', '-l', log, '-o', settings.join(' '), 'start'])
      data_folders.push(data)
      const pid = postmasterOf(data)
      servers.push({
        base_url: `postgres://postgres@127.0.0.1:${port}`,
        cpuSeconds: () => postgresMicros(pid) / 1e6,
      })
    }
    return await work(servers)
  } finally {
    for (const data of data_folders) stop(bin, data)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One that has ended already must not keep the others running. */
function stop(bin: string, data: string): void {
  try {
    asPostgres([join(bin, 'pg_ctl'), '-D', data, '-s', '-m', 'fast', 'stop'])
  } catch (error) {
    console.error((error as Error).message)
  }
}

const citus_settings = [
  ...['shared_preload_libraries=citus', 'max_prepared_transactions=500'],
  ...[`citus.shard_count=${shards}`, 'citus.max_adaptive_executor_pool_size=4'],
]

/** A new database on every server, the first of which coordinates the others. */
export async function newCitusDatabase(
  servers: readonly PostgresServer[],
  database: string,
): Promise<string> {
  for (const { base_url } of servers) {
    await tell(`${base_url}/postgres`, `create database ${database}`)
    await tell(`${base_url}/${database}`, 'create extension citus')
  }
  const of = ({ base_url }: PostgresServer) => `'${new URL(base_url).hostname}', ${new URL(base_url).port}`
  const [coordinator, ...workers] = servers as [PostgresServer, ...PostgresServer[]]
  const url = `${coordinator.base_url}/${database}`
  await tell(url, `select citus_set_coordinator_host(${of(coordinator)})`)
  for (const worker of workers) await tell(url, `select citus_add_node(${of(worker)})`)
  return url
}

export async function tell(url: string, statement: string): Promise<void> {
  const connection = new SQL({ url, max: 1 })
  try {
    await connection.unsafe(statement)
  } finally {
    await connection.close()
  }
}

function asPostgres(command: string[]): void {
  run(is_root ? ['runuser', '-u', 'postgres', '--', ...command] : command, tmpdir())
}

function idsOf(user: string): [uid: number, gid: number] {
  return [Number(run(['id', '-u', user])), Number(run(['id', '-g', user]))]
}

/** Returns what the command printed. Throws when it fails. */
export function run(command: string[], cwd?: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, {
    ...(cwd ? { cwd } : {}),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr.toString().trim()}`)
  return stdout.toString().trim()
}
