// A backup as a file: it has its name once all of it is on the disk and was looked through. Beside it lies its checksum.

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { flushFolder } from '../base/folder.ts'

const piece_bytes = 1_048_576

/** True for a file that is there and, by its header, not a database in WAL mode: a backup is one file. */
export function isOneFile(path: string): boolean {
  if (!existsSync(path)) return false
  const header = Buffer.alloc(20)
  const file = openSync(path, 'r')
  try {
    readSync(file, header)
    return header[18] !== 2
  } finally {
    closeSync(file)
  }
}

/** SHA-256 in hex, and flushes the file. */
export function checksumOf(path: string): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const piece = Buffer.allocUnsafe(piece_bytes)
  const file = openSync(path, 'r')
  try {
    for (let length = readSync(file, piece); length > 0; length = readSync(file, piece))
      hasher.update(piece.subarray(0, length))
    return hasher.digest('hex')
  } finally {
    closeSync(file)
  }
}

export function flushFile(path: string): void {
  const file = openSync(path, 'r+')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Where the checksum of a backup lies, in the form of sha256sum(1). */
function checksumFile(path: string): string {
  return `${path}.sha256`
}

/** The checksum beside the backup; null when there is none. Throws when it is not one. */
export function keptChecksum(path: string): string | null {
  const file = checksumFile(path)
  if (!existsSync(file)) return null
  const [, sum] = /^([0-9a-f]{64}) [ *]/.exec(readFileSync(file, 'utf8')) ?? []
  if (sum === undefined) throw new Error(`${file} is not a checksum as sha256sum writes it`)
  return sum
}

/** The draft gets its name, with its checksum beside it. */
export function publish(draft: string, path: string): void {
  flushFile(draft)
  const sum = `${checksumOf(draft)}  ${basename(path)}\n`
  writeFileSync(checksumFile(path), sum, { mode: 0o600, flush: true })
  renameSync(draft, path)
  flushFolder(dirname(path))
}

/** The file and what SQLite keeps beside it. */
export function removeDraft(draft: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(draft + end, { force: true })
}

export function bytesOf(path: string): number {
  return statSync(path).size
}
