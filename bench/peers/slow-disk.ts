// A slower disk than the machine has: a library that is preloaded into a server and sleeps in each of its flushes.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { undoLater } from '../processes.ts'

const compiler = Bun.which('cc') ?? Bun.which('gcc') ?? Bun.which('clang')
let library: string | undefined

/** Why the disk cannot be made slower here, or null. */
export const slow_disk_missing = compiler ? null : 'a C compiler (cc) is needed to make the disk slower'

/** The environment variables that slow down the disk of a server. */
export function slowDisk(flush_delay_ms: number): Record<string, string> {
  if (flush_delay_ms === 0) return {}
  library ??= compile()
  return { LD_PRELOAD: library, FLUSH_DELAY_MS: String(flush_delay_ms) }
}

function compile(): string {
  if (!compiler) throw new Error(slow_disk_missing!)
  const folder = mkdtempSync(join(tmpdir(), 'waystation-flush-'))
  undoLater(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'slow-flush.so')
  const source = join(import.meta.dir, 'slow-flush.c')
  const { exitCode, stderr } = Bun.spawnSync([
    compiler,
    '-O2',
    '-shared',
    '-fPIC',
    '-o',
    file,
    source,
    '-ldl',
  ])
  if (exitCode !== 0) throw new Error(`${compiler} failed: ${stderr}`)
  return file
}
