// The files that a process has open, by where they were: one that was removed or replaced is still written, and is lost
// when the process ends ("How To Corrupt An SQLite Database File", section 2.4).

import { type BigIntStats, statfsSync, statSync } from 'node:fs'
import { basename } from 'node:path'

/** statfs(2), f_type, of file systems in user space: the number of a file may change while it is open. */
const fuse = 0x65735546

export class OpenFiles {
  readonly #known: Map<string, string | null>

  /** Of files that are there. Throws for one that is not. */
  constructor(paths: readonly string[]) {
    this.#known = new Map(paths.map((path) => [path, nameAt(path)]))
  }

  /** A sentence without its first capital and its full stop, on the first that is not where it was; null when all are. */
  removed(): string | null {
    for (const [path, known] of this.#known) {
      const found = statOf(path)
      if (!found || (known !== null && known !== nameOf(found)))
        return `the file ${basename(path)} was removed or replaced while the service had it open`
    }
    return null
  }
}

/** Null where a file has none that lasts. Throws when there is no such file. */
function nameAt(path: string): string | null {
  const found = statOf(path)
  if (!found) throw new Error(`there is no file ${path}`)
  return statfsSync(path).type === fuse ? null : nameOf(found)
}

function statOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })
}

/** Of a file among all of this machine. */
function nameOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`
}
