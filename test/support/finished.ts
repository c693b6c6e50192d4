// A process that has ended, with all that it wrote.

import type { Subprocess } from 'bun'

export interface Finished {
  exit_code: number
  stdout: string
  stderr: string
}

export async function finished(
  child: Subprocess<'ignore' | 'pipe' | Uint8Array | number, 'pipe', 'pipe'>,
): Promise<Finished> {
  const [stdout, stderr, exit_code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { exit_code, stdout, stderr }
}
