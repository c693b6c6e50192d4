// Child processes of the attacks, and the certainty that none of them stays behind.

import type { Subprocess } from 'bun'

export type Child = Subprocess<'ignore', 'pipe' | 'ignore', 'pipe' | 'inherit' | 'ignore'>

const children = new Set<Child>()

export interface Start {
  cwd?: string
  env?: Record<string, string>
  stdout?: 'pipe' | 'ignore'
  stderr?: 'pipe' | 'inherit' | 'ignore'
  onMessage?: (message: unknown) => void
}

export function startChild(cmd: string[], { cwd, env, stdout, stderr, onMessage }: Start = {}): Child {
  const child = Bun.spawn(cmd, {
    stdin: 'ignore',
    stdout: stdout ?? 'ignore',
    stderr: stderr ?? 'inherit',
    ...(cwd ? { cwd } : {}),
    ...(env ? { env } : {}),
    ...(onMessage ? { ipc: onMessage } : {}),
  }) as Child
  children.add(child)
  void child.exited.then(() => children.delete(child))
  return child
}

/** Kills the child unless it has ended, and waits until it has. */
export async function kill(child: Child): Promise<void> {
  if (child.exitCode === null) child.kill('SIGKILL')
  await child.exited
}

export async function killAll(): Promise<void> {
  await Promise.all([...children].map(kill))
}

const nice = Bun.which('nice')

/** A load gives way to the service and to the probe, so that it is the service that makes the probe wait. */
export function giveWay(cmd: string[]): string[] {
  return nice ? [nice, '-n', '10', ...cmd] : cmd
}
