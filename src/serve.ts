// The service as a process: reads the environment, starts, listens, and stops on a signal.

import { isAbsolute, resolve } from 'node:path'
import pino from 'pino'
import { openApp } from './app.ts'
import { systemClock } from './base/clock.ts'
import { limit } from './base/limit.ts'
import { type Config, readConfig } from './config.ts'
import { unlimited_plan } from './contract/feature.ts'
import { sqlitePath } from './db/open.ts'
import { planInWords } from './features.ts'
import { ConfigError, cron_secret_characters_min, settingsHelp } from './settings.ts'
import { version } from './version.ts'

const usage = `Waystation ${version}: the backend that software agents lack.

Usage: npm start                 serve until SIGTERM or SIGINT
       npm start -- --help      this text
       npm start -- --version   the version
       npm run admin -- help    the operator's command

Settings come from the environment:
${settingsText()}`

const files_advised_min = limit(
  'start.open_files',
  4_096,
  'entries',
  'Files and connections that the process should be able to open. Below it the start warns: at the limit Bun accepts connections in a loop, which takes most of a core.',
)

const polled_message =
  'LISTEN does not work here, so changes on other nodes are found by looking; see DATABASE_LISTEN_URL in docs/configuration.md'

/** `npm start` with these arguments. */
export async function main(args: string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return console.log(usage)
  if (args.includes('--version') || args.includes('-v')) return console.log(version)
  if (args.length > 0) return fail(`unknown argument ${args[0]}; see --help`)
  await serveFromEnvironment()
}

/** Resolves once it serves; from then on signals end the process. A start that fails ends it, too. */
export async function serveFromEnvironment(): Promise<void> {
  process.umask(0o077) // no other user may read the database and the secrets
  try {
    await serve(readConfig(process.env))
  } catch (error) {
    fail(error instanceof ConfigError ? error.message : `cannot start: ${(error as Error).message}`)
  }
}

/** Every setting with its default. */
export function settingsText(): string {
  return settingsHelp()
}

function fail(line: string): never {
  console.error(`waystation: ${line}`)
  process.exit(1)
}

async function serve(config: Config): Promise<void> {
  const log = pino({ level: config.log_level, base: null }, pino.destination({ dest: 2, sync: true }))
  const crash = (error: unknown, message: string) => {
    log.fatal({ error: error instanceof Error ? error.stack : String(error) }, message)
    process.exit(1)
  }
  process.on('uncaughtException', (error) => crash(error, 'uncaught exception'))
  process.on('unhandledRejection', (error) => crash(error, 'unhandled rejection'))

  const app = await openApp(config, {
    clock: systemClock,
    log,
    onFatal: (error) => crash(error, 'the disk failed under a write: nothing more can be trusted'),
  })
  let stopping = false
  const stop = (signal: string) => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'draining')
    app.stop().then(
      () => process.exit(0),
      (error) => crash(error, 'stopping failed'),
    )
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))

  const address = app.listen()
  const trouble = app.nodesTrouble()
  if (trouble !== null) log.warn({ reason: trouble }, polled_message)
  console.log(banner(config, address, [app.cron_secret.file, app.secret_key.file], trouble !== null))
}

function banner(
  config: Config,
  address: string,
  secret_files: (string | null)[],
  is_polled: boolean,
): string {
  const path = sqlitePath(config.database_url)
  const data = path === null ? `PostgreSQL at ${new URL(config.database_url).host}` : path
  const kept = secret_files
    .filter((file) => file !== null)
    .map((file) => (isAbsolute(file) ? file : resolve(file)))
  const lines = [
    `Waystation ${version} is ready`,
    `  address     ${address}`,
    `  data        ${data}${path === ':memory:' ? '  (gone when the process ends: nothing is durable)' : ''}`,
    `  secrets     ${kept.length > 0 ? `${kept.join(', ')}  (back them up)` : 'from the environment'}`,
    ...pagesLines(config, address),
    ...planLines(config),
    `  first call  curl -s ${reachable(address)}${firstCall(config)}`,
  ]
  if (config.signup_open && !config.loopback_only) {
    lines.push('  warning     sign-up is open to everyone who can reach the service; SIGNUP=closed closes it')
  }
  if (is_polled) lines.push(`  warning     ${polled_message}`)
  const files_max = openFilesMax()
  if (files_max < files_advised_min) {
    lines.push(
      `  warning     only ${files_max} files and connections may be open; see LimitNOFILE in docs/self-hosting.md`,
    )
  }
  if (config.cron_secret !== null && config.cron_secret.length < cron_secret_characters_min) {
    lines.push(`  warning     CRON_SECRET has fewer than ${cron_secret_characters_min} characters`)
  }
  return lines.join('\n')
}

/** Where people begin, in a browser. */
function pagesLines({ public_url, signup_open }: Config, address: string): string[] {
  const base = public_url.replace(/:0(?=\/|$)/, `:${new URL(address).port}`)
  const begin = signup_open ? '  (open it to create a tenant)' : ''
  return [`  console     ${base}/console${begin}`, `  docs        ${base}/docs`]
}

function planLines({ plans, default_plan, plans_open, signup_open }: Config): string[] {
  if (!signup_open) return ['  sign-up     closed: nobody can create a tenant; SIGNUP=open opens it']
  const line = `  plan        a new tenant is on ${default_plan}: ${planInWords(plans[default_plan]!)}`
  if (default_plan === unlimited_plan || !plans_open.includes(unlimited_plan)) return [line]
  return [
    line,
    '              to run it for yourself, sign up with "plan": "unlimited" or set DEFAULT_PLAN=unlimited',
  ]
}

function firstCall({ signup_open }: Config): string {
  return signup_open ? `/v1/tenants --json '{"name": "acme", "owner_email": "you@example.com"}'` : '/llms.txt'
}

/** Infinity when it is unknown. Bun has raised the soft limit to the hard one. */
function openFilesMax(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } }
  const soft = report.userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY
}

/** A service that listens on every address is reached on loopback. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
