// The only reader of the environment: one frozen object, checked whole before anything starts.

import { existsSync, readFileSync } from 'node:fs'
import { limit } from './base/limit.ts'
import { memory_bytes_default, memory_bytes_min } from './base/memory.ts'
import type { AllowRange } from './callbacks/ranges.ts'
import { parseAllow } from './callbacks/ranges.ts'
import type { Plans } from './contract/dependencies.ts'
import { default_plans, plan_limits } from './features.ts'
import { parseRanges, type Range } from './http/address.ts'
import { parsePlans } from './quotas/plans.ts'

export interface Config {
  host: string
  port: number
  /** Without a slash at the end. With PORT=0 its port is 0 until the service listens. */
  public_url: string
  database_url: string
  /** Null: generated at first start and kept in data_dir. */
  cron_secret: string | null
  secret_key: string | null
  data_dir: string
  tick: 'internal' | 'external'
  signup_open: boolean
  callback_allow: readonly AllowRange[]
  callback_https_only: boolean
  cors_origins: readonly string[]
  trusted_proxies: readonly Range[]
  plans: Plans
  /** For request bodies and answers in memory at once. */
  memory_bytes_max: number
  log_level: LogLevel
  /** Bytes of disk that are kept free; 0: none. Null: by the size of the disk. */
  disk_reserve_bytes: number | null
  /** HOST and PUBLIC_URL are loopback and no proxy is trusted: nobody but this machine is served. */
  loopback_only: boolean
}

const log_levels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof log_levels)[number]

/** Name, default and meaning of every setting; `--help` and docs/configuration.md say the same. */
export const settings = {
  HOST: { initial: '127.0.0.1', help: 'address to listen on' },
  PORT: { initial: '8420', help: 'port to listen on, 0 for any free one' },
  PUBLIC_URL: { initial: 'http://HOST:PORT', help: 'where clients reach the service' },
  DATABASE_URL: {
    initial: 'sqlite:data/waystation.db',
    help: 'sqlite:<file>, sqlite::memory: or postgres://…',
  },
  CRON_SECRET: { initial: 'generated', help: 'what POST /v1/tick asks for' },
  SECRET_KEY: {
    initial: 'generated',
    help: 'seals signing secrets; the same on every node, at least 16 characters',
  },
  DATA_DIR: { initial: 'data', help: 'folder of the generated secrets' },
  TICK: {
    initial: 'internal',
    help: 'internal: do what falls due by itself; external: leave it to the caller of the tick',
  },
  SIGNUP: { initial: 'open', help: 'open or closed: who may create tenants' },
  CALLBACK_ALLOW: {
    initial: 'loopback while all is loopback, else none',
    help: 'comma list of CIDR[:port] that callbacks may reach although not public',
  },
  CALLBACK_HTTPS_ONLY: { initial: 'false', help: 'true: callback URLs must be https' },
  CORS_ORIGINS: { initial: 'none', help: 'comma list of origins whose pages may call the API, or *' },
  TRUST_PROXY: {
    initial: 'none',
    help: 'comma list of proxy addresses or CIDRs whose X-Forwarded-For is believed',
  },
  PLANS_FILE: { initial: 'none', help: 'JSON file that replaces the table of plans' },
  MEMORY_BUDGET: {
    initial: `${memory_bytes_default / 1_048_576}MiB`,
    help: 'memory for request bodies and answers in flight, in bytes or as 128MiB',
  },
  DISK_RESERVE: {
    initial: '256 MiB or 5 % of the disk',
    help: 'SQLite: bytes of disk that are kept for deletes and for what the service must write; 0 for none',
  },
  LOG_LEVEL: { initial: 'info', help: log_levels.join(', ') },
} as const satisfies Record<string, { initial: string; help: string }>

export type SettingName = keyof typeof settings
type Environment = Readonly<Record<string, string | undefined>>

/** A setting that cannot be used. The message is one line that names it. */
export class ConfigError extends Error {
  override name = 'ConfigError'
  constructor(setting: SettingName, why: string) {
    super(`${setting}: ${why}`)
  }
}

/** Reads, checks and freezes. Throws ConfigError for the first setting that is wrong. */
export function readConfig(environment: Environment): Config {
  const get = (name: SettingName) => environment[name]?.trim() || undefined
  const host = get('HOST') ?? settings.HOST.initial
  const port = wholeNumber('PORT', get('PORT') ?? settings.PORT.initial, 0, 65_535)
  const public_url = publicUrl(get('PUBLIC_URL')) ?? `http://${bracketed(reachable(host))}:${port}`
  const trusted_proxies = ranges(get('TRUST_PROXY'))
  const loopback_only =
    isLoopback(host) && isLoopback(unbracketed(new URL(public_url).hostname)) && trusted_proxies.length === 0
  return Object.freeze({
    host,
    port,
    public_url,
    database_url: databaseUrl(get('DATABASE_URL') ?? settings.DATABASE_URL.initial),
    cron_secret: cronSecret(get('CRON_SECRET'), public_url),
    secret_key: secretKey(get('SECRET_KEY')),
    data_dir: get('DATA_DIR') ?? settings.DATA_DIR.initial,
    tick: oneOf('TICK', get('TICK') ?? settings.TICK.initial, ['internal', 'external']),
    signup_open: oneOf('SIGNUP', get('SIGNUP') ?? settings.SIGNUP.initial, ['open', 'closed']) === 'open',
    callback_allow: allowRanges(get('CALLBACK_ALLOW'), loopback_only),
    callback_https_only:
      oneOf('CALLBACK_HTTPS_ONLY', get('CALLBACK_HTTPS_ONLY') ?? 'false', ['true', 'false']) === 'true',
    cors_origins: origins(get('CORS_ORIGINS')),
    trusted_proxies,
    plans: plans(get('PLANS_FILE')),
    memory_bytes_max: memoryBytes(get('MEMORY_BUDGET') ?? settings.MEMORY_BUDGET.initial),
    disk_reserve_bytes: diskReserve(get('DISK_RESERVE')),
    log_level: oneOf('LOG_LEVEL', get('LOG_LEVEL') ?? settings.LOG_LEVEL.initial, log_levels),
    loopback_only,
  })
}

/** The text of `--help`. */
export function settingsHelp(): string {
  const width = Math.max(...Object.keys(settings).map((name) => name.length))
  return Object.entries(settings)
    .map(([name, { initial, help }]) => `  ${name.padEnd(width)}  ${help} (default: ${initial})`)
    .join('\n')
}

function wholeNumber(name: SettingName, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new ConfigError(name, `"${text}" is no whole number from ${least} to ${most}`)
  }
  return value
}

const byte_units: Readonly<Record<string, number>> = {
  '': 1,
  kb: 1_000,
  mb: 1_000_000,
  gb: 1_000_000_000,
  kib: 1_024,
  mib: 1_048_576,
  gib: 1_073_741_824,
}

function memoryBytes(text: string): number {
  const [, digits = '', unit = ''] = /^(\d+) ?([A-Za-z]*)$/.exec(text) ?? []
  const bytes = digits === '' ? Number.NaN : Number(digits) * (byte_units[unit.toLowerCase()] ?? Number.NaN)
  if (!Number.isSafeInteger(bytes)) {
    throw new ConfigError('MEMORY_BUDGET', `"${text}" is no number of bytes such as 134217728 or 128MiB`)
  }
  if (bytes < memory_bytes_min) {
    throw new ConfigError('MEMORY_BUDGET', `"${text}" is less than ${memory_bytes_min / 1_048_576}MiB`)
  }
  return bytes
}

function diskReserve(text: string | undefined): number | null {
  return text === undefined ? null : wholeNumber('DISK_RESERVE', text, 0, Number.MAX_SAFE_INTEGER)
}

function oneOf<const T extends string>(name: SettingName, text: string, allowed: readonly T[]): T {
  if ((allowed as readonly string[]).includes(text)) return text as T
  throw new ConfigError(name, `"${text}" is none of ${allowed.join(', ')}`)
}

function publicUrl(text: string | undefined): string | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  const plain = url && !url.search && !url.hash && !url.username && !url.password
  const base = url?.href.replace(/\/+$/, '')
  // An address below a path that begins with two slashes names another host.
  if (!plain || !base || !/^https?:$/.test(url.protocol) || /^[a-z]+:\/\/[^/]+\/\//.test(base)) {
    throw new ConfigError('PUBLIC_URL', `"${text}" is no plain http or https URL`)
  }
  return base
}

function databaseUrl(text: string): string {
  const known = /^sqlite:.+/.test(text) || (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text))
  if (!known) throw new ConfigError('DATABASE_URL', 'must be sqlite:<file>, sqlite::memory: or postgres://…')
  return text
}

const secret_key_characters_min = limit(
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

function secretKey(text: string | undefined): string | null {
  if (text !== undefined && text.length < secret_key_characters_min) {
    throw new ConfigError('SECRET_KEY', `must have at least ${secret_key_characters_min} characters`)
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

function origins(text: string | undefined): string[] {
  if (text === undefined) return []
  return text.split(',').map((part) => {
    const origin = part.trim()
    if (origin === '*' || URL.parse(origin)?.origin === origin) return origin
    throw new ConfigError('CORS_ORIGINS', `"${origin}" is no origin such as https://app.example.com`)
  })
}

function ranges(text: string | undefined): Range[] {
  if (text === undefined) return []
  try {
    return parseRanges(text)
  } catch {
    throw new ConfigError('TRUST_PROXY', `"${text}" is no comma list of addresses or CIDR ranges`)
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

/** Where a client on this machine finds a server that listens on every address. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function unbracketed(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
