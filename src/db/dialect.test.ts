import { describe, expect, test } from 'bun:test'
import {
  olderThan,
  postgres_session,
  sqlite_pragmas,
  unsafePostgres,
  unsafeSqlite,
} from './connection-settings.ts'
import { render, sqliteText, tokens } from './dialect.ts'
import { DbError, isIoError, isRetryable, translate } from './errors.ts'

type Settings = Record<string, string | number>

describe('an unsafe SQLite', () => {
  const ext4 = 0xef53
  const good: Settings = {
    sqlite_version: '3.54.1',
    journal_mode: 'wal',
    synchronous: 2,
    foreign_keys: 1,
    file_system: ext4,
  }

  const safe: [string, Settings][] = [
    ['the usual set-up', {}],
    ['the first version without the WAL-reset bug', { sqlite_version: '3.51.3' }],
    ['synchronous = extra', { synchronous: 3 }],
    ['btrfs', { file_system: 0x9123683e }],
    ['xfs', { file_system: 0x58465342 }],
    ['tmpfs', { file_system: 0x01021994 }],
    ['zfs', { file_system: 0x2fc12fc1 }],
  ]
  test.each(safe)('%s is taken', (_, change) => {
    expect(unsafeSqlite({ ...good, ...change })).toBeNull()
  })

  const unsafe: [string, Settings, string][] = [
    [
      'the last version with the WAL-reset bug',
      { sqlite_version: '3.51.2' },
      'SQLite 3.51.2 has the WAL-reset bug; 3.51.3 or newer is needed',
    ],
    [
      'a much older version',
      { sqlite_version: '3.7.0' },
      'SQLite 3.7.0 has the WAL-reset bug; 3.51.3 or newer is needed',
    ],
    ['a rollback journal', { journal_mode: 'delete' }, 'journal_mode is delete, not wal'],
    ['a truncated journal', { journal_mode: 'truncate' }, 'journal_mode is truncate, not wal'],
    ['a journal in memory', { journal_mode: 'memory' }, 'journal_mode is memory, not wal'],
    ['no journal', { journal_mode: 'off' }, 'journal_mode is off, not wal'],
    ['synchronous = normal', { synchronous: 1 }, 'synchronous is 1, not 2 (full)'],
    ['synchronous = off', { synchronous: 0 }, 'synchronous is 0, not 2 (full)'],
    ['foreign keys off', { foreign_keys: 0 }, 'foreign_keys is off'],
    ['NFS', { file_system: 0x6969 }, 'the database is on a network file system (NFS)'],
    ['SMB', { file_system: 0x517b }, 'the database is on a network file system (SMB)'],
    ['CIFS', { file_system: 0xff534d42 }, 'the database is on a network file system (CIFS)'],
    ['SMB2', { file_system: 0xfe534d42 }, 'the database is on a network file system (SMB2)'],
    ['AFS', { file_system: 0x5346414f }, 'the database is on a network file system (AFS)'],
    ['Coda', { file_system: 0x73757245 }, 'the database is on a network file system (Coda)'],
    ['Ceph', { file_system: 0x00c36400 }, 'the database is on a network file system (Ceph)'],
    ['Lustre', { file_system: 0x0bd00bd0 }, 'the database is on a network file system (Lustre)'],
    ['GPFS', { file_system: 0x47504653 }, 'the database is on a network file system (GPFS)'],
  ]
  test.each(unsafe)('%s is refused', (_, change, why) => {
    expect(unsafeSqlite({ ...good, ...change })).toBe(why)
  })

  test.each(Object.keys(good).filter((name) => name !== 'file_system'))(
    'a SQLite that does not report its %s is refused',
    (name) => {
      const { [name]: _, ...rest } = good
      expect(unsafeSqlite(rest)).toBeString()
    },
  )
})

describe('an unsafe PostgreSQL', () => {
  const good: Settings = {
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    server_encoding: 'UTF8',
    server_version: '18.4',
    collation_c: '1',
  }

  const safe: [string, Settings][] = [
    ['the usual set-up', {}],
    ['synchronous_commit = remote_apply, which is stricter', { synchronous_commit: 'remote_apply' }],
  ]
  test.each(safe)('%s is taken', (_, change) => {
    expect(unsafePostgres({ ...good, ...change })).toBeNull()
  })

  const unsafe: [string, Settings, string][] = [
    ['fsync = off', { fsync: 'off' }, 'fsync is off, not on'],
    ['full_page_writes = off', { full_page_writes: 'off' }, 'full_page_writes is off, not on'],
    ['synchronous_commit = off', { synchronous_commit: 'off' }, 'synchronous_commit is off, not on'],
    ['synchronous_commit = local', { synchronous_commit: 'local' }, 'synchronous_commit is local, not on'],
    [
      'synchronous_commit = remote_write',
      { synchronous_commit: 'remote_write' },
      'synchronous_commit is remote_write, not on',
    ],
    ['another encoding', { server_encoding: 'LATIN1' }, 'server_encoding is LATIN1, not UTF8'],
    ['SQL_ASCII', { server_encoding: 'SQL_ASCII' }, 'server_encoding is SQL_ASCII, not UTF8'],
    ['a missing collation "C"', { collation_c: '0' }, 'collation "C" is missing'],
  ]
  test.each(unsafe)('%s is refused', (_, change, why) => {
    expect(unsafePostgres({ ...good, ...change })).toBe(why)
  })

  test.each(Object.keys(good).filter((name) => name !== 'server_version'))(
    'a PostgreSQL that does not report its %s is refused',
    (name) => {
      const { [name]: _, ...rest } = good
      expect(unsafePostgres(rest)).toBeString()
    },
  )
})

test.each([
  ['1.4.4', '1.4.5', true],
  ['1.4.5', '1.4.5', false],
  ['1.4.6', '1.4.5', false],
  ['1.3.14', '1.4.5', true],
  ['1.10.0', '1.9.9', false],
  ['1.9.9', '1.10.0', true],
  ['2.0.0', '1.4.5', false],
  ['0.9.9', '1.0.0', true],
  ['3.51', '3.51.3', true],
  ['3.52', '3.51.3', false],
  ['3.51.3.1', '3.51.3', false],
] as [string, string, boolean][])('version %s is older than %s: %p', (version, least, expected) => {
  expect(olderThan(version, least)).toBe(expected)
})

describe('errors of the driver', () => {
  const sqlite = (code: string) => Object.assign(new Error('from SQLite'), { code })
  const postgres = (errno: string) =>
    Object.assign(new Error('from PostgreSQL'), { errno, code: 'ERR_POSTGRES_SERVER_ERROR' })
  const fatal = (errno: string, severity = 'FATAL') => Object.assign(postgres(errno), { severity })
  const connection = (code: string) => Object.assign(new Error('from Bun'), { code })

  const known = [
    ['sqlite', sqlite('SQLITE_CONSTRAINT_UNIQUE'), 'unique'],
    ['sqlite', sqlite('SQLITE_CONSTRAINT_PRIMARYKEY'), 'unique'],
    ['sqlite', sqlite('SQLITE_BUSY'), 'busy'],
    ['sqlite', sqlite('SQLITE_BUSY_SNAPSHOT'), 'busy'],
    ['sqlite', sqlite('SQLITE_BUSY_RECOVERY'), 'busy'],
    ['sqlite', sqlite('SQLITE_LOCKED'), 'busy'],
    ['sqlite', sqlite('SQLITE_LOCKED_SHAREDCACHE'), 'busy'],
    ['sqlite', sqlite('SQLITE_FULL'), 'full'],
    ['postgres', postgres('23505'), 'unique'],
    ['postgres', postgres('55P03'), 'busy'], // lock_not_available
    ['postgres', postgres('57014'), 'busy'], // query_canceled, by statement_timeout
    ['postgres', postgres('53100'), 'full'], // disk_full
    ['postgres', postgres('53000'), 'busy'], // insufficient_resources
    ['postgres', postgres('53200'), 'busy'], // out_of_memory
    ['postgres', postgres('53400'), 'busy'], // configuration_limit_exceeded, such as temp_file_limit
    ['postgres', postgres('53300'), 'lost'], // too_many_connections
    ['postgres', postgres('57P01'), 'lost'], // admin_shutdown
    ['postgres', postgres('57P02'), 'lost'], // crash_shutdown
    ['postgres', postgres('57P03'), 'lost'], // cannot_connect_now
    ['postgres', postgres('57P05'), 'lost'], // idle_session_timeout
    ['postgres', postgres('08006'), 'lost'], // connection_failure
    ['postgres', postgres('08P01'), 'lost'], // protocol_violation
    ['postgres', fatal('25P03'), 'lost'], // idle_in_transaction_session_timeout
    ['postgres', fatal('42501'), 'lost'], // insufficient_privilege: permission denied for database
    ['postgres', fatal('55000'), 'lost'], // object_not_in_prerequisite_state: the database accepts no connections
    ['postgres', fatal('53200'), 'lost'], // out_of_memory
    ['postgres', fatal('XX000'), 'lost'], // internal_error, of poolers as well
    ['postgres', fatal('XX000', 'PANIC'), 'lost'],
    ['postgres', connection('ERR_POSTGRES_CONNECTION_CLOSED'), 'lost'],
    ['postgres', connection('ERR_POSTGRES_CONNECTION_REFUSED'), 'lost'],
    ['postgres', connection('ERR_POSTGRES_CONNECTION_TIMEOUT'), 'lost'],
    ['postgres', connection('ERR_POSTGRES_IDLE_TIMEOUT'), 'lost'],
    ['postgres', connection('ERR_POSTGRES_LIFETIME_TIMEOUT'), 'lost'],
  ] as const
  test.each(known)('on %s, %o is told to callers as %s', (engine, error, kind) => {
    const told = translate(engine, error) as DbError
    expect(told).toBeInstanceOf(DbError)
    expect({ kind: told.kind, message: told.message, cause: told.cause }).toEqual({
      kind,
      message: error.message,
      cause: error,
    })
  })

  const others = [
    ['sqlite', sqlite('SQLITE_CONSTRAINT_NOTNULL')],
    ['sqlite', sqlite('SQLITE_CONSTRAINT_FOREIGNKEY')],
    ['sqlite', sqlite('SQLITE_CONSTRAINT_CHECK')],
    ['sqlite', sqlite('SQLITE_ERROR')],
    ['sqlite', postgres('23505')],
    ['postgres', postgres('23502')], // not_null_violation
    ['postgres', postgres('23503')], // foreign_key_violation
    ['postgres', postgres('23514')], // check_violation
    ['postgres', postgres('42501')], // insufficient_privilege
    ['postgres', postgres('55000')], // object_not_in_prerequisite_state
    ['postgres', postgres('42601')], // syntax_error
    ['postgres', Object.assign(postgres('XX000'), { severity: 'ERROR' })], // internal_error
    ['postgres', sqlite('SQLITE_FULL')],
    ['postgres', new Error('of our own')],
    ['postgres', 'no error at all'],
    ['sqlite', null],
    ['sqlite', undefined],
  ] as const
  test.each(others)('on %s, %o comes as it was thrown', (engine, error) => {
    expect(translate(engine, error)).toBe(error)
  })

  test('what has been told once is not told twice', () => {
    const told = new DbError('busy', 'the queue is full')
    expect(translate('sqlite', told)).toBe(told)
    expect(translate('postgres', told)).toBe(told)
  })

  test.each([
    [sqlite('SQLITE_IOERR'), true],
    [sqlite('SQLITE_IOERR_FSYNC'), true],
    [sqlite('SQLITE_IOERR_WRITE'), true],
    [sqlite('SQLITE_IOERR_SHMSIZE'), false],
    [sqlite('SQLITE_CORRUPT'), false],
    [sqlite('SQLITE_CORRUPT_INDEX'), false],
    [sqlite('SQLITE_NOTADB'), false],
    [sqlite('SQLITE_FULL'), false],
    [sqlite('SQLITE_BUSY'), false],
    [sqlite('SQLITE_CONSTRAINT_UNIQUE'), false],
    [new Error('SQLITE_IOERR'), false],
    [null, false],
    [undefined, false],
  ])('after %o nothing on the disk can be trusted: %p', (error, expected) => {
    expect(isIoError(error)).toBe(expected)
  })

  test.each([
    [postgres('40P01'), true],
    [postgres('40001'), true],
    [postgres('23505'), false],
    [postgres('57014'), false],
    [new DbError('lost', 'before COMMIT', { cause: postgres('40001') }), true],
    [new DbError('outcome_unknown', 'at COMMIT', { cause: postgres('40001') }), false],
    [sqlite('SQLITE_BUSY'), false],
    [null, false],
  ])('after %o the transaction may simply be run again: %p', (error, expected) => {
    expect(isRetryable(error)).toBe(expected)
  })
})

describe('texts', () => {
  test.each([
    [
      'sqlite',
      'create table t (a {text}, b {integer}) {keyed};',
      'create table t (a text, b integer) strict, without rowid;',
    ],
    ['sqlite', 'create table t (a {text}) {heap}', 'create table t (a text) strict'],
    [
      'postgres',
      'create table t (a {text}, b {integer}) {keyed};',
      'create table t (a text collate "C", b bigint) ;',
    ],
    ['postgres', 'create table t (a {text}) {heap}', 'create table t (a text collate "C") '],
    ['sqlite', '{known_whole t};', ';'],
    ['postgres', '{known_whole t};', 'alter table t replica identity full;'],
    ['sqlite', 'select 1', 'select 1'],
  ] as const)('on %s a migration’s tokens become this engine’s words', (engine, text, expected) => {
    expect(render(engine, text)).toBe(expected)
  })

  test.each(['sqlite', 'postgres'] as const)('on %s an unknown token is refused by name', (engine) => {
    expect(() => render(engine, 'create table t (a {json})')).toThrow('unknown token {json} in a migration')
  })

  test('both engines know the same tokens', () => {
    expect(Object.keys(tokens.sqlite)).toEqual(Object.keys(tokens.postgres))
  })

  test('parameters are numbered as SQLite wants them', () => {
    expect(sqliteText('select $1, $2 where a > $1 and b <= $10')).toBe(
      'select ?1, ?2 where a > ?1 and b <= ?10',
    )
  })

  test('SQLite is not led to plan by the value of a parameter', () => {
    expect(sqliteText('select a from t where a = $1 and b is $2 and c >= $3\n limit $10')).toBe(
      'select a from t where a = likely(?1) and b is likely(?2) and c >= ?3\n limit likely(?10)',
    )
  })
})

describe('how connections are set up', () => {
  test.each([
    'pragma journal_mode = wal',
    'pragma synchronous = full',
    'pragma foreign_keys = on',
    'pragma trusted_schema = off',
  ])('every SQLite connection runs %s', (pragma) => {
    expect(sqlite_pragmas).toContain(pragma)
  })

  test('a PostgreSQL session waits for no lock, statement or idle transaction without end', () => {
    for (const name of [
      'statement_timeout',
      'lock_timeout',
      'idle_in_transaction_session_timeout',
    ] as const) {
      expect(Number(postgres_session[name])).toBeGreaterThan(0)
    }
    expect(Number(postgres_session.lock_timeout)).toBeLessThan(Number(postgres_session.statement_timeout))
  })
})
