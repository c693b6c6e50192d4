// The peers that come from npm: installed beside this file at first use, and run on the Node that comes with them.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, cores, end, start } from '../processes.ts'

const here = import.meta.dir
const node_min = [22, 18]

interface Lock {
  packages: Record<string, { version?: string; optional?: boolean }>
}

let missing: string | null | undefined

/** Why packages of npm cannot be measured here, or null. Runs `npm ci` when they are not installed. */
export function packagesMissing(): string | null {
  if (missing === undefined) missing = install()
  return missing
}

function install(): string | null {
  if (!isInstalled()) {
    console.error('… installing the peers of npm: npm ci in bench/peers')
    const npm = Bun.which('npm')
    if (!npm) return 'npm is not installed'
    const { exitCode, stderr } = Bun.spawnSync([npm, 'ci', '--no-audit', '--no-fund'], {
      cwd: here,
      stdout: 'ignore',
    })
    if (exitCode !== 0)
      return `npm ci in bench/peers failed: ${/npm error code (\w+)/.exec(stderr.toString())?.[1] ?? 'unknown error'}`
  }
  return node() ? null : `Node ${node_min.join('.')} or newer is not installed`
}

function isInstalled(): boolean {
  return Object.entries(lock().packages).every(([path, { version, optional }]) => {
    if (path === '' || optional) return true
    const file = join(here, path, 'package.json')
    return (
      existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version === version
    )
  })
}

function lock(): Lock {
  return JSON.parse(readFileSync(join(here, 'package-lock.json'), 'utf8')) as Lock
}

/** `Fastify 5.12.8` for `fastify`, as the lock says. */
export function versionOfPackage(name: string): string {
  return lock().packages[`node_modules/${name}`]?.version ?? '(version unknown)'
}

/** The Node of the lock, or that of the system when it is new enough. */
function node(): string | null {
  const platform = `node-${process.platform}-${process.arch}`
  const bundled = join(here, 'node_modules', platform, 'bin/node')
  const found = existsSync(bundled) ? bundled : Bun.which('node')
  return found && isNewEnough(nodeVersion(found)) ? found : null
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > node_min[0]! || (major === node_min[0] && minor >= node_min[1]!)
}

export function nodeVersion(binary = node()): string {
  return binary ? Bun.spawnSync([binary, '--version']).stdout.toString().trim().replace('v', '') : ''
}

export interface Program {
  pid: number
  port: number
  stop(): Promise<void>
}

const start_ms_max = 20_000

/** Starts a file of `programs/` on the server's core, and waits until it prints its port. */
export async function startProgram(name: string, args: string[]): Promise<Program> {
  const child = start([node()!, join(here, 'programs', `${name}.mjs`), ...args], {
    core: cores.server,
    cwd: here,
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'production' },
  })
  const errors = new Response(child.stderr).text()
  const port = await Promise.race([portOf(child), Bun.sleep(start_ms_max)])
  if (!port) {
    child.kill('SIGKILL')
    throw new Error(`${name} did not start: ${(await errors).trim()}`)
  }
  return {
    pid: child.pid,
    port,
    async stop() {
      await end(child)
      const said = (await errors).trim()
      if (said !== '') console.error(`${name} said:\n${said.slice(0, 2_000)}`)
    },
  }
}

/** Zero when it ends without one. The rest of what it prints is read, and lost. */
async function portOf(child: Child): Promise<number> {
  let text = ''
  const reader = child.stdout.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return 0
    text += new TextDecoder().decode(value)
    const [, port] = /^port (\d+)$/m.exec(text) ?? []
    if (port) {
      void (async () => {
        while (!(await reader.read()).done);
      })()
      return Number(port)
    }
  }
}
