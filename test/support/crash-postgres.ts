// A PostgreSQL of its own that tests may kill and start again, and a wire to one that tests may cut.

import { spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { freePort } from './ports.ts'
import { dropPostgresDatabase, newPostgresDatabase } from './postgres.ts'

export interface CrashCluster {
  /** `postgres://…@127.0.0.1:port/postgres` */
  url: string
  /** `pg_ctl stop -m immediate`: as if the power had failed, save for what lies in the page cache. */
  stopImmediately(): Promise<void>
  start(): Promise<void>
  /** Makes a standby, with which every commit of this cluster waits from now on. Returns its URL; it ends with the cluster. */
  addStandby(): Promise<string>
  remove(): Promise<void>
}

/** A new, running cluster with real fsync. */
export async function startCrashCluster(): Promise<CrashCluster> {
  const owner = await whatRunsPostgres()
  const folder = mkdtempSync(join(tmpdir(), 'waystation-crash-'))
  chmodSync(folder, 0o711)
  const primary = new Server(owner, join(folder, 'data'))
  mkdirSync(primary.data)
  chownSync(primary.data, owner.uid, owner.gid)
  await primary.run(
    ...['initdb', '--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
  )
  const servers = [primary]
  await primary.start()
  return {
    url: primary.url,
    stopImmediately: () => primary.stop('immediate'),
    start: () => primary.start(),
    async addStandby() {
      const standby = new Server(owner, join(folder, 'standby'))
      servers.push(standby)
      await primary.stop('fast')
      cpSync(primary.data, standby.data, { recursive: true })
      follow(standby, primary.url)
      for (const file of readdirSync(standby.data, { recursive: true, encoding: 'utf8' }))
        chownSync(join(standby.data, file), owner.uid, owner.gid)
      chownSync(standby.data, owner.uid, owner.gid)
      appendFileSync(join(primary.data, 'postgresql.auto.conf'), "synchronous_standby_names = '*'\n")
      await standby.start()
      await primary.start()
      return standby.url
    },
    async remove() {
      for (const server of servers) await server.stop('immediate')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Settings of a server that was a copy of another one. */
function follow({ data }: Server, url: string): void {
  const { hostname, port, username } = new URL(url)
  writeFileSync(join(data, 'standby.signal'), '')
  appendFileSync(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${hostname} port=${port} user=${username}'\n`,
  )
}

interface Owner {
  bin: string
  uid: number
  gid: number
}

class Server {
  readonly #port = freePort()
  readonly url = `postgres://postgres@127.0.0.1:${this.#port}/postgres`
  #is_running = false

  constructor(
    private readonly owner: Owner,
    readonly data: string,
  ) {}

  run(program: string, ...args: string[]): Promise<void> {
    const { bin, uid, gid } = this.owner
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Without pipes: the server inherits them from pg_ctl and would hold them open.
    const child = spawn(join(bin, program), ['-D', this.data, ...args], {
      ...{ uid, gid, stdio: 'ignore' },
      cwd: dirname(this.data),
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args.join(' ')} ended with ${code}`)),
    )
    return promise
  }

  async start(): Promise<void> {
    const options = `-p ${this.#port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=`
    await this.run('pg_ctl', '-w', '-l', join(this.data, 'log'), '-o', options, 'start')
    this.#is_running = true
  }

  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    if (!this.#is_running) return
    await this.run('pg_ctl', '-w', '-m', mode, 'stop')
    this.#is_running = false
  }
}

/** The programs, and as root the user, with which the cluster of the run was started. */
async function whatRunsPostgres(): Promise<Owner> {
  const url = await newPostgresDatabase()
  const connection = new SQL({ url, max: 1 })
  const [{ data_directory }] = await connection.unsafe('show data_directory')
  await connection.close()
  await dropPostgresDatabase(url)
  const command = readFileSync(join(data_directory, 'postmaster.opts'), 'utf8')
  const { uid, gid } = statSync(data_directory)
  return { bin: dirname(command.slice(0, command.indexOf(' '))), uid, gid }
}

/** Sees what goes to the server before it does. A promise holds it back, and what comes after it, until it resolves. */
export type Tap = (bytes: Buffer) => 'pass' | 'cut_before' | 'cut_after' | 'swallow' | Promise<void>

export interface Wire {
  /** The URL of the same database, by way of this wire. */
  url: string
  /**
   * Every piece of what clients send. `cut_before`: the piece does not reach the server, and the connection is
   * gone. `cut_after`: the server gets it, the client gets no answer, and the connection is gone. `swallow`: the piece does not reach the server,
   * and nothing is said any more on the connection, which stays open.
   */
  tap: Tap
  close(): void
}

/** A TCP wire to the server of this URL. */
export async function wireTo(url: string): Promise<Wire> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const listener = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    let deaf = false
    let silent = false
    for (const end of [client, server]) {
      sockets.add(end)
      end.on('error', () => {})
      end.on('close', () => cut())
    }
    const cut = () => {
      for (const end of [client, server]) {
        end.destroy()
        sockets.delete(end)
      }
    }
    client.on('data', (bytes) => {
      const fate = wire.tap(Buffer.from(bytes))
      if (fate instanceof Promise) {
        client.pause()
        fate.then(() => {
          server.write(bytes)
          client.resume()
        })
        return
      }
      if (fate === 'cut_before') return cut()
      silent ||= fate === 'swallow'
      if (silent) return
      deaf ||= fate === 'cut_after'
      server.write(bytes)
    })
    // With `cut_after`, the first bytes of the server are its answer: it has done what it was asked.
    server.on('data', (bytes) => (deaf ? cut() : client.write(bytes)))
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const through = new URL(url)
  through.port = String((listener.address() as AddressInfo).port)
  const wire: Wire = {
    url: through.href,
    tap: () => 'pass',
    close() {
      listener.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  return wire
}
