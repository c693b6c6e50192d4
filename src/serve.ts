// The service as a process: reads the environment, starts, listens, and stops on a signal.

import { isAbsolute, resolve } from 'node:path'
import pino, { type Logger } from 'pino'
import { naming, prepareDatabase } from './app/start.ts'
import { openApp } from './app.ts'
import { BackupTimer, writeInProcess } from './backup/timer.ts'
import { systemClock } from './base/clock.ts'
import { limit } from './base/limit.ts'
import { writeWhole } from './base/output.ts'
import { type Config, readConfig } from './config.ts'
import { unlimited_plan } from './contract/feature.ts'
import { sqlitePath } from './db/open.ts'
import { planInWords } from './features.ts'
import { adminCommand } from './heap.ts'
import { listenForMetrics } from './metrics/listener.ts'
import { ConfigError, cron_secret_characters_min, settingsHelp } from './settings.ts'
import { version } from './version.ts'
import { worker_variable } from './workers/messages.ts'
import { claimPort } from './workers/port.ts'
import { startOf } from './workers/processes.ts'
import { Supervisor } from './workers/supervisor.ts'
import { type Channel, SupervisedWorker } from './workers/worker.ts'

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
  'LISTEN does not work here, so changes on other nodes are found by polling; see DATABASE_LISTEN_URL in docs/configuration.md'

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
    const config = readConfig(process.env)
    const number = process.env[worker_variable]
    if (number !== undefined) await serveAsWorker(config, Number(number))
    else if (config.workers > 1) await supervise(config)
    else await serve(config)
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
  const log = logOf(config)
  // Before anything is awaited: the first process of a container gets no signal that it does not handle.
  let stop = (): void => process.exit(0)
  onSignals((signal, is_second) => {
    if (is_second) process.exit(1)
    log.info({ signal }, 'draining')
    stop()
  })
  const backups = backupsOf(config, log)
  const app = await openApp(config, { ...optionsOf(log), lingers: true })
  stop = () => {
    backups?.stop()
    exitAfter(log, app.stop())
  }
  const address = app.listen()
  const trouble = app.nodesTrouble()
  if (trouble !== null) log.warn({ reason: trouble }, polled_message)
  backups?.start()
  const secret_files = [app.cron_secret.file, app.secret_key.file]
  console.log(
    banner(config, {
      address,
      metrics_url: app.metrics?.url ?? null,
      secret_files,
      is_polled: trouble !== null,
    }),
  )
}

/** `number`: of the worker, from 1. Its supervisor prints the banner. */
async function serveAsWorker(config: Config, number: number): Promise<void> {
  const log = logOf(config, number)
  let stop: () => void = () => process.exit(0)
  const worker = new SupervisedWorker(
    channelOfProcess(),
    () => systemClock.monotonic(),
    () => stop(),
  )
  // A signal to all processes of the service at once, such as Ctrl-C, comes twice: from the terminal and by the supervisor.
  onSignals(() => stop())
  const app = await openApp(config, {
    ...optionsOf(log),
    ...{ lingers: true, shares_port: true, limiters: worker.limiters },
  })
  let stopping = false
  stop = () => {
    if (stopping) return
    stopping = true
    exitAfter(log, app.stop())
  }
  const address = app.listen()
  const trouble = app.nodesTrouble()
  if (trouble !== null) log.warn({ reason: trouble }, polled_message)
  worker.ready({ address, is_polled: trouble !== null }, app.metrics && (() => app.metrics!.collect()))
}

/** Secrets, schema and port first, so that a start that fails says so once. */
async function supervise(config: Config): Promise<void> {
  if (process.platform !== 'linux') {
    throw new ConfigError('WORKERS', 'several processes can share a port only on Linux; set WORKERS=1')
  }
  const log = logOf(config)
  const backups = backupsOf(config, log)
  let running: Supervisor | null = null
  onSignals((signal, is_second) => {
    if (is_second) {
      running?.kill()
      process.exit(1)
    }
    log.info({ signal }, 'draining')
    backups?.stop()
    if (running === null) process.exit(0)
    const stopped = running.stop().then((in_order) => {
      if (!in_order) throw new Error('a worker did not stop in order')
    })
    exitAfter(log, stopped)
  })
  const { cron_secret, secret_key } = await prepareDatabase(config, optionsOf(log))
  const port = naming('HOST', () => claimPort(config.host, config.port))
  const start = startOf(process.env, port.number)
  const supervisor = new Supervisor({ workers: config.workers, start, clock: systemClock, log })
  const metrics_url = listenAsSupervisor(config, supervisor, log)
  running = supervisor
  const ready = await supervisor.start()
  if (ready === null) return // the signal ends the process
  backups?.start()
  const secret_files = [cron_secret.file, secret_key.file]
  console.log(banner(config, { ...ready, metrics_url, secret_files }))
}

/** The workers have no listener for metrics of their own. */
function listenAsSupervisor(config: Config, supervisor: Supervisor, log: Logger): string | null {
  const { metrics } = config
  if (metrics === null) return null
  const collect = () => supervisor.collect()
  const onError = (error: unknown) => log.error({ error: String(error) }, 'the metrics were not collected')
  return naming('METRICS', () => listenForMetrics(metrics, collect, onError)).url
}

/** In the process that the operator has started: workers write none. Null without BACKUP_EVERY. */
function backupsOf({ backups }: Config, log: Logger): BackupTimer | null {
  if (backups === null) return null
  const write = (file: string) => writeInProcess(file, process.env, adminCommand())
  return new BackupTimer({ ...backups, clock: systemClock, log, write })
}

/** `worker`: the number of this process, if it is a worker. */
function logOf(config: Config, worker?: number): Logger {
  const base = worker === undefined ? null : { worker }
  const log = pino({ level: config.log_level, base }, { write: logLine })
  process.on('uncaughtException', (error) => crash(log, error, 'uncaught exception'))
  process.on('unhandledRejection', (error) => crash(log, error, 'unhandled rejection'))
  return log
}

/** A line that is not taken is lost: what it tells of has happened, and must not fail for it. */
function logLine(line: string): void {
  try {
    writeWhole(2, line)
  } catch {
    // The disk under the log is full, or its reader is gone.
  }
}

function crash(log: Logger, error: unknown, message: string): never {
  log.fatal({ error: error instanceof Error ? error.stack : String(error) }, message)
  process.exit(1)
}

function optionsOf(log: Logger) {
  const onFatal = (error: unknown) =>
    crash(log, error, 'the disk failed under a write: nothing more can be trusted')
  return { clock: systemClock, log, onFatal }
}

function onSignals(listener: (signal: string, is_second: boolean) => void): void {
  let is_second = false
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.on(signal, () => {
      const repeated = is_second
      is_second = true
      listener(signal, repeated)
    })
  }
}

function exitAfter(log: Logger, stopped: Promise<void>): void {
  stopped.then(
    () => process.exit(0),
    (error) => crash(log, error, 'stopping failed'),
  )
}

/** The channel to the supervisor, which ends with it. */
function channelOfProcess(): Channel {
  return {
    send: (message) => void (process.connected && process.send?.(message)),
    onMessage: (listener) => void process.on('message', listener),
    onClosed: (listener) => void process.on('disconnect', listener),
  }
}

interface Started {
  address: string
  metrics_url: string | null
  secret_files: (string | null)[]
  is_polled: boolean
}

/** This service speaks no TLS, so there is a proxy where its URL does. */
const unknown_proxy_message =
  'TRUST_PROXY names no proxy: all clients behind one count as one address, and that proxy may answer some calls with 502'

function banner(config: Config, { address, metrics_url, secret_files, is_polled }: Started): string {
  const path = sqlitePath(config.database_url)
  const data = path === null ? `PostgreSQL at ${new URL(config.database_url).host}` : path
  const kept = secret_files
    .filter((file) => file !== null)
    .map((file) => (isAbsolute(file) ? file : resolve(file)))
  const lines = [
    `Waystation ${version} is ready`,
    `  address     ${address}`,
    ...(config.workers > 1 ? [`  workers     ${workersLine(config)}`] : []),
    ...(config.test_clock
      ? ['  clock       a test clock: POST /v1/clock/advance moves the time of this service']
      : []),
    `  data        ${data}${path === ':memory:' ? '  (gone when the process ends: nothing is durable)' : ''}`,
    `  secrets     ${kept.length > 0 ? `${kept.join(', ')}  (back them up)` : 'from the environment'}`,
    ...pagesLines(config, address),
    ...(metrics_url === null ? [] : [`  metrics     ${metrics_url}`]),
    ...planLines(config),
    `  first call  curl -s ${reachable(address)}${firstCall(config)}`,
  ]
  if (config.signup_open && !config.loopback_only) {
    lines.push('  warning     sign-up is open to everyone who can reach the service; SIGNUP=closed closes it')
  }
  if (config.public_url.startsWith('https:') && config.trusted_proxies.length === 0)
    lines.push(`  warning     ${unknown_proxy_message}`)
  if (is_polled) lines.push(`  warning     ${polled_message}`)
  lines.push(...limitLines(path))
  if (config.cron_secret !== null && config.cron_secret.length < cron_secret_characters_min) {
    lines.push(`  warning     CRON_SECRET has fewer than ${cron_secret_characters_min} characters`)
  }
  return lines.join('\n')
}

function workersLine({ workers, database_connections }: Config): string {
  return `${workers} processes behind one port, with ${workers * database_connections} connections to PostgreSQL`
}

/** Where people begin, in a browser. */
function pagesLines({ public_url, signup_open }: Config, address: string): string[] {
  const base = public_url.replace(/:0(?=\/|$)/, `:${new URL(address).port}`)
  const begin = signup_open ? '  (open it to create a tenant)' : ''
  return [`  console     ${base}/console${begin}`, `  docs        ${base}/docs`]
}

function planLines({ plans, default_plan, plans_open, signup_open }: Config): string[] {
  if (!signup_open) return ['  sign-up     closed: only the operator creates tenants (admin create-tenant)']
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

/** `path`: of the SQLite database, or null. */
function limitLines(path: string | null): string[] {
  const files_max = limitOf('open_files')
  const bytes_max = path === null ? Number.POSITIVE_INFINITY : limitOf('file_size_blocks') // in bytes, despite its name
  return [
    ...(files_max < files_advised_min
      ? [`only ${files_max} files and connections may be open; see LimitNOFILE in docs/self-hosting.md`]
      : []),
    ...(Number.isFinite(bytes_max)
      ? [`no file may exceed ${bytes_max} bytes; see LimitFSIZE in docs/self-hosting.md`]
      : []),
  ].map((line) => `  warning     ${line}`)
}

/** The soft limit (getrlimit(2)), which Bun has raised to the hard one for files; Infinity when it is unknown. */
function limitOf(name: 'open_files' | 'file_size_blocks'): number {
  const report = process.report.getReport() as {
    userLimits?: Record<string, { soft?: number | string }>
  }
  const soft = report.userLimits?.[name]?.soft
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY
}

/** A service that listens on every address is reached on loopback. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
