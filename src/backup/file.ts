// A backup as a file: it has its name once all of it is on the disk and was looked through. Beside it lies its checksum.

import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { flushFolder } from '../base/folder.ts'
import { explained } from '../db/space.ts'
import { takeLock } from '../db/sqlite-lock.ts'
import { secretsFile } from './sealed-secrets.ts'

const piece_bytes = 1_048_576

/** True for a file that is there and, by its header, not a database in WAL mode: a backup is one file. */
export function isOneFile(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false
  const header = Buffer.alloc(20)
  opened(path, 'r', (file) => readSync(file, header))
  return header[18] !== 2
}

/** SHA-256 in hex. */
export function checksumOf(path: string): string {
  const hasher = new Bun.CryptoHasher('sha256')
  const piece = Buffer.allocUnsafe(piece_bytes)
  opened(path, 'r', (file) => {
    for (let length = readSync(file, piece); length > 0; length = readSync(file, piece))
      hasher.update(piece.subarray(0, length))
  })
  return hasher.digest('hex')
}

export function flushFile(path: string): void {
  opened(path, 'r+', fsyncSync)
}

function opened(path: string, flags: 'r' | 'r+', use: (file: number) => unknown): void {
  const file = openSync(path, flags)
  try {
    use(file)
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

const beside_ends = ['.sha256', '.secrets']

/**
 * The draft gets its name, once its checksum and its secrets have theirs: a file of that name is never without them. Throws when
 * there is a file of that name meanwhile.
 */
export function publish(draft: string, path: string): void {
  flushFile(draft)
  const sum = `${checksumOf(draft)}  ${basename(path)}\n`
  writeFileSync(checksumFile(draft), sum, { mode: 0o600, flush: true })
  requireNoFile(path)
  try {
    for (const end of beside_ends) {
      if (existsSync(draft + end)) renameSync(draft + end, path + end)
      else rmSync(path + end, { force: true }) // of one that was interrupted
    }
    flushFolder(dirname(path))
    takeName(draft, path)
  } catch (error) {
    if (!existsSync(path)) for (const end of beside_ends) rmSync(path + end, { force: true })
    throw error
  }
}

export function requireNoFile(path: string): void {
  if (existsSync(path)) throw new Error(`the file ${path} already exists`)
}

/** The draft gets this name, and loses its own. Throws when there is a file of that name; then nothing was changed. */
export function takeName(draft: string, path: string): void {
  try {
    linkSync(draft, path)
    unlinkSync(draft)
  } catch (error) {
    const { code } = error as { code?: string }
    if (!has_no_links.has(code))
      throw code === 'EEXIST' ? new Error(`the file ${path} already exists`) : error
    requireNoFile(path)
    renameSync(draft, path)
  }
  flushFolder(dirname(path))
}

/** By file systems without hard links, such as exFAT. */
const has_no_links = new Set<string | undefined>(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/** The file and what lies beside it. */
export function removeDraft(draft: string): void {
  for (const end of ['', '-journal', '-wal', '-shm', ...beside_ends]) rmSync(draft + end, { force: true })
}

/** The draft of a database that is restored, beside where it will lie. */
export function restoringOf(database: string): string {
  return `${database}.restoring`
}

/**
 * For the one who holds the lock of the database. A restore that was killed at its very end has left it under two names, of which
 * one would be opened without the log of the other.
 */
export function removeRestoring(database: string | null): void {
  if (database !== null && database !== ':memory:') removeDraft(restoringOf(database))
}

/** A name for a draft of this file that no other has. */
export function draftOf(path: string): string {
  return `${path}.part-${crypto.randomUUID().slice(0, 8)}`
}

/** Beside a file while it is written. */
export function lockOf(path: string): string {
  return `${path}.part.lock`
}

/** Only one process writes a file. Throws when another one does, with this sentence. */
export function requireLock(path: string, held: string) {
  try {
    const lock = takeLock(lockOf(path))
    if (lock !== null) return lock
  } catch (error) {
    throw explained(error, path)
  }
  throw new Error(held)
}

/**
 * Drafts of this file that were interrupted. For the one who holds its lock. Throws for secrets without a backup, which nobody but
 * the operator has kept: the new backup would take their name. An interrupted backup has left its draft beside its own.
 */
export function removeDrafts(path: string): void {
  const folder = dirname(path)
  const draft = `${basename(path)}.part`
  const drafts = readdirSync(folder).filter((name) => name === draft || name.startsWith(`${draft}-`))
  const secrets = secretsFile(path)
  requireNoFile(path) // one that was written meanwhile has secrets of its own
  if (drafts.length === 0 && existsSync(secrets))
    throw new Error(
      `${secrets} may be the only copy of a SECRET_KEY, and would be lost: move it away, or name another file`,
    )
  for (const name of drafts) rmSync(join(folder, name), { force: true })
}
