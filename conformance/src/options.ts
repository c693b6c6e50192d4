// The command line and the environment, read once.

import { parseArgs } from 'node:util'
import { type Profile, profiles } from './check.ts'

export interface GivenTenant {
  tenant_id: string
  admin_key: string
}

export interface Options {
  url: string
  /** Empty: tenants are made by sign-up. */
  tenants: GivenTenant[]
  cron_secret: string | null
  /** The service is expected to reach the receiver. */
  receives: boolean
  receiver_url: string | null
  listen_host: string
  listen_port: number
  /** The longest wait for one check in seconds, without a test clock; null: none. */
  slow_seconds: number | null
  /** Parts of names of checks; empty: all. */
  only: string[]
  /** Checks of profiles past this one are left out. */
  profile: Profile
  json: boolean
  strict: boolean
  list: boolean
  at_once: number
  timeout_ms: number
  /** How long something that happens beside a request may take, such as a callback. */
  patience_ms: number
}

/** The options cannot be used; the message is for the user. */
export class UsageError extends Error {}

export const usage = `Usage: waystation-conformance <url> [options]

Checks an implementation of the Waystation API, as a black box, against its contract.
<url> is the site's address, without /v1: http://127.0.0.1:8420

Keys (the environment keeps them out of the list of processes):
  --tenant <tenant_id>:<admin_key>  a tenant to use instead of signing up; give two
                                    (CONFORMANCE_TENANTS: the same, separated by commas)
  --cron-secret <secret>            for POST /v1/tick (CONFORMANCE_CRON_SECRET)

Callbacks:
  --receiver-url <url>   how the service reaches the receiver of this suite
  --listen <host:port>   where the receiver listens (127.0.0.1:0)
  --no-receiver          checks of deliveries are not run

What runs:
  --profile <name>       documents: what the two API documents say, and nothing else
                         contract: also what is decided where they are silent (the default)
                         extensions: also the additions, such as the journal
  --only <text>          checks whose name contains the text; may be repeated
  --slow [seconds]       without a test clock: waits for checks that take no longer (300)
  --at-once <count>      checks that run at the same time (8)
  --timeout <seconds>    for one answer (60)
  --patience <seconds>   for what happens beside a request, such as a callback (10)
  --list                 prints the checks and runs none

Result:
  --json                 prints the result as one JSON document
  --strict               a check that was not run counts as failed

Exit status: 0 every check that ran has passed, 1 a check has failed or none could be run,
2 the options are wrong or the service refuses a key that was given, 3 the service does not answer,
or is away.
`

const flags = {
  tenant: { type: 'string', multiple: true },
  'cron-secret': { type: 'string' },
  'receiver-url': { type: 'string' },
  listen: { type: 'string' },
  'no-receiver': { type: 'boolean' },
  only: { type: 'string', multiple: true },
  profile: { type: 'string' },
  slow: { type: 'string' },
  'at-once': { type: 'string' },
  timeout: { type: 'string' },
  patience: { type: 'string' },
  list: { type: 'boolean' },
  json: { type: 'boolean' },
  strict: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const defaults = { slow_seconds: 300, at_once: 8, timeout_seconds: 60, patience_seconds: 10 }

/** Null when the user asks for help. */
export function readOptions(args: string[], environment: Record<string, string | undefined>): Options | null {
  const { values, positionals } = parsed(args)
  if (values.help) return null
  const url = positionals[0] ?? (values.list ? 'http://127.0.0.1' : '')
  if (positionals.length > 1) throw new UsageError(`one URL is expected, got ${positionals.join(' ')}`)
  if (!isHttp(url)) throw new UsageError('the URL of the service is missing, such as http://127.0.0.1:8420')
  const from_environment = environment.CONFORMANCE_TENANTS?.split(',').filter((text) => text !== '') ?? []
  const [listen_host, listen_port] = placeOf(values.listen ?? '127.0.0.1:0')
  const receiver_url = values['receiver-url'] ?? null
  if (receiver_url !== null && !isHttp(receiver_url))
    throw new UsageError(`--receiver-url takes a URL, got ${receiver_url}`)
  return {
    url: url.replace(/\/(v1\/?)?$/, ''),
    tenants: (values.tenant ?? from_environment).map(tenantOf),
    cron_secret: values['cron-secret'] ?? environment.CONFORMANCE_CRON_SECRET ?? null,
    receives: !values['no-receiver'] && (receiver_url !== null || isLoopback(url)),
    receiver_url,
    listen_host,
    listen_port,
    slow_seconds: values.slow === undefined ? null : numberOf('--slow', values.slow),
    only: values.only ?? [],
    profile: profileOf(values.profile ?? 'contract'),
    json: values.json ?? false,
    strict: values.strict ?? false,
    list: values.list ?? false,
    at_once: numberOf('--at-once', values['at-once'] ?? String(defaults.at_once)),
    timeout_ms: numberOf('--timeout', values.timeout ?? String(defaults.timeout_seconds)) * 1_000,
    patience_ms: numberOf('--patience', values.patience ?? String(defaults.patience_seconds)) * 1_000,
  }
}

function parsed(args: string[]) {
  // `--slow` may stand without a number, which parseArgs does not know.
  const filled = args.flatMap((arg, i) =>
    arg === '--slow' && !/^\d+$/.test(args[i + 1] ?? '') ? [`--slow=${defaults.slow_seconds}`] : [arg],
  )
  try {
    return parseArgs({ args: filled, options: flags, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function tenantOf(text: string): GivenTenant {
  const [tenant_id, admin_key, ...more] = text.split(':')
  if (!tenant_id || !admin_key || more.length > 0)
    throw new UsageError('a tenant is given as <tenant_id>:<admin_key>')
  return { tenant_id, admin_key }
}

function profileOf(text: string): Profile {
  const profile = profiles.find((one) => one === text)
  if (!profile) throw new UsageError(`--profile is one of ${profiles.join(', ')}, got ${text}`)
  return profile
}

function placeOf(text: string): [host: string, port: number] {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  if (!host || !port || Number(port) > 65_535)
    throw new UsageError(`--listen takes <host>:<port>, got ${text}`)
  return [host.replace(/^\[(.*)\]$/, '$1'), Number(port)]
}

function numberOf(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0)
    throw new UsageError(`${name} takes a number above 0, got ${text}`)
  return value
}

function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}

function isHttp(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
