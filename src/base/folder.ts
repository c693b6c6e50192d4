// Folders that outlive a power cut: a name is on the disk once the folder that holds it was flushed.

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes the folder and those above it that are missing, from the top, and flushes the name of each before the next is
 * made. So only the last that is found can be one whose maker was killed before the flush, and its name is flushed too.
 * `mode` as of mkdir(2).
 */
export function makeFolder(path: string, mode = 0o777, flush: (folder: string) => void = flushFolder): void {
  const folder = resolve(path)
  const above = dirname(folder)
  if (!existsSync(folder) && above !== folder) makeFolder(above, mode, flush)
  const made = mkdirSync(folder, { recursive: true, mode }) !== undefined
  if (made) flush(above)
  else flushFound(above, flush)
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

/** Flushes names that were found, where this process may: what it may not flush, it has not made. */
export function flushFound(path: string, flush: (folder: string) => void = flushFolder): void {
  try {
    flush(path)
  } catch (error) {
    if (!may_not_flush.has((error as { code?: string }).code)) throw error
  }
}

const may_not_flush = new Set<string | undefined>(['EACCES', 'EPERM', 'EROFS', 'EINVAL', 'ENOTSUP'])
