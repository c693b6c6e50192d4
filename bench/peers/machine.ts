// The machine of a result, without its name.

import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { wrk_binary } from '../load.ts'
import { temporaryFolder } from '../processes.ts'
import { median } from '../table.ts'
import { nodeVersion } from './packages.ts'
import { versionOf } from './peer.ts'
import type { Machine } from './result.ts'

const flushes_count = 200
const page_bytes = 4_096

export function thisMachine(): Machine {
  const { folder, remove } = temporaryFolder()
  const machine = {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 1024 ** 3),
    kernel: release().split('-')[0]!,
    file_system: fileSystemOf(folder),
    flush_ms: flushMillis(join(folder, 'flush')),
    versions: versions(),
  }
  remove()
  return machine
}

function versions(): Record<string, string> {
  const node = nodeVersion()
  const wrk = versionOf([wrk_binary!, '-v'], /wrk (?:debian\/)?(\d[\d.]*)/)
  return { Bun: Bun.version, ...(node ? { Node: node } : {}), wrk: wrk ?? 'unknown' }
}

function flushMillis(file: string): number {
  const fd = openSync(file, 'w')
  const page = new Uint8Array(page_bytes)
  const took = Array.from({ length: flushes_count }, () => {
    writeSync(fd, page)
    const began = performance.now()
    fdatasyncSync(fd)
    return performance.now() - began
  })
  closeSync(fd)
  return median(took)
}

/** Of the longest mount point that the folder is below. */
function fileSystemOf(folder: string): string {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
  const below = mounts.filter(([, point]) => `${folder}/`.startsWith(point === '/' ? '/' : `${point}/`))
  return below.toSorted((one, other) => other[1]!.length - one[1]!.length)[0]?.[2] ?? 'unknown file system'
}
