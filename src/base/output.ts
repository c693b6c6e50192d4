// Text for an open file, such as standard output: all of it, or an error.

import { writeSync } from 'node:fs'

/** A full pipe is tried again this soon. */
const full_pipe_ms = 5

/** Returns once the system has taken the whole text. Throws when it does not: the disk is full, or nobody reads. */
export function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(fd, bytes, written)
    } catch (error) {
      if ((error as { code?: string }).code !== 'EAGAIN') throw error
      Bun.sleepSync(full_pipe_ms)
    }
  }
}
