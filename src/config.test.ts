import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllow } from './callbacks/ranges.ts'
import { type Config, readConfig } from './config.ts'
import { default_plans } from './features.ts'
import { ConfigError, type SettingName, settings, settingsHelp } from './settings.ts'

const defaults: Config = {
  host: '127.0.0.1',
  port: 8420,
  public_url: 'http://127.0.0.1:8420',
  database_url: 'sqlite:data/waystation.db',
  database_listen_url: null,
  database_owner_url: 'sqlite:data/waystation.db',
  database_role: 'waystation_app',
  row_level_security: 'auto',
  database_connections: 12,
  workers: 1,
  metrics: null,
  cron_secret: null,
  secret_key: null,
  secret_key_previous: null,
  data_dir: 'data',
  tick: 'internal',
  test_clock: false,
  signup_open: true,
  callback_allow: parseAllow('127.0.0.0/8, ::1/128'),
  callback_https_only: false,
  smtp_url: null,
  mail_from: null,
  cors_origins: [],
  trusted_proxies: [],
  plans: default_plans,
  default_plan: 'free',
  plans_open: ['free', 'pro', 'unlimited'],
  plans_local: ['unlimited'],
  memory_bytes_max: 67_108_864,
  disk_reserve_bytes: null,
  backups: null,
  log_level: 'info',
  log_requests: [],
  traces_endpoint: null,
  loopback_only: true,
}

const outside = { PUBLIC_URL: 'https://waystation.example.com' }

/** Setting, its value, what else is set, and what differs from the defaults. */
const taken: [name: SettingName, value: string, changes: Partial<Config>, others?: Record<string, string>][] =
  [
    ['METRICS', '127.0.0.1:9464', { metrics: { host: '127.0.0.1', port: 9464 } }],
    ['METRICS', '[::1]:0', { metrics: { host: '::1', port: 0 } }],
    ['HOST', 'localhost', { host: 'localhost', public_url: 'http://localhost:8420' }],
    ['HOST', '127.8.9.1', { host: '127.8.9.1', public_url: 'http://127.8.9.1:8420' }],
    ['HOST', '::1', { host: '::1', public_url: 'http://[::1]:8420' }],
    ['HOST', '[::1]', { host: '::1', public_url: 'http://[::1]:8420' }],
    ['HOST', '0.0.0.0', { host: '0.0.0.0', loopback_only: false }],
    ['HOST', '::', { host: '::', public_url: 'http://[::1]:8420', loopback_only: false }],
    ['HOST', '192.0.2.7', { host: '192.0.2.7', public_url: 'http://192.0.2.7:8420', loopback_only: false }],
    ['PORT', '0', { port: 0, public_url: 'http://127.0.0.1:0' }],
    ['PORT', '65535', { port: 65_535, public_url: 'http://127.0.0.1:65535' }],
    ['PUBLIC_URL', 'https://example.com', { public_url: 'https://example.com', loopback_only: false }],
    [
      'PUBLIC_URL',
      'http://example.com:80/base//',
      { public_url: 'http://example.com/base', loopback_only: false },
    ],
    ['PUBLIC_URL', 'https://example.com/?', { public_url: 'https://example.com', loopback_only: false }],
    [
      'PUBLIC_URL',
      'https://example.com/base/#',
      { public_url: 'https://example.com/base', loopback_only: false },
    ],
    ['PUBLIC_URL', 'http://127.0.0.1:9', { public_url: 'http://127.0.0.1:9' }],
    ['PUBLIC_URL', 'http://[::1]:9/', { public_url: 'http://[::1]:9' }],
    ['DATABASE_URL', 'sqlite::memory:', { database_url: 'sqlite::memory:' }],
    ['DATABASE_URL', 'sqlite:/var/lib/x.db', { database_url: 'sqlite:/var/lib/x.db' }],
    [
      'DATABASE_URL',
      'postgres://u:p@db:5432/x',
      { database_url: 'postgres://u:p@db:5432/x', database_listen_url: 'postgres://u:p@db:5432/x' },
    ],
    [
      'DATABASE_URL',
      'postgresql://db/x',
      { database_url: 'postgresql://db/x', database_listen_url: 'postgresql://db/x' },
    ],
    [
      'DATABASE_LISTEN_URL',
      'postgres://server/x',
      { database_url: 'postgres://pooler/x', database_listen_url: 'postgres://server/x' },
      { DATABASE_URL: 'postgres://pooler/x' },
    ],
    [
      'DATABASE_OWNER_URL',
      'postgres://owner@db/x',
      {
        ...{ database_url: 'postgres://db/x', database_listen_url: 'postgres://db/x' },
        database_owner_url: 'postgres://owner@db/x',
      },
      { DATABASE_URL: 'postgres://db/x' },
    ],
    ['DATABASE_ROLE', 'waystation_2', { database_role: 'waystation_2' }],
    ['ROW_LEVEL_SECURITY', 'required', { row_level_security: 'required' }],
    ['ROW_LEVEL_SECURITY', 'off', { row_level_security: 'off' }],
    ['CRON_SECRET', 'x', { cron_secret: 'x' }],
    [
      'CRON_SECRET',
      'c'.repeat(16),
      { cron_secret: 'c'.repeat(16), public_url: outside.PUBLIC_URL, loopback_only: false },
      outside,
    ],
    ['SECRET_KEY', 's'.repeat(16), { secret_key: 's'.repeat(16) }],
    ['SECRET_KEY_PREVIOUS', 's'.repeat(16), { secret_key_previous: 's'.repeat(16) }],
    ['BACKUP_EVERY', '1m', { backups: { every_ms: 60_000, keep: 7, folder: 'data/backups' } }],
    ['BACKUP_EVERY', '2d', { backups: { every_ms: 172_800_000, keep: 7, folder: 'data/backups' } }],
    [
      'BACKUP_KEEP',
      '1000',
      { backups: { every_ms: 21_600_000, keep: 1_000, folder: 'data/backups' } },
      { BACKUP_EVERY: '6h' },
    ],
    ['BACKUP_KEEP', '1', {}],
    [
      'BACKUP_DIR',
      '/backup',
      { backups: { every_ms: 21_600_000, keep: 7, folder: '/backup' } },
      { BACKUP_EVERY: '6h' },
    ],
    [
      'DATA_DIR',
      '/var/lib/waystation',
      { data_dir: '/var/lib/waystation', database_url: 'sqlite:/var/lib/waystation/waystation.db' },
    ],
    ['DATA_DIR', '/a?b=c', { data_dir: '/a?b=c', database_url: 'sqlite:/a?b=c/waystation.db' }],
    ...[
      ...['sqlite:///a/x.db', 'sqlite:~x.db', 'sqlite:a/~/x.db', 'sqlite:C:\\a\\x.db'],
      ...['sqlite:why?.db', 'sqlite:/a?b/x.db', 'sqlite:/a?b=c/x.db'],
    ].map((value): (typeof taken)[number] => ['DATABASE_URL', value, { database_url: value }]),
    ['DEFAULT_PLAN', 'unlimited', { default_plan: 'unlimited', plans_open: ['unlimited', 'free', 'pro'] }],
    [
      'DEFAULT_PLAN',
      'builder',
      { default_plan: 'builder', plans_open: ['builder', 'free', 'pro', 'unlimited'] },
    ],
    ['PLANS_OPEN', 'pro , builder', { plans_open: ['free', 'pro', 'builder'] }],
    [
      'PLANS_OPEN',
      'free,unlimited',
      { plans_open: ['free', 'unlimited'], public_url: outside.PUBLIC_URL, loopback_only: false },
      outside,
    ],
    ['TICK', 'internal', {}],
    ['TICK', 'external', { tick: 'external' }],
    ['CLOCK', 'system', {}],
    ['CLOCK', 'test', { test_clock: true }],
    ['SIGNUP', 'open', {}],
    ['SIGNUP', 'closed', { signup_open: false }],
    ['CALLBACK_ALLOW', '10.0.0.0/8:8080', { callback_allow: parseAllow('10.0.0.0/8:8080') }],
    ['CALLBACK_HTTPS_ONLY', 'false', {}],
    ['CALLBACK_HTTPS_ONLY', 'true', { callback_https_only: true }],
    [
      'SMTP_URL',
      'smtps://user:secret@mail.example.com',
      { smtp_url: 'smtps://user:secret@mail.example.com', mail_from: 'a@example.com' },
      { MAIL_FROM: 'a@example.com' },
    ],
    [
      'SMTP_URL',
      'smtp://ada@example.com:p@ss%2F@mail/',
      { smtp_url: 'smtp://ada@example.com:p@ss%2F@mail/', mail_from: 'a@example.com' },
      { MAIL_FROM: 'a@example.com' },
    ],
    [
      'SMTP_URL',
      'smtp://mail?requireTLS=true&tls.servername=a.example&ignoreTLS=false',
      {
        smtp_url: 'smtp://mail?requireTLS=true&tls.servername=a.example&ignoreTLS=false',
        mail_from: 'a@example.com',
      },
      { MAIL_FROM: 'a@example.com' },
    ],
    [
      'MAIL_FROM',
      'Waystation <a@example.com>',
      { smtp_url: 'smtp://127.0.0.1:25', mail_from: 'Waystation <a@example.com>' },
      { SMTP_URL: 'smtp://127.0.0.1:25' },
    ],
    ['CORS_ORIGINS', '*', { cors_origins: ['*'] }],
    [
      'CORS_ORIGINS',
      'https://a.example, http://b.example:8080',
      { cors_origins: ['https://a.example', 'http://b.example:8080'] },
    ],
    ['DATABASE_CONNECTIONS', '2', { database_connections: 2 }],
    ['DATABASE_CONNECTIONS', '1000', { database_connections: 1_000 }],
    ['WORKERS', '1', { workers: 1 }],
    [
      'WORKERS',
      '64',
      { workers: 64, database_url: 'postgres://db/x', database_listen_url: 'postgres://db/x' },
      { DATABASE_URL: 'postgres://db/x' },
    ],
    ['MEMORY_BUDGET', '33554432', { memory_bytes_max: 33_554_432 }],
    ['MEMORY_BUDGET', '128MiB', { memory_bytes_max: 134_217_728 }],
    ['MEMORY_BUDGET', '128 mb', { memory_bytes_max: 128_000_000 }],
    ['MEMORY_BUDGET', '40000KiB', { memory_bytes_max: 40_960_000 }],
    ['MEMORY_BUDGET', '2GB', { memory_bytes_max: 2_000_000_000 }],
    ['MEMORY_BUDGET', '2GiB', { memory_bytes_max: 2_147_483_648 }],
    ['DISK_RESERVE', '0', { disk_reserve_bytes: 0 }],
    ['DISK_RESERVE', '1048576', { disk_reserve_bytes: 1_048_576 }],
    ['LOG_LEVEL', 'debug', { log_level: 'debug' }],
    ['LOG_LEVEL', 'info', {}],
    ['LOG_LEVEL', 'warn', { log_level: 'warn' }],
    ['LOG_LEVEL', 'error', { log_level: 'error' }],
    ['LOG_LEVEL', 'silent', { log_level: 'silent' }],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:4318', { traces_endpoint: 'http://127.0.0.1:4318' }],
    ['LOG_REQUESTS', 'none', {}],
    ['LOG_REQUESTS', 'all', { log_requests: ['all'] }],
    ['LOG_REQUESTS', 'errors, slow', { log_requests: ['errors', 'slow'] }],
    ['LOG_REQUESTS', 'none', { log_level: 'silent' }, { LOG_LEVEL: 'silent' }],
  ]

/** Setting, its value, the whole line, and what else is set. */
const refused: [name: SettingName, value: string, line: string, others?: Record<string, string>][] = [
  ...['sqlite:x.db', 'http://db', 'postgres:db'].map(
    (value): [SettingName, string, string, Record<string, string>] => [
      'DATABASE_LISTEN_URL',
      value,
      'DATABASE_LISTEN_URL: must be postgres://…',
      { DATABASE_URL: 'postgres://db/x' },
    ],
  ),
  ...['9464', 'localhost', '127.0.0.1:', ':9464', '::1:9464', 'http://127.0.0.1:9464', 'a b:1'].map(
    (value): [SettingName, string, string] => [
      'METRICS',
      value,
      `METRICS: "${value}" is not an address such as 127.0.0.1:9464`,
    ],
  ),
  ...['127.0.0.1:4318', 'grpc://127.0.0.1:4317', 'collector'].map((value): [SettingName, string, string] => [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    value,
    'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http or https URL such as http://127.0.0.1:4318',
  ]),
  ['ROW_LEVEL_SECURITY', 'on', 'ROW_LEVEL_SECURITY: "on" is not one of auto, required, off'],
  ...['pg_app', 'public', 'none', 'App', 'a b', 'a"b', 'x'.repeat(64)].map(
    (value): [SettingName, string, string] => [
      'DATABASE_ROLE',
      value,
      `DATABASE_ROLE: "${value}" is not a role name such as waystation_app`,
    ],
  ),
  ['DATABASE_OWNER_URL', 'postgres://db/x', 'DATABASE_OWNER_URL: needs a PostgreSQL DATABASE_URL'],
  ['DATABASE_OWNER_URL', 'sqlite:x', 'DATABASE_OWNER_URL: must be postgres://…'],
  ['LOG_REQUESTS', 'some', 'LOG_REQUESTS: "some" is not one of all, errors, slow, none'],
  ['LOG_REQUESTS', 'errors,', 'LOG_REQUESTS: "" is not one of all, errors, slow, none'],
  ['LOG_REQUESTS', 'all,slow', 'LOG_REQUESTS: "all,slow" combines a value that must be given alone'],
  [
    'LOG_REQUESTS',
    'errors',
    'LOG_REQUESTS: needs LOG_LEVEL=info or debug, but it is error',
    { LOG_LEVEL: 'error' },
  ],
  ['METRICS', 'localhost:65536', 'METRICS: "65536" is not a whole number from 0 to 65535'],
  ['DATABASE_LISTEN_URL', 'postgres://db/x', 'DATABASE_LISTEN_URL: needs a PostgreSQL DATABASE_URL'],
  ...['-1', '65536', '1.5', '1e3', '0x10', 'http', '80 80'].map((value): [SettingName, string, string] => [
    'PORT',
    value,
    `PORT: "${value}" is not a whole number from 0 to 65535`,
  ]),
  ...[
    ...['example.com', 'ftp://example.com', 'https://', 'https://example.com/?a=1', 'https://example.com/#a'],
    ...['https://user@example.com', 'https://user:pass@example.com', 'javascript:alert(1)'],
    ...['https://example.com//a', 'https://example.com//a/'],
  ].map((value): [SettingName, string, string] => [
    'PUBLIC_URL',
    value,
    `PUBLIC_URL: "${value.replace(/user.*@/, '…@')}" is not a plain http or https URL`,
  ]),
  ...['sqlite', 'sqlite:', 'mysql://db/x', 'postgres:db', 'data/waystation.db'].map(
    (value): [SettingName, string, string] => [
      'DATABASE_URL',
      value,
      'DATABASE_URL: must be sqlite:<file>, sqlite::memory: or postgres://…',
    ],
  ),
  ...(
    [
      ...['sqlite://x.db', 'sqlite://data/x.db', 'sqlite://localhost/a/x.db', 'sqlite://~/x.db'].map(
        (value): [string, string] => [
          value,
          'a SQLite file has no host after //: write sqlite:<file>, or sqlite:///<path> for an absolute path',
        ],
      ),
      ...['sqlite:x.db?mode=ro', 'sqlite:a?/x.db?a=b&c', 'sqlite::memory:?cache=shared'].map(
        (value): [string, string] => [value, 'sqlite:<file> takes no parameters after a ?'],
      ),
      ['sqlite:~/x.db', '"~/x.db" begins with ~, which only a shell replaces: write the whole path'],
    ] as [string, string][]
  ).map(([value, why]): [SettingName, string, string] => ['DATABASE_URL', value, `DATABASE_URL: ${why}`]),
  ...['~', '~/data'].map((value): [SettingName, string, string] => [
    'DATA_DIR',
    value,
    `DATA_DIR: "${value}" begins with ~, which only a shell replaces: write the whole path`,
  ]),
  [
    'BACKUP_DIR',
    '~/backups',
    'BACKUP_DIR: "~/backups" begins with ~, which only a shell replaces: write the whole path',
    { BACKUP_EVERY: '6h' },
  ],
  ...(['DATABASE_URL', 'DATABASE_LISTEN_URL', 'DATABASE_OWNER_URL'] as const).flatMap((name) =>
    [
      ...['postgres://[', 'postgres://a,b/x', 'postgres://u:p@a:5432,b:5432/x', 'postgres://u:p@db:65536/x'],
      ...[
        'postgres://u:a#b@db/x',
        'postgresql://u:a/b@db/x',
        'postgres://u:a?b@db/x',
        'postgres://u:100%@db/x',
        'postgres://u:/b@db/x',
        'postgres://u:12/b@db/x',
        'postgres://u:?b@db/x',
        'postgres://u:12#b@db/x',
      ],
    ].map((value): [SettingName, string, string, Record<string, string>] => [
      name,
      value,
      `${name}: cannot be read: it names one host, and a password has %2F for /, %3F for ?, %23 for #, %25 for %`,
      name === 'DATABASE_URL' ? {} : { DATABASE_URL: 'postgres://db/x' },
    ]),
  ),
  [
    'CRON_SECRET',
    'c'.repeat(15),
    'CRON_SECRET: must have at least 16 characters unless PUBLIC_URL is loopback',
    outside,
  ],
  ['SECRET_KEY', 's'.repeat(15), 'SECRET_KEY: must have at least 16 characters'],
  ['SECRET_KEY_PREVIOUS', 's'.repeat(15), 'SECRET_KEY_PREVIOUS: must have at least 16 characters'],
  ['BACKUP_EVERY', '6', 'BACKUP_EVERY: "6" is not a time such as 30m, 6h or 1d'],
  ['BACKUP_EVERY', '0m', 'BACKUP_EVERY: "0m" is less than 1m'],
  ['BACKUP_KEEP', '0', 'BACKUP_KEEP: "0" is not a whole number from 1 to 1000'],
  ['BACKUP_KEEP', '1001', 'BACKUP_KEEP: "1001" is not a whole number from 1 to 1000'],
  ['TICK', 'Internal', 'TICK: "Internal" is not one of internal, external'],
  ['CLOCK', 'Test', 'CLOCK: "Test" is not one of system, test'],
  ['SIGNUP', 'yes', 'SIGNUP: "yes" is not one of open, closed'],
  ...['mail.example.com', 'https://user:secret@mail.example.com', 'smtp://'].map(
    (value): [SettingName, string, string] => ['SMTP_URL', value, 'SMTP_URL: must be smtp://… or smtps://…'],
  ),
  ...['smtp://user:12/34@mail', 'smtp://user:sec@ret/1@mail', 'smtp://user:12#34@mail', 'smtps://mail/x'].map(
    (value): [SettingName, string, string] => [
      'SMTP_URL',
      value,
      'SMTP_URL: cannot be read: it has no path, and a password has %2F for /, %3F for ?, %23 for #, %25 for %',
    ],
  ),
  ...['smtp://user@mail', 'smtp://user:@mail', 'smtp://:secret@mail'].map(
    (value): [SettingName, string, string] => [
      'SMTP_URL',
      value,
      'SMTP_URL: has a user and a password, or neither',
    ],
  ),
  ...['requiretls', 'tls.rejectunauthorized', 'secret@mail'].map((name): [SettingName, string, string] => [
    'SMTP_URL',
    `smtp://mail?requireTLS=true&${name}=true`,
    'SMTP_URL: may have only the options requireTLS, ignoreTLS, authMethod, name, tls.servername, tls.rejectUnauthorized',
  ]),
  ...['requireTLS', 'requireTLS=yes', 'ignoreTLS=', 'tls.rejectUnauthorized=0'].map(
    (option): [SettingName, string, string] => [
      'SMTP_URL',
      `smtp://mail?name=a.example&${option}`,
      'SMTP_URL: its options requireTLS, ignoreTLS, tls.rejectUnauthorized are true or false',
    ],
  ),
  ...['ignoreTLS=false', 'requireTLS=true', 'tls.servername=a.example'].map(
    (option): [SettingName, string, string] => [
      'SMTP_URL',
      `smtp://mail?${option}&${option}`,
      'SMTP_URL: has an option twice; each may be given once',
    ],
  ),
  ['MAIL_FROM', '', 'MAIL_FROM: is needed with SMTP_URL: the sender of emails', { SMTP_URL: 'smtp://mail' }],
  ['MAIL_FROM', 'a@example.com', 'MAIL_FROM: needs SMTP_URL'],
  ...['nobody', 'a@b, c@d', 'A <a@b> <c@d>'].map(
    (value): [SettingName, string, string, Record<string, string>] => [
      'MAIL_FROM',
      value,
      `MAIL_FROM: "${value}" is not an address such as waystation@example.com`,
      { SMTP_URL: 'smtp://mail' },
    ],
  ),
  ['CALLBACK_HTTPS_ONLY', '1', 'CALLBACK_HTTPS_ONLY: "1" is not one of true, false'],
  ...[
    'example.com',
    'https://a.example/',
    'https://a.example/x',
    'null',
    'https://A.example',
    '**',
    'https://*.example',
  ].map((value): [SettingName, string, string] => [
    'CORS_ORIGINS',
    value,
    `CORS_ORIGINS: "${value}" is not an origin such as https://app.example.com`,
  ]),
  ['CORS_ORIGINS', '*, nope', 'CORS_ORIGINS: "nope" is not an origin such as https://app.example.com'],
  ['CORS_ORIGINS', 'https://a.example,', 'CORS_ORIGINS: "" is not an origin such as https://app.example.com'],
  ...[
    'nope',
    '10.0.0.0/33',
    '::1/129',
    '10.0.0.1,',
    '10.0.0.0/8 ::1',
    '300.1.1.1',
    '10',
    '127.1',
    '0x7f.1',
    '10/8',
  ].map((value): [SettingName, string, string] => [
    'TRUST_PROXY',
    value,
    `TRUST_PROXY: "${value}" is not a comma-separated list of addresses or CIDR ranges`,
  ]),
  [
    'DEFAULT_PLAN',
    'gold',
    'DEFAULT_PLAN: there is no plan "gold"; the plans are free, builder, pro, enterprise, unlimited',
  ],
  ...['Free', 'free;pro', 'free,', 'free,toString'].map((value): [SettingName, string, string] => [
    'PLANS_OPEN',
    value,
    `PLANS_OPEN: there is no plan "${value.split(',').at(-1)}"; the plans are free, builder, pro, enterprise, unlimited`,
  ]),
  ['PLANS_FILE', 'no/such/file.json', 'PLANS_FILE: there is no file no/such/file.json'],
  ['DATABASE_CONNECTIONS', '1', 'DATABASE_CONNECTIONS: "1" is not a whole number from 2 to 1000'],
  ['DATABASE_CONNECTIONS', '1001', 'DATABASE_CONNECTIONS: "1001" is not a whole number from 2 to 1000'],
  ['WORKERS', '0', 'WORKERS: "0" is not a whole number from 1 to 64'],
  ['WORKERS', '65', 'WORKERS: "65" is not a whole number from 1 to 64'],
  [
    'WORKERS',
    '2',
    'WORKERS: 2 processes need PostgreSQL, but DATABASE_URL is SQLite, which only one process can serve',
  ],
  ['MEMORY_BUDGET', '33554431', 'MEMORY_BUDGET: "33554431" is less than 32MiB'],
  ['MEMORY_BUDGET', 'much', 'MEMORY_BUDGET: "much" is not a number of bytes such as 134217728 or 128MiB'],
  [
    'MEMORY_BUDGET',
    '64 MiB/s',
    'MEMORY_BUDGET: "64 MiB/s" is not a number of bytes such as 134217728 or 128MiB',
  ],
  ['MEMORY_BUDGET', '64XB', 'MEMORY_BUDGET: "64XB" is not a number of bytes such as 134217728 or 128MiB'],
  [
    'MEMORY_BUDGET',
    '99999999999GiB',
    'MEMORY_BUDGET: "99999999999GiB" is not a number of bytes such as 134217728 or 128MiB',
  ],
  ['DISK_RESERVE', '64M', 'DISK_RESERVE: "64M" is not a whole number from 0 to 9007199254740991'],
  ['LOG_LEVEL', 'trace', 'LOG_LEVEL: "trace" is not one of debug, info, warn, error, silent'],
]

describe('configuration', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'waystation-config-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function fileOf(text: string): string {
    const file = join(folder, `${crypto.randomUUID()}.json`)
    writeFileSync(file, text)
    return file
  }

  test('needs nothing: everything has a default', () => {
    expect(readConfig({})).toEqual(defaults)
  })

  test.each(Object.keys(settings) as SettingName[])('%s: empty or white space is like not set', (name) => {
    expect(readConfig({ [name]: '' })).toEqual(defaults)
    expect(readConfig({ [name]: ' \t' })).toEqual(defaults)
  })

  test('CLOCK=test is refused where others could reach the service, or a proxy is trusted', () => {
    for (const elsewhere of [
      { HOST: '0.0.0.0' },
      { PUBLIC_URL: 'https://waystation.example.com' },
      { TRUST_PROXY: '10.0.0.1' },
    ]) {
      expect(() =>
        readConfig({ ...elsewhere, CRON_SECRET: 'a-cron-secret-of-the-tests', CLOCK: 'test' }),
      ).toThrow('CLOCK: test needs HOST and PUBLIC_URL on loopback, and no TRUST_PROXY')
    }
  })

  test('ignores variables that are not settings of the service', () => {
    expect(readConfig({ PATH: '/bin', host: '0.0.0.0', TICKS: 'x', WAYSTATION_PORT: '1' })).toEqual(defaults)
  })

  test('cannot be changed afterwards', () => {
    const config = readConfig({})
    expect(Object.isFrozen(config)).toBe(true)
    expect(() => Object.assign(config, { port: 1 })).toThrow(TypeError)
  })

  test.each(taken)('%s may be %s', (name, value, changes, others = {}) => {
    // Loopback may be called only while nobody but this machine is served.
    const is_public = changes.loopback_only === false
    const callback_allow = is_public ? [] : defaults.callback_allow
    const plans_open = is_public ? ['free', 'pro'] : defaults.plans_open
    const is_set = name === 'PLANS_OPEN' || changes.default_plan === 'unlimited'
    const plans_local = is_public || is_set ? [] : defaults.plans_local
    const database_owner_url = changes.database_url ?? defaults.database_url
    const expected = { ...defaults, database_owner_url, callback_allow, plans_open, plans_local, ...changes }
    expect(readConfig({ ...others, [name]: value })).toEqual(expected)
    expect(readConfig({ ...others, [name]: `  ${value}\n` })).toEqual(expected)
  })

  test.each(refused)('%s may not be %s', (name, value, line, others = {}) => {
    let error: unknown
    try {
      readConfig({ ...others, [name]: value })
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as ConfigError).message).toBe(line)
    expect(line.startsWith(`${name}: `)).toBe(true)
    expect(line).not.toContain('\n')
  })

  test('TRUST_PROXY is a list of addresses and ranges of both families, and ends loopback_only', () => {
    const { trusted_proxies, loopback_only } = readConfig({
      TRUST_PROXY: '10.0.0.0/8, 192.0.2.1,::1 , 2001:db8::/32',
    })
    expect(trusted_proxies.map(([address, bits]) => `${address}/${bits}`)).toEqual([
      '10.0.0.0/8',
      '192.0.2.1/32',
      '::1/128',
      '2001:db8::/32',
    ])
    expect(loopback_only).toBe(false)
  })

  test('PLANS_FILE replaces the table of plans, of which a sign-up may then name others', () => {
    const plans = { free: { ...default_plans.free, agents: 1 }, pro: default_plans.pro }
    const PLANS_FILE = fileOf(JSON.stringify(plans))
    const config = readConfig({ PLANS_FILE })
    expect([config.plans, config.plans_open]).toEqual([plans as never, ['free', 'pro']])
    expect(() => readConfig({ PLANS_FILE, DEFAULT_PLAN: 'unlimited' })).toThrow(
      new ConfigError('DEFAULT_PLAN', 'there is no plan "unlimited"; the plans are free, pro'),
    )
    const own = fileOf(JSON.stringify({ ...plans, gold: {}, unlimited: {} }))
    expect(readConfig({ PLANS_FILE: own, DEFAULT_PLAN: 'gold' }).plans_open).toEqual([
      ...['gold', 'free', 'pro', 'unlimited'],
    ])
  })

  test('DATA_DIR of an earlier release, with the database elsewhere by default, does not start with an empty database', () => {
    const cwd = process.cwd()
    const place = mkdtempSync(join(folder, 'earlier-'))
    const moved = (environment: Record<string, string> = {}) =>
      readConfig({ DATA_DIR: 'own', ...environment }).database_url
    process.chdir(place)
    try {
      mkdirSync('data')
      mkdirSync('own')
      writeFileSync('data/waystation.db', '')
      expect(moved()).toBe('sqlite:own/waystation.db')
      writeFileSync('own/secret_key', 'x')
      expect(() => moved()).toThrow(
        new ConfigError(
          'DATABASE_URL',
          'the database is now own/waystation.db by default, and yours is data/waystation.db: set DATABASE_URL=sqlite:data/waystation.db to keep it there',
        ),
      )
      expect(moved({ DATABASE_URL: 'sqlite:data/waystation.db' })).toBe('sqlite:data/waystation.db')
      writeFileSync('own/waystation.db', '')
      expect(moved()).toBe('sqlite:own/waystation.db')
    } finally {
      process.chdir(cwd)
    }
  })

  test('a PLANS_FILE that cannot be used is told in one line, with its name and what is wrong', () => {
    for (const [text, why] of [
      ['{}', 'plan "free" is missing'],
      ['[]', 'it is not a JSON object'],
      [
        JSON.stringify({ free: { ...default_plans.free, agents: -1 }, pro: default_plans.pro }),
        '"free.agents" must be a whole number of 0 or more, or null',
      ],
    ] as const) {
      const file = fileOf(text)
      expect(() => readConfig({ PLANS_FILE: file })).toThrow(new ConfigError('PLANS_FILE', `${file}: ${why}`))
    }
    const broken = fileOf('{"free": ')
    expect(() => readConfig({ PLANS_FILE: broken })).toThrow(
      /^PLANS_FILE: [^\n]*\.json: JSON Parse error: [^\n]+$/,
    )
    expect(() => readConfig({ PLANS_FILE: folder })).toThrow(/^PLANS_FILE: [^\n]+$/)
  })

  test('never repeats a secret, or a password in a URL', () => {
    for (const [name, value] of [
      ['SECRET_KEY', 'short-secret'],
      ['CRON_SECRET', 'short-secret'],
      ['DATABASE_URL', 'mysql://user:short-secret@db/x'],
      ['DATABASE_URL', 'postgres://user:short-secret#@db/x'],
      ['DATABASE_URL', 'postgres://user:short-secret%@db/x'],
      ['PUBLIC_URL', 'https://user:short-secret@example.com'],
      ['PUBLIC_URL', 'https://user:a/short-secret@example.com'],
      ['PUBLIC_URL', 'https:user:short-secret@example.com'],
      ['PUBLIC_URL', 'https:\\\\user:short-secret@example.com'],
      ['PUBLIC_URL', 'user:short-secret@example.com'],
      ['PUBLIC_URL', 'https://user:a\nshort-secret@example.com'],
      ['CORS_ORIGINS', 'https://user:short-secret@example.com'],
      ['CORS_ORIGINS', 'https:user:short-secret@example.com'],
      ['CORS_ORIGINS', 'https://user:short-secret,a@example.com'],
    ] as const) {
      expect(() => readConfig({ ...outside, [name]: value })).toThrow(ConfigError)
      expect(() => readConfig({ ...outside, [name]: value })).not.toThrow(/short-secret/)
    }
  })

  test('serves this machine alone only while HOST and PUBLIC_URL are loopback and no proxy is trusted', () => {
    const rows: [Record<string, string>, boolean][] = [
      [{}, true],
      [{ HOST: 'localhost', PUBLIC_URL: 'http://localhost:1' }, true],
      [{ HOST: '::1', PUBLIC_URL: 'http://127.0.0.1' }, true],
      [{ HOST: '[::1]' }, true],
      [{ PUBLIC_URL: 'https://example.com' }, false],
      [{ PUBLIC_URL: 'https://127.0.0.1.example.com' }, false],
      [{ HOST: '0.0.0.0' }, false],
      [{ HOST: '0.0.0.0', PUBLIC_URL: 'http://127.0.0.1' }, false],
      [{ HOST: '127.0.0.1.example.com' }, false],
      [{ TRUST_PROXY: '127.0.0.1' }, false],
    ]
    for (const [environment, expected] of rows)
      expect([environment, readConfig(environment).loopback_only]).toEqual([environment, expected])
  })

  test('every setting is tried above, and --help has a line for each', () => {
    const tried = new Set([...taken, ...refused].map(([name]) => name))
    const names = Object.keys(settings) as SettingName[]
    expect(names.filter((name) => !tried.has(name))).toEqual([])
    expect(
      settingsHelp()
        .split('\n')
        .map((line) => line.trim().split(' ')[0]!),
    ).toEqual(names)
  })
})
