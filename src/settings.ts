// The settings: names, defaults and meanings, which `--help` prints, and the forms of their values.

import { limit } from './base/limit.ts'
import { memory_bytes_default, memory_bytes_min } from './base/memory.ts'
import { bytesOf, durationMs } from './base/quantities.ts'
import { connections_default } from './db/connection-settings.ts'

export const log_levels = ['debug', 'info', 'warn', 'error', 'silent'] as const

export const row_level_security = ['auto', 'required', 'off'] as const

export type LogLevel = (typeof log_levels)[number]

/** Name, default and meaning of every setting; `--help` and docs/configuration.md say the same. */
export const settings = {
  HOST: { initial: '127.0.0.1', help: 'address to listen on' },
  PORT: { initial: '8420', help: 'port to listen on, 0 for any free one' },
  PUBLIC_URL: { initial: 'http://HOST:PORT', help: 'where clients reach the service' },
  DATABASE_URL: {
    initial: 'sqlite:<DATA_DIR>/waystation.db',
    help: 'sqlite:<file>, sqlite::memory: or postgres://…',
  },
  DATABASE_CONNECTIONS: {
    initial: String(connections_default),
    help: 'PostgreSQL: connections of each process to the database',
  },
  DATABASE_LISTEN_URL: {
    initial: 'DATABASE_URL',
    help: 'PostgreSQL: where a node listens for the others: the server itself, not a pooler',
  },
  ROW_LEVEL_SECURITY: {
    initial: 'auto',
    help: 'PostgreSQL: auto: in force where possible; required: no start without it; off',
  },
  DATABASE_ROLE: {
    initial: 'waystation_app',
    help: 'PostgreSQL: the role without ownership that row-level security binds',
  },
  DATABASE_OWNER_URL: {
    initial: 'DATABASE_URL',
    help: 'PostgreSQL: the login of the owner of the tables, for migrations and admin commands',
  },
  WORKERS: { initial: '1', help: 'PostgreSQL: processes that serve behind one port' },
  METRICS: {
    initial: 'none',
    help: 'host:port of a separate listener for metrics at /metrics; none: nothing is counted',
  },
  CRON_SECRET: { initial: 'generated', help: 'the secret that POST /v1/tick requires' },
  SECRET_KEY: {
    initial: 'generated',
    help: 'seals signing secrets; the same on every node, at least 16 characters',
  },
  SECRET_KEY_PREVIOUS: { initial: 'none', help: 'the previous key, while SECRET_KEY is rotated' },
  DATA_DIR: { initial: 'data', help: 'folder of the SQLite database and of the generated secrets' },
  TICK: {
    initial: 'internal',
    help: 'internal: run due work on its own; external: leave it to the caller of the tick',
  },
  CLOCK: {
    initial: 'system',
    help: 'system or test: POST /v1/clock/advance moves the time of a test clock; on loopback and a new database only',
  },
  SIGNUP: { initial: 'open', help: 'open or closed: who may create tenants' },
  DEFAULT_PLAN: { initial: 'free', help: 'plan of a new tenant whose sign-up names none' },
  PLANS_OPEN: {
    initial: 'free,pro, and unlimited while all is loopback',
    help: 'comma-separated list of the plans that a sign-up may name',
  },
  CALLBACK_ALLOW: {
    initial: 'loopback while all is loopback, else none',
    help: 'comma-separated list of CIDR[:port] that callbacks may reach although they are not public',
  },
  CALLBACK_HTTPS_ONLY: { initial: 'false', help: 'true: callback URLs must be https' },
  SMTP_URL: {
    initial: 'none',
    help: 'smtp://user:password@host:587 or smtps://…: the server that sends emails to subscribers; none: no email',
  },
  MAIL_FROM: { initial: 'none', help: 'the sender of these emails, an address; needed with SMTP_URL' },
  CORS_ORIGINS: {
    initial: 'none',
    help: 'comma-separated list of origins whose pages may call the API, or *',
  },
  TRUST_PROXY: {
    initial: 'none',
    help: 'comma-separated list of proxy addresses or CIDRs whose X-Forwarded-For is believed',
  },
  PLANS_FILE: { initial: 'none', help: 'JSON file that replaces the table of plans' },
  MEMORY_BUDGET: {
    initial: `${memory_bytes_default / 1_048_576}MiB`,
    help: 'memory for request bodies and answers in flight, in bytes or such as 128MiB',
  },
  DISK_RESERVE: {
    initial: '256 MiB or 5 % of the disk',
    help: 'SQLite: bytes of disk that are kept for deletes and for what the service must write; 0 for none',
  },
  BACKUP_EVERY: { initial: 'none', help: 'such as 6h: how often the service writes a backup' },
  BACKUP_KEEP: { initial: '7', help: 'how many of these backups are kept' },
  BACKUP_DIR: { initial: '<DATA_DIR>/backups', help: 'folder of these backups; best on another disk' },
  LOG_LEVEL: { initial: 'info', help: log_levels.join(', ') },
  LOG_REQUESTS: {
    initial: 'none',
    help: 'all, errors, slow or none, or errors,slow: which requests have a line in the log',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    initial: 'none',
    help: 'URL of a collector that accepts traces by OTLP over HTTP; none: OpenTelemetry is not loaded',
  },
} as const satisfies Record<string, { initial: string; help: string }>

export type SettingName = keyof typeof settings

/** A setting that cannot be used. The message is one line that names it. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  constructor(setting: SettingName, why: string) {
    super(`${setting}: ${why}`)
  }
}

/** The text of `--help`. */
export function settingsHelp(): string {
  const width = Math.max(...Object.keys(settings).map((name) => name.length))
  return Object.entries(settings)
    .map(([name, { initial, help }]) => `  ${name.padEnd(width)}  ${help} (default: ${initial})`)
    .join('\n')
}

export const secret_key_characters_min = limit(
  'settings.secret_key_characters',
  16,
  'characters',
  'The shortest SECRET_KEY, so that it cannot be guessed. Below it the service does not start.',
)

export const cron_secret_characters_min = limit(
  'settings.cron_secret_characters',
  16,
  'characters',
  'The shortest CRON_SECRET where the service is reachable from elsewhere. Below it the service does not start.',
)

export const backup_every_min = limit(
  'settings.backup_every',
  60_000,
  'milliseconds',
  'The shortest BACKUP_EVERY: each backup reads the whole database. Below it the service does not start.',
)

export const backup_keep_max = limit(
  'settings.backup_keep',
  1_000,
  'entries',
  'The largest BACKUP_KEEP. Past it the service does not start.',
)

export const connections_min = limit(
  'settings.database_connections_min',
  2,
  'connections',
  'The smallest DATABASE_CONNECTIONS, so that one slow transaction does not stop all others. Below it the service does not start.',
)

export const connections_max = limit(
  'settings.database_connections_max',
  1_000,
  'connections',
  'The largest DATABASE_CONNECTIONS: each is a process of PostgreSQL. Past it the service does not start.',
)

export const workers_max = limit(
  'settings.workers',
  64,
  'processes',
  'The largest WORKERS. Past it the service does not start.',
)

export function wholeNumber(name: SettingName, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new ConfigError(name, `"${text}" is not a whole number from ${least} to ${most}`)
  }
  return value
}

export function memoryBytes(text: string): number {
  const bytes = bytesOf(text)
  if (bytes === null) {
    throw new ConfigError('MEMORY_BUDGET', `"${text}" is not a number of bytes such as 134217728 or 128MiB`)
  }
  if (bytes < memory_bytes_min) {
    throw new ConfigError('MEMORY_BUDGET', `"${text}" is less than ${memory_bytes_min / 1_048_576}MiB`)
  }
  return bytes
}

export function duration(name: SettingName, text: string, least: number): number {
  const ms = durationMs(text)
  if (ms === null) throw new ConfigError(name, `"${text}" is not a time such as 30m, 6h or 1d`)
  if (ms < least) throw new ConfigError(name, `"${text}" is less than ${least / 60_000}m`)
  return ms
}

export function oneOf<const T extends string>(name: SettingName, text: string, allowed: readonly T[]): T {
  if ((allowed as readonly string[]).includes(text)) return text as T
  throw new ConfigError(name, `"${text}" is not one of ${allowed.join(', ')}`)
}
