// The settings of connections to both engines: those that are made, and those without which nothing is served.

import { limit } from '../base/limit.ts'

/** Pages in the write-ahead log when it is checkpointed, and what that many take with their headers. */
export const log_pages = 4_000
export const log_bytes = log_pages * (4_096 + 24)

/** The set-up of every SQLite connection; the settings that durability depends on are read back and judged by `unsafeSqlite`. */
export const sqlite_pragmas = [
  'pragma busy_timeout = 5000',
  'pragma journal_mode = wal',
  'pragma synchronous = full',
  'pragma foreign_keys = on',
  'pragma trusted_schema = off',
  `pragma wal_autocheckpoint = ${log_pages}`, // pages of 4 KiB: 16 MB
  'pragma journal_size_limit = 67108864', // bytes
  'pragma cache_size = -16384', // KiB
  'pragma temp_store = memory',
]

export const connections_default = limit(
  'postgres.connections',
  12,
  'connections',
  'Connections of a process to PostgreSQL; requests that need one wait, in fair order between tenants.',
  'DATABASE_CONNECTIONS',
)

/** The time that a caller waits for PostgreSQL. The server ends a statement a little earlier, and a wait for a lock before. */
export const answer_ms_max = limit(
  'postgres.answer_ms',
  2_800,
  'milliseconds',
  'Bounds how long a request waits for PostgreSQL; past it the answer is UNAVAILABLE, or OUTCOME_UNKNOWN once a commit was sent.',
)
export const pool_wait_ms_max = limit(
  'postgres.pool_wait_ms',
  750,
  'milliseconds',
  'How long the first request of a tenant may have waited for a connection; past it the next of that tenant are refused as UNAVAILABLE, while others continue. Due work waits.',
)
export const pool_late_ms_max = limit(
  'postgres.pool_late_ms',
  1_000,
  'milliseconds',
  'How long a tenant that has no connection may wait for one; past it new statements and transactions of all tenants that would wait are refused as UNAVAILABLE. Due work, and what stops agents, revokes keys and decides, waits instead.',
)
const statement_ms_max = limit(
  'postgres.statement_ms',
  2_500,
  'milliseconds',
  'Bounds a statement of a request on PostgreSQL: the server ends it before its caller has gone.',
)
const lock_ms_max = limit(
  'postgres.lock_ms',
  2_000,
  'milliseconds',
  'Bounds the wait for the lock of a row on PostgreSQL; past it the answer is UNAVAILABLE.',
)

/**
 * Sent when a PostgreSQL connection opens. Times in milliseconds. Every statement is written to walk an index, in its
 * order, as far as its limit. Statistics that are absent, or older than a burst, must not lead it to read a table and
 * sort what it finds: off means that this is left for where there is no other way. Such a plan is estimated so dear that
 * it would be compiled first, which takes seconds.
 */
export const postgres_session = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
  application_name: 'waystation',
  statement_timeout: String(statement_ms_max),
  lock_timeout: String(lock_ms_max),
  idle_in_transaction_session_timeout: '10000',
  default_transaction_isolation: 'read committed',
  row_security: 'on', // off: a statement fails where a policy would hide a row
}

/**
 * Sent as well to a server that knows them, idle_session_timeout since PostgreSQL 14 and transaction_timeout since 17: a pool is
 * idle by nature, and a migration or a sweep takes longer than what an operator allows other programs.
 */
export const newer_session = { idle_session_timeout: '0', transaction_timeout: '0' }

/** As the engine reports them. */
export type Settings = Record<string, string | number>

/** The reason that this SQLite set-up could lose an acknowledged write, or null when it cannot. */
export function unsafeSqlite(settings: Settings): string | null {
  if (olderThan(String(settings.sqlite_version), '3.51.3')) {
    return `SQLite ${settings.sqlite_version} has the WAL-reset bug; 3.51.3 or newer is needed`
  }
  if (settings.journal_mode !== 'wal') return `journal_mode is ${settings.journal_mode}, not wal`
  if (!(Number(settings.synchronous) >= 2)) return `synchronous is ${settings.synchronous}, not 2 (full)`
  if (Number(settings.foreign_keys) !== 1) return 'foreign_keys is off'
  const network = network_file_systems.get(Number(settings.file_system))
  if (network) return `the database is on a network file system (${network})`
  return null
}

/** The reason that this PostgreSQL set-up could lose an acknowledged write or sort wrongly, or null when it cannot. */
export function unsafePostgres(settings: Settings): string | null {
  for (const name of ['fsync', 'full_page_writes']) {
    if (settings[name] !== 'on') return `${name} is ${settings[name]}, not on`
  }
  if (settings.synchronous_commit !== 'on' && settings.synchronous_commit !== 'remote_apply') {
    return `synchronous_commit is ${settings.synchronous_commit}, not on`
  }
  if (settings.server_encoding !== 'UTF8') return `server_encoding is ${settings.server_encoding}, not UTF8`
  if (Number(settings.collation_c) !== 1) return 'collation "C" is missing'
  return null
}

// statfs(2), f_type. SQLite's "How To Corrupt", section 2.1: their locks cannot be relied on.
const network_file_systems = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x73757245, 'Coda'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
])

/** Compares dotted versions, number by number. */
export function olderThan(version: string, least: string): boolean {
  const have = version.split('.').map(Number)
  const need = least.split('.').map(Number)
  for (let i = 0; i < need.length; i++) {
    if ((have[i] ?? 0) !== need[i]) return !((have[i] ?? 0) > need[i]!) // a part that is not a number counts as older
  }
  return false
}
