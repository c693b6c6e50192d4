// The files that a process has open, by where they were: one that was removed or replaced is still written, and is lost
// when the process ends ("How To Corrupt An SQLite Database File", section 2.4).

import { type BigIntStats, statfsSync, statSync } from 'node:fs'
import { basename } from 'node:path'

/** statfs(2), f_type, of file systems in user space: the number of a file may change while it is open. */
const fuse = 0x65735546

export class OpenFiles {
  readonly #known: Map<string, string | null>
  #removed: string | null = null

  /** Of files that are there. Throws for one that is not. */
  constructor(paths: readonly string[]) {
    this.#known = new Map(paths.map((path) => [path, nameAt(path)]))
  }

  /** A sentence without its first capital and its full stop, on the file that was found missing; null until then. */
  get removed(): string | null {
    return this.#removed
  }

  /** Looks again. False for ever once one of them was not where it was. */
  areThere(): boolean {
    const missing = this.#removed === null && [...this.#known].find(([path, known]) => !isAt(path, known))
    if (missing)
      this.#removed = `the file ${basename(missing[0])} was removed or replaced while the service had it open`
    return this.#removed === null
  }
}

/** True as well where nobody can tell, as in a folder that may not be read any more. */
function isAt(path: string, known: string | null): boolean {
  try {
    const found = statOf(path)
    return found !== undefined && (known === null || known === nameOf(found))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR'
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
