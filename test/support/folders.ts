// Folders for databases that only this run needs.

import { mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system in memory, on Linux. */
const memory = '/dev/shm'
const free_bytes_min = 4 * 1024 ** 3
const prefix = 'waystation-run-'

let parent: string | undefined

/**
 * A new folder. In memory where there is room: a test of answers alone need not wait for a disk.
 * Tests of what survives a process or a crash use a disk, elsewhere.
 */
export function databaseFolder(): string {
  parent ??= memoryHasRoom() ? memory : tmpdir()
  return mkdtempSync(join(parent, `${prefix}${process.pid}-`))
}

export function isInMemory(path: string): boolean {
  return path.startsWith(`${memory}/`)
}

/** There is a file system in memory, and enough of it is free. */
export function memoryHasRoom(): boolean {
  try {
    removeLeftOver()
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= free_bytes_min
  } catch {
    return false
  }
}

/** A run that was killed leaves its databases, which would hold memory until the machine restarts. */
function removeLeftOver(): void {
  for (const name of readdirSync(memory)) {
    const pid = name.startsWith(prefix) && Number.parseInt(name.slice(prefix.length), 10)
    if (pid && !isAlive(pid)) rmSync(join(memory, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
