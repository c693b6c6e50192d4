// The only reader of the environment: one frozen object, checked whole before anything starts.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AllowRange, parseAllow } from './callbacks/ranges.ts'
import type { Plans } from './contract/dependencies.ts'
import { unlimited_plan } from './contract/feature.ts'
import { default_plans, plan_limits } from './features.ts'
import { bracketed, isLoopback, parseRanges, type Range, reachable, unbracketed } from './http/address.ts'
import { type LoggedRequests, logged_requests } from './http/request-log.ts'
import { parsePlans } from './quotas/plans.ts'
import {
  backup_every_min,
  backup_keep_max,
  ConfigError,
  connections_max,
  connections_min,
  cron_secret_characters_min,
  duration,
  type LogLevel,
  log_levels,
  memoryBytes,
  oneOf,
  row_level_security,
  type SettingName,
  secret_key_characters_min,
  settings,
  wholeNumber,
  workers_max,
} from './settings.ts'

export interface MetricsAddress {
  host: string
  port: number
}

export interface Config {
  host: string
  port: number
  /** Without a slash at the end. With PORT=0 its port is 0 until the service listens. */
  public_url: string
  database_url: string
  /** Null on SQLite. */
  database_listen_url: string | null
  /** Where migrations and the operator's commands log in; `database_url` unless it is set. */
  database_owner_url: string
  /** PostgreSQL: the role that row-level security binds. */
  database_role: string
  row_level_security: (typeof row_level_security)[number]
  /** PostgreSQL: connections of this process. */
  database_connections: number
  /** Processes that serve behind one port; 1: this one alone. */
  workers: number
  /** Where the metrics are served; null: nowhere, and nothing is counted. */
  metrics: MetricsAddress | null
  /** Null: generated at first start and kept in data_dir. */
  cron_secret: string | null
  secret_key: string | null
  /** Null unless SECRET_KEY is being rotated. */
  secret_key_previous: string | null
  data_dir: string
  tick: 'internal' | 'external'
  /** POST /v1/clock/advance moves the time of the service. */
  test_clock: boolean
  signup_open: boolean
  callback_allow: readonly AllowRange[]
  callback_https_only: boolean
  /** Where emails are handed over; null: none are sent. */
  smtp_url: string | null
  /** Their sender; null without `smtp_url`. */
  mail_from: string | null
  cors_origins: readonly string[]
  trusted_proxies: readonly Range[]
  plans: Plans
  /** The plan of a sign-up that names none. */
  default_plan: string
  /** The plans that a sign-up may name; the default one is among them. */
  plans_open: readonly string[]
  /** Those of them that are open because all is loopback: not to a request that was forwarded. */
  plans_local: readonly string[]
  /** Request bodies and answers in memory at once. */
  memory_bytes_max: number
  /** The backups that the service writes by itself; null: none. */
  backups: { every_ms: number; keep: number; folder: string } | null
  log_level: LogLevel
  /** The requests that have a line in the log; empty: none has. */
  log_requests: readonly LoggedRequests[]
  /** Where traces are sent; null: nowhere, and nothing is traced. */
  traces_endpoint: string | null
  /** Bytes of disk that are kept free; 0: none. Null: by the size of the disk. */
  disk_reserve_bytes: number | null
  /** HOST and PUBLIC_URL are loopback and no proxy is trusted: only this machine is served. */
  loopback_only: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** Reads, checks and freezes. Throws ConfigError for the first setting that is wrong. */
export function readConfig(environment: Environment): Config {
  const get = (name: SettingName) => environment[name]?.trim() || undefined
  const given = (name: SettingName) => get(name) ?? settings[name].initial
  const number = (name: SettingName, least: number, most: number) =>
    wholeNumber(name, given(name), least, most)
  const choice = <const T extends string>(name: SettingName, allowed: readonly T[]) =>
    oneOf(name, given(name), allowed)
  const host = unbracketed(given('HOST'))
  const port = number('PORT', 0, 65_535)
  const public_url = publicUrl(get('PUBLIC_URL')) ?? `http://${bracketed(reachable(host))}:${port}`
  const trusted_proxies = ranges(get('TRUST_PROXY'))
  const loopback_only =
    isLoopback(host) && isLoopback(unbracketed(new URL(public_url).hostname)) && trusted_proxies.length === 0
  const data_dir = wholePath('DATA_DIR', given('DATA_DIR'))
  const table = plans(get('PLANS_FILE'))
  const database_url = databaseUrl(get('DATABASE_URL')) ?? defaultDatabase(data_dir)
  return Object.freeze({
    host,
    port,
    public_url,
    database_url,
    database_listen_url:
      otherUrl('DATABASE_LISTEN_URL', get('DATABASE_LISTEN_URL'), database_url) ??
      (isPostgresUrl(database_url) ? database_url : null),
    database_owner_url:
      otherUrl('DATABASE_OWNER_URL', get('DATABASE_OWNER_URL'), database_url) ?? database_url,
    database_role: roleName(given('DATABASE_ROLE')),
    row_level_security: choice('ROW_LEVEL_SECURITY', row_level_security),
    database_connections: number('DATABASE_CONNECTIONS', connections_min, connections_max),
    workers: workers(number('WORKERS', 1, workers_max), database_url),
    metrics: metricsAddress(get('METRICS')),
    cron_secret: cronSecret(get('CRON_SECRET'), public_url),
    secret_key: secretKey('SECRET_KEY', get('SECRET_KEY')),
    secret_key_previous: secretKey('SECRET_KEY_PREVIOUS', get('SECRET_KEY_PREVIOUS')),
    data_dir,
    tick: choice('TICK', ['internal', 'external']),
    test_clock: testClock(choice('CLOCK', ['system', 'test']), loopback_only),
    signup_open: choice('SIGNUP', ['open', 'closed']) === 'open',
    callback_allow: allowRanges(get('CALLBACK_ALLOW'), loopback_only),
    callback_https_only: choice('CALLBACK_HTTPS_ONLY', ['true', 'false']) === 'true',
    ...mail(get('SMTP_URL'), get('MAIL_FROM')),
    cors_origins: origins(get('CORS_ORIGINS')),
    trusted_proxies,
    plans: table,
    ...offeredPlans(table, loopback_only, get),
    memory_bytes_max: memoryBytes(given('MEMORY_BUDGET')),
    disk_reserve_bytes: diskReserve(get('DISK_RESERVE')),
    backups: backups(get, number('BACKUP_KEEP', 1, backup_keep_max), database_url, data_dir),
    log_level: choice('LOG_LEVEL', log_levels),
    log_requests: loggedRequests(given('LOG_REQUESTS'), get('LOG_LEVEL')),
    traces_endpoint: tracesEndpoint(get('OTEL_EXPORTER_OTLP_ENDPOINT')),
    loopback_only,
  })
}

/** A service that others can reach must not have its time moved. */
function testClock(clock: 'system' | 'test', loopback_only: boolean): boolean {
  if (clock === 'test' && !loopback_only) {
    throw new ConfigError('CLOCK', 'test needs HOST and PUBLIC_URL on loopback, and no TRUST_PROXY')
  }
  return clock === 'test'
}

function loggedRequests(text: string, log_level: string | undefined): LoggedRequests[] {
  const chosen = text.split(',').map((one) => oneOf('LOG_REQUESTS', one.trim(), logged_requests))
  if (chosen.length > 1 && chosen.some((one) => one === 'all' || one === 'none')) {
    throw new ConfigError('LOG_REQUESTS', `"${text}" combines a value that must be given alone`)
  }
  if (chosen[0] === 'none') return []
  if (log_level !== undefined && !['debug', 'info'].includes(log_level)) {
    throw new ConfigError('LOG_REQUESTS', `needs LOG_LEVEL=info or debug, but it is ${log_level}`)
  }
  return chosen
}

/** The URL is not shown: it may hold a password. */
function tracesEndpoint(text: string | undefined): string | null {
  if (text === undefined) return null
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text
  throw new ConfigError(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'must be an http or https URL such as http://127.0.0.1:4318',
  )
}

function diskReserve(text: string | undefined): number | null {
  return text === undefined ? null : wholeNumber('DISK_RESERVE', text, 0, Number.MAX_SAFE_INTEGER)
}

function publicUrl(text: string | undefined): string | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  const plain = url && !url.search && !url.hash && !url.username && !url.password
  const base = url && (url.origin + url.pathname).replace(/\/+$/, '') // without a ? or # that nothing follows
  // An address below a path that begins with two slashes names another host.
  if (!plain || !base || !/^https?:$/.test(url.protocol) || /^[a-z]+:\/\/[^/]+\/\//.test(base)) {
    throw new ConfigError('PUBLIC_URL', `"${withoutUser(text)}" is not a plain http or https URL`)
  }
  return base
}

/** A URL as a message may show it: a user comes with a password. */
function withoutUser(text: string): string {
  return text.replace(/^([a-z]+:[\\/]*)?.*@/is, '$1…@')
}

const default_file = 'waystation.db'

/**
 * In the data folder. Throws when an earlier release began in this data folder and kept its database in the default one,
 * whatever DATA_DIR said: a start with an empty database would look like a loss.
 */
function defaultDatabase(data_dir: string): string {
  const file = join(data_dir, default_file)
  const earlier = join(settings.DATA_DIR.initial, default_file)
  const is_used = ['secret_key', 'cron_secret'].some((name) => existsSync(join(data_dir, name)))
  if (is_used && !existsSync(file) && existsSync(earlier)) {
    const keep = `set DATABASE_URL=sqlite:${earlier} to keep it there`
    throw new ConfigError(
      'DATABASE_URL',
      `the database is now ${file} by default, and yours is ${earlier}: ${keep}`,
    )
  }
  return `sqlite:${file}`
}

/** Another way to the same database, which is a PostgreSQL then. */
function otherUrl(name: SettingName, text: string | undefined, database_url: string): string | null {
  if (text === undefined) return null
  requireReadable(name, text)
  if (!isPostgresUrl(text)) throw new ConfigError(name, 'must be postgres://…')
  if (!isPostgresUrl(database_url)) throw new ConfigError(name, 'needs a PostgreSQL DATABASE_URL')
  return text
}

/** PostgreSQL cuts longer names off, and keeps those that begin with pg_ for itself. */
function roleName(text: string): string {
  if (/^(?!pg_|public$|none$)[a-z_][a-z0-9_]{0,62}$/.test(text)) return text
  throw new ConfigError('DATABASE_ROLE', `"${text}" is not a role name such as waystation_app`)
}

function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text)
}

const encoded_in_passwords = 'a password has %2F for /, %3F for ?, %23 for #, %25 for %'

/** Throws for a URL of PostgreSQL that nobody can read, without its text, which has a password. */
function requireReadable(name: SettingName, text: string): void {
  if (isPostgresUrl(text) && !isReadable(text))
    throw new ConfigError(name, `cannot be read: it names one host, and ${encoded_in_passwords}`)
}

function isReadable(url: string): boolean {
  try {
    const { username, password, host, pathname, search, hash } = new URL(url)
    for (const part of [username, password, pathname]) decodeURIComponent(part)
    // Of a password such as 12/34 or /34 the beginning is taken for a port, and the rest has the @.
    const is_cut = username === '' && /^[^=]*@/.test(pathname + search + hash)
    return !(is_cut || host.includes(','))
  } catch {
    return false
  }
}

function databaseUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  requireReadable('DATABASE_URL', text)
  const known = /^sqlite:.+/.test(text) || isPostgresUrl(text)
  if (!known) throw new ConfigError('DATABASE_URL', 'must be sqlite:<file>, sqlite::memory: or postgres://…')
  if (text.startsWith('sqlite:')) requireFile(text.slice('sqlite:'.length))
  return text
}

/** Other programs read these URLs differently: here a file would be made at a place where nobody looks for it. */
function requireFile(file: string): void {
  if (/^\/\/[^/]/.test(file))
    throw new ConfigError(
      'DATABASE_URL',
      'a SQLite file has no host after //: write sqlite:<file>, or sqlite:///<path> for an absolute path',
    )
  if (/\?\w+=[^/]*$/.test(file))
    throw new ConfigError('DATABASE_URL', 'sqlite:<file> takes no parameters after a ?')
  wholePath('DATABASE_URL', file)
}

/** Of a folder or file that is made when it is not there. */
function wholePath(name: SettingName, path: string): string {
  if (!/^~(\/|$)/.test(path)) return path
  throw new ConfigError(name, `"${path}" begins with ~, which only a shell replaces: write the whole path`)
}

function workers(count: number, database_url: string): number {
  if (count > 1 && database_url.startsWith('sqlite:')) {
    throw new ConfigError(
      'WORKERS',
      `${count} processes need PostgreSQL, but DATABASE_URL is SQLite, which only one process can serve`,
    )
  }
  return count
}

function metricsAddress(text: string | undefined): MetricsAddress | null {
  if (text === undefined) return null
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]\s/]+):(\d+)$/.exec(text) ?? []
  if (host === '') throw new ConfigError('METRICS', `"${text}" is not an address such as 127.0.0.1:9464`)
  return { host: unbracketed(host), port: wholeNumber('METRICS', port, 0, 65_535) }
}

/** Null unless the service writes backups by itself. */
function backups(
  get: (name: SettingName) => string | undefined,
  keep: number,
  database_url: string,
  data_dir: string,
): Config['backups'] {
  const every = get('BACKUP_EVERY')
  if (every === undefined) return null
  if (database_url === 'sqlite::memory:')
    throw new ConfigError('BACKUP_EVERY', 'a database in memory cannot be copied while it is served')
  const every_ms = duration('BACKUP_EVERY', every, backup_every_min)
  const folder = wholePath('BACKUP_DIR', get('BACKUP_DIR') ?? join(data_dir, 'backups'))
  return { every_ms, keep, folder }
}

function secretKey(name: 'SECRET_KEY' | 'SECRET_KEY_PREVIOUS', text: string | undefined): string | null {
  if (text !== undefined && text.length < secret_key_characters_min) {
    throw new ConfigError(name, `must have at least ${secret_key_characters_min} characters`)
  }
  return text ?? null
}

function cronSecret(text: string | undefined, public_url: string): string | null {
  const short = text !== undefined && text.length < cron_secret_characters_min
  if (short && !isLoopback(unbracketed(new URL(public_url).hostname))) {
    throw new ConfigError(
      'CRON_SECRET',
      `must have at least ${cron_secret_characters_min} characters unless PUBLIC_URL is loopback`,
    )
  }
  return text ?? null
}

/** Of nodemailer, which drops what it does not know: a misspelt requireTLS, or one without a value, would send emails in clear. */
const smtp_options: Record<string, 'text' | 'true or false'> = {
  requireTLS: 'true or false',
  ignoreTLS: 'true or false',
  authMethod: 'text',
  name: 'text',
  'tls.servername': 'text',
  'tls.rejectUnauthorized': 'true or false',
}

/** The URL is never shown: it holds a password. */
function mail(url: string | undefined, from: string | undefined): Pick<Config, 'smtp_url' | 'mail_from'> {
  if (url === undefined) {
    if (from !== undefined) throw new ConfigError('MAIL_FROM', 'needs SMTP_URL')
    return { smtp_url: null, mail_from: null }
  }
  const parsed = URL.parse(url)
  if (!parsed || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === '') {
    throw new ConfigError('SMTP_URL', 'must be smtp://… or smtps://…')
  }
  checkSmtpLogin(parsed)
  checkSmtpOptions(parsed.searchParams)
  if (from === undefined) throw new ConfigError('MAIL_FROM', 'is needed with SMTP_URL: the sender of emails')
  if (!/^([^<>@\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/.test(from)) {
    throw new ConfigError('MAIL_FROM', `"${from}" is not an address such as waystation@example.com`)
  }
  return { smtp_url: url, mail_from: from }
}

function checkSmtpLogin({ username, password, pathname, hash }: URL): void {
  // Of a password such as 12/34 or a@b/c a part is taken for the server, and would be looked up and logged.
  if (/[^/]/.test(pathname) || hash !== '')
    throw new ConfigError('SMTP_URL', `cannot be read: it has no path, and ${encoded_in_passwords}`)
  // Nodemailer fails each email to a server that asks for a login.
  if ((username === '') !== (password === ''))
    throw new ConfigError('SMTP_URL', 'has a user and a password, or neither')
}

function checkSmtpOptions(options: URLSearchParams): void {
  const names = Object.keys(smtp_options)
  if ([...options.keys()].some((name) => !names.includes(name)))
    throw new ConfigError('SMTP_URL', `may have only the options ${names.join(', ')}`)
  // Nodemailer makes a list of it, which counts as true: ignoreTLS=false&ignoreTLS=false would send emails in clear.
  if (options.size > new Set(options.keys()).size)
    throw new ConfigError('SMTP_URL', 'has an option twice; each may be given once')
  const switches = names.filter((name) => smtp_options[name] === 'true or false')
  if ([...options].some(([name, value]) => switches.includes(name) && !/^(true|false)$/.test(value)))
    throw new ConfigError('SMTP_URL', `its options ${switches.join(', ')} are true or false`)
}

function origins(text: string | undefined): string[] {
  if (text === undefined) return []
  return text.split(',').map((part) => {
    const origin = part.trim()
    // The URL of a pattern can be parsed, and no page has such an origin.
    if (origin === '*' || (URL.parse(origin)?.origin === origin && !origin.includes('*'))) return origin
    const shown = text.includes('@') ? withoutUser(text) : origin // a password may have the comma
    throw new ConfigError('CORS_ORIGINS', `"${shown}" is not an origin such as https://app.example.com`)
  })
}

function ranges(text: string | undefined): Range[] {
  if (text === undefined) return []
  try {
    return parseRanges(text)
  } catch {
    throw new ConfigError(
      'TRUST_PROXY',
      `"${text}" is not a comma-separated list of addresses or CIDR ranges`,
    )
  }
}

const loopback_ranges = '127.0.0.0/8,::1/128'

function allowRanges(text: string | undefined, loopback_only: boolean): readonly AllowRange[] {
  if (text === undefined) return loopback_only ? parseAllow(loopback_ranges) : []
  try {
    return parseAllow(text)
  } catch (error) {
    throw new ConfigError('CALLBACK_ALLOW', (error as Error).message)
  }
}

function plans(file: string | undefined): Plans {
  if (file === undefined) return default_plans
  if (!existsSync(file)) throw new ConfigError('PLANS_FILE', `there is no file ${file}`)
  try {
    return parsePlans(readFileSync(file, 'utf8'), plan_limits)
  } catch (error) {
    throw new ConfigError('PLANS_FILE', `${file}: ${(error as Error).message}`)
  }
}

const plans_open_default = ['free', 'pro']

/** The default plan may always be named: a sign-up that names none gets it, too. */
function offeredPlans(
  table: Plans,
  loopback_only: boolean,
  get: (name: SettingName) => string | undefined,
): Pick<Config, 'default_plan' | 'plans_open' | 'plans_local'> {
  const default_plan = get('DEFAULT_PLAN') ?? settings.DEFAULT_PLAN.initial
  requirePlan('DEFAULT_PLAN', table, default_plan)
  const named = get('PLANS_OPEN')
    ?.split(',')
    .map((plan) => plan.trim())
  for (const plan of named ?? []) requirePlan('PLANS_OPEN', table, plan)
  const own = loopback_only && Object.hasOwn(table, unlimited_plan) ? [unlimited_plan] : []
  return {
    default_plan,
    plans_open: [...new Set([default_plan, ...(named ?? [...plans_open_default, ...own])])],
    plans_local: named ? [] : own.filter((plan) => plan !== default_plan),
  }
}

function requirePlan(setting: SettingName, table: Plans, plan: string): void {
  if (Object.hasOwn(table, plan)) return
  throw new ConfigError(setting, `there is no plan "${plan}"; the plans are ${Object.keys(table).join(', ')}`)
}
