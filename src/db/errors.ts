// Failures of the database: the engines' errors as those that callers distinguish.

import type { Engine, PostgresDialect } from './dialect.ts'

/**
 * unique: a unique index refused the row. busy: a lock or the queue could not be had in time. full: no disk space.
 * lost: the database is away, nothing was done. outcome_unknown: it went away while committing. damaged: the file of
 * the database cannot be read here, or is not written any more because some of it cannot.
 */
export type DbErrorKind = 'unique' | 'busy' | 'full' | 'lost' | 'outcome_unknown' | 'damaged'

/** A failure of the database that callers distinguish. Everything else is thrown as it came. */
export class DbError extends Error {
  override name = 'DbError'
  constructor(
    readonly kind: DbErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** The reason that a database which answers must not be served from, a sentence without its first capital and its full stop. */
export class Unready extends Error {}

/** True when the write that failed so may still have been committed. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof DbError && error.kind === 'outcome_unknown'
}

/** True while the database is away: nothing was done. */
export function isLost(error: unknown): error is DbError {
  return error instanceof DbError && error.kind === 'lost'
}

/** An error of opening a connection, with the address of the server: the driver says `Failed to connect` alone. */
export function namingServer(url: string, error: unknown): unknown {
  const known = translate('postgres', error)
  if (!isLost(known)) return error
  return new DbError('lost', `PostgreSQL at ${new URL(url).host}: ${known.message}`, { cause: known.cause })
}

/** True when the database did nothing, and may do it a little later. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof DbError && ['busy', 'full', 'lost'].includes(error.kind)
}

/** A driver's error as one of ours, or as it came when callers need not distinguish it. */
export function translate(engine: Engine, error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const kind = engine === 'sqlite' ? sqliteKind(error) : postgresKind(error)
  return kind ? new DbError(kind, error.message, { cause: error }) : error
}

function sqliteKind(error: Error & { code?: string }): DbError['kind'] | null {
  const code = error.code ?? ''
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY') return 'unique'
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return 'busy'
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return 'full' // the index of the log could not grow
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return 'damaged'
  return null
}

/** True for an error after which the content of the disk is unknown: the process must not continue. */
export function isIoError(error: unknown): boolean {
  const code = String((error as { code?: string } | null)?.code ?? '')
  return code.startsWith('SQLITE_IOERR') && code !== 'SQLITE_IOERR_SHMSIZE'
}

/** True when the system refused to write: nothing of that write is on the disk, or it is in pages that no commit names. */
export function isFailedWrite(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === 'SQLITE_IOERR_WRITE'
}

// PostgreSQL Appendix A, "Error Codes": class 08, 57P0x and 53300 mean that the server is not available, 3D000 and class 28
// that it does not let this service into the database, and the others of class 53 that it had not enough of something for this.
function postgresKind(
  error: Error & { code?: string; errno?: string; severity?: string },
): DbError['kind'] | null {
  const state = String(error.errno ?? '')
  if (endsConnection(error)) return 'lost'
  if (state === '23505') return 'unique'
  if (['55P03', '57014', '40P01', '40001', '53000', '53200', '53400'].includes(state)) return 'busy'
  if (state === '53100') return 'full'
  if (/^(08...|57P0[1-5]|53300|25006|3D000|28...)$/.test(state)) return 'lost' // 25006: read-only, as after a failover
  if (/^ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)/.test(error.code ?? '')) return 'lost'
  return null
}

/** True for an error with which the server refuses or ends a connection, for whatever reason. */
function endsConnection({ severity }: { severity?: string }): boolean {
  return severity === 'FATAL' || severity === 'PANIC'
}

/** unopened: no connection could be opened. ended: one is gone, and another may open or not. Null: it says nothing of connections. */
export function connectionFault(error: unknown): 'unopened' | 'ended' | null {
  const from_driver = (fromDriver(error) ?? {}) as { code?: string; severity?: string }
  const { code = '' } = from_driver
  if (/^ERR_POSTGRES_CONNECTION_(REFUSED|FAILED|TIMEOUT)$/.test(code)) return 'unopened'
  if (/^(57P03|53300|3D000|28...)$/.test(stateOf(error))) return 'unopened'
  return endsConnection(from_driver) || /^ERR_POSTGRES_(CONNECTION|TLS)/.test(code) ? 'ended' : null
}

/**
 * True when a transaction may have been committed although this was the answer to its COMMIT. Citus commits on a worker
 * before it commits here, and answers with an error of its own when the worker's answer is lost: only a violated
 * constraint, a deadlock and a serialization failure are certain to come before that.
 */
export function mayBeCommitted(dialect: PostgresDialect, error: unknown): boolean {
  const known = translate('postgres', error)
  if (isLost(known)) return true
  return dialect === 'citus' && !/^(23...|40001|40P01)$/.test(stateOf(known))
}

/** PostgreSQL's code of an error; empty when the server did not send one. */
export function stateOf(error: unknown): string {
  return String((fromDriver(error) as { errno?: string } | null)?.errno ?? '')
}

/** The error that ours was made of. */
function fromDriver(error: unknown): unknown {
  return error instanceof DbError ? fromDriver(error.cause) : error
}

/** True for a write that a server refused which takes none. */
export function isReadOnly(error: unknown): boolean {
  return stateOf(error) === '25006'
}

/** True for a deadlock or serialization failure, unless it ended the connection at COMMIT: the whole transaction may be run again. */
export function isRetryable(error: unknown): boolean {
  return !isOutcomeUnknown(error) && ['40P01', '40001'].includes(stateOf(error))
}

/** True when another transaction held for too long what this one had to wait for. */
export function isLockTimeout(error: unknown): boolean {
  return ['55P03', '57014'].includes(stateOf(error))
}

/** True when PostgreSQL had not enough of something: with the same statement it may never have. */
export function lacksResources(error: unknown): boolean {
  return stateOf(error).startsWith('53')
}
