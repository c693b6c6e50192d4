// The service as its own process, as an operator runs it: for tests of its start, and of its sudden end.

import { join } from 'node:path'
import { notInQuickRun } from './quick.ts'

const root = join(import.meta.dir, '..', '..')

export interface ServerProcess {
  /** `http://127.0.0.1:port` */
  url: string
  pid: number
  /** Its output when it was ready. */
  banner: string
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
}

export interface RefusedStart {
  exit_code: number
  stdout: string
  stderr: string
}

type Environment = Record<string, string>

const own_command = [process.execPath, join(root, 'src/main.ts')]

/** A server that may not have begun to listen yet. */
export function spawnServer(environment: Environment, command = own_command) {
  notInQuickRun('service as a process')
  return Bun.spawn(command, {
    cwd: root,
    // Settings of the user who runs the tests must not reach it.
    env: { PATH: process.env.PATH ?? '', PORT: '0', LOG_LEVEL: 'error', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

/**
 * Resolves when it is ready. Throws with what it printed when it ends instead. `instead` is another command that
 * does the same.
 */
export async function startServer(environment: Environment, instead = own_command): Promise<ServerProcess> {
  const child = spawnServer(environment, instead)
  const stderr = new Response(child.stderr).text()
  const decoder = new TextDecoder()
  const reader = child.stdout.getReader()
  let banner = ''
  while (!banner.includes('first call')) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the server ended with ${await child.exited}: ${banner}${await stderr}`)
    banner += decoder.decode(value, { stream: true })
  }
  return {
    url: /address +(\S+)/.exec(banner)![1]!,
    pid: child.pid,
    banner,
    async stop() {
      child.kill('SIGTERM')
      return child.exited
    },
    async kill() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Starts a server that is expected to refuse. One that serves is stopped, and that throws. */
export async function refusedStart(environment: Environment): Promise<RefusedStart> {
  const child = spawnServer(environment)
  const stderr = new Response(child.stderr).text()
  let stdout = ''
  for await (const bytes of child.stdout) {
    stdout += new TextDecoder().decode(bytes)
    if (!stdout.includes('first call')) continue
    child.kill('SIGKILL')
    await child.exited
    throw new Error(`the server started: ${stdout}`)
  }
  return { exit_code: await child.exited, stdout, stderr: await stderr }
}
