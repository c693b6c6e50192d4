// Folders that outlive a power cut: a name is on the disk once the folder that holds it was flushed.

import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Makes the folder and those above it that are missing, and flushes their names. `mode` as of mkdir(2). */
export function makeFolder(path: string, mode = 0o777): void {
  const last = resolve(path)
  const first = mkdirSync(last, { recursive: true, mode })
  if (first === undefined) return
  for (let folder = last; folder.length >= first.length; folder = dirname(folder))
    flushFolder(dirname(folder))
}

/** Flushes the names that a folder holds. */
export function flushFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
