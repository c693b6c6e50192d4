// The service put together: database, what handlers use, due work, and the request handlers over every route.

import { type Clock, hour_ms, minute_ms, systemClock } from './base/clock.ts'
import { Gate } from './base/gate.ts'
import { HeavyReads } from './base/heavy-reads.ts'
import { newId } from './base/ids.ts'
import { limit } from './base/limit.ts'
import { MemoryBudget } from './base/memory.ts'
import { Repeat } from './base/repeat.ts'
import { Waiters } from './base/waiters.ts'
import { Sender } from './callbacks/deliver.ts'
import { type EgressPolicy, type Listening, refusalAtCreation, systemInterfaces } from './callbacks/guard.ts'
import { Lookups } from './callbacks/lookups.ts'
import { SystemResolver } from './callbacks/resolver.ts'
import { type Config, ConfigError } from './config.ts'
import { openapiOf } from './contract/openapi.ts'
import type { Readiness, Services } from './contract/services.ts'
import { keyCache } from './credentials/cache.ts'
import { type Db, DbError } from './db/db.ts'
import type { DiskOptions } from './db/disk.ts'
import { migrate, mustBeCurrent } from './db/migrate.ts'
import { openDb } from './db/open.ts'
import { failure, type Log } from './http/answers.ts'
import { idle_timeout_seconds } from './http/exchange.ts'
import { type RequestHandlers, requestHandlers } from './http/handlers.ts'
import { KnownHosts } from './http/host.ts'
import { AddressLimit } from './http/limits.ts'
import { Deliveries } from './http/outgoing.ts'
import { JobTimer } from './jobs/timer.ts'
import { JobWorker } from './jobs/worker.ts'
import { Maintenance } from './maintenance/tick.ts'
import * as quotas from './quotas/service.ts'
import { job_kinds, routes } from './routes.ts'
import { cursorKeyUnder, type KeptSecret, keptSecret, mustBeTheKey, secretsUnder } from './secrets/service.ts'
import { pagesOf } from './site/pages.ts'
import * as tenants from './tenants/service.ts'
import { usageCounts } from './usage/service.ts'
import { version } from './version.ts'

const sign_ups_an_hour_max = limit(
  'http.sign_ups',
  30,
  'requests',
  'Sign-ups of one client address in an hour. Past it 429.',
)
const failed_keys_a_minute_max = limit(
  'http.failed_keys',
  60,
  'requests',
  'Wrong keys of one client address in a minute. Past it 429.',
)
/** Our own 413 answers a larger body, with envelope and request id; Bun's would have neither. */
const body_bytes_unlimited = Number.MAX_SAFE_INTEGER
/** How long requests under way may take to finish after the stop signal. */
const drain_ms_max = limit(
  'stop.drain',
  10_000,
  'milliseconds',
  'How long requests under way may take after the stop signal. Past it their connections end.',
)
/** And how long the database may take to close: a silent one must not keep the process alive. */
const close_ms_max = limit('stop.close', 1_500, 'milliseconds', 'How long the database may take to close.')
/** How often stored bytes are written, and the disk is looked at. */
const maintain_every_ms = 1_000
const damaged_message =
  'THE DATABASE FILE IS DAMAGED: nothing is written any more, reads go on as far as they can; restore a backup, or rescue what can be read'
/** And how long the last counts may take to be written. */
const count_ms_max = limit(
  'stop.counts',
  5_000,
  'milliseconds',
  'How long the last counts may take to be written.',
)

export interface AppOptions {
  clock: Clock
  log: Log
  /** The disk failed under a write. */
  onFatal: (error: unknown) => void
  /** How much room the disk of the database has; asked of the system unless given. */
  space?: DiskOptions['space']
}

export interface App {
  db: Db
  cron_secret: KeptSecret
  secret_key: KeptSecret
  /** Listens. The answer is the address, `http://127.0.0.1:8420`. */
  listen(): string
  /**
   * No new connections; requests and attempts under way finish, 10 s at most, and whoever waits is answered with
   * the current state; then the database is closed.
   */
  stop(): Promise<void>
}

/** Opens everything but the port. Throws with one clear line when something cannot be used. */
export async function openApp(config: Config, options: AppOptions): Promise<App> {
  const { clock, log, onFatal, space } = options
  const { cron_secret, secret_key } = naming('DATA_DIR', () => ({
    cron_secret: keptSecret(config.cron_secret, config.data_dir, 'cron_secret'),
    secret_key: keptSecret(config.secret_key, config.data_dir, 'secret_key'),
  }))
  const db = await openDb(config.database_url, {
    clock,
    database_time: clock === systemClock,
    onFatal,
    onDamaged: (error) => log.error({ error: String(error) }, damaged_message),
    onDiskUnknown: (error) => log.error({ error: String(error) }, 'the room on the disk is not known'),
    disk: { reserve_bytes: config.disk_reserve_bytes, ...(space ? { space } : {}) },
    exclusive: true,
  }).catch((error: Error) => {
    throw new ConfigError('DATABASE_URL', error.message)
  })
  try {
    // Nothing is written to a damaged file: what of it can be read is served.
    const schema_version = db.trouble()?.kind === 'damaged' ? await mustBeCurrent(db) : await migrate(db)
    await mustBeTheKey(db, secret_key.value)
    await mustKnowPlans(db, config)
    return assemble(config, db, log, { cron_secret, secret_key, schema_version })
  } catch (error) {
    await db.close()
    throw error
  }
}

interface Facts {
  cron_secret: KeptSecret
  secret_key: KeptSecret
  schema_version: number
}

function assemble(config: Config, db: Db, log: Log, facts: Facts): App {
  const state = {
    draining: false,
    public_url: config.public_url,
    listening: null as Listening | null,
  }
  const { clock } = db
  const waiters = new Waiters()
  const lookups = new Lookups(new SystemResolver(clock))
  const policy: EgressPolicy = {
    allow: config.callback_allow,
    https_only: config.callback_https_only,
    get public_url() {
      return state.public_url
    },
    get listening() {
      return state.listening
    },
    interfaces: systemInterfaces,
    resolve: (tenant_id, name, purpose) => lookups.addresses(tenant_id, name, purpose),
  }
  const sender = new Sender(policy, clock)
  const openapiText = openapiTexts()
  const calls = quotas.monthlyCalls(db, clock)
  const usage = usageCounts(db)
  const db_upkeep = new Repeat(maintain_every_ms, () => db.maintain())
  const services: Services = {
    plans: config.plans,
    secrets: secretsUnder(facts.secret_key.value),
    key_cache: keyCache(clock),
    calls,
    usage,
    cursor_key: cursorKeyUnder(facts.secret_key.value),
    signup_open: config.signup_open,
    public_url: () => state.public_url,
    clock,
    waiters,
    gate: new Gate(clock),
    memory: new MemoryBudget(clock, config.memory_bytes_max),
    callbackRefusal: (tenant_id, url) => refusalAtCreation(policy, tenant_id, url),
    wake: (due_at) => timer.wake(due_at),
    pauseOrResume: () => timer.pauseOrResume(),
    tick: () => maintenance.tick(),
    readiness: () => readinessOf(db, facts.schema_version, state.draining),
    openapi_text: () => openapiText(state.public_url),
  }
  const background = {
    db,
    clock,
    internal: config.tick === 'internal',
    onError: (error: unknown) => {
      const told_before = error instanceof DbError && error.kind === 'damaged'
      if (!told_before) log.error({ error: String(error) }, 'background work failed')
    },
  }
  const worker = new JobWorker({
    ...background,
    services,
    kinds: job_kinds,
    send: (tenant_id, request) => sender.send(tenant_id, request),
    onStragglers: (tenant_ids) => tenants.pauseStragglers(db, services, tenant_ids),
  })
  const timer = new JobTimer({
    ...background,
    worker,
    pauseStep: (after_tenant_id) => tenants.pauseStep(db, after_tenant_id),
  })
  const maintenance = new Maintenance({
    ...background,
    worker,
    timer,
    onPurged: (tenant_id) => log.info({ tenant_id }, 'tenant purged'),
  })
  const handlers = requestHandlers(
    routes,
    {
      db,
      clock,
      services,
      log,
      log_requests: config.log_level === 'debug',
      trusted_proxies: config.trusted_proxies,
      cors_origins: config.cors_origins,
      cron_secret: facts.cron_secret.value,
      limits: config.loopback_only ? null : limitsOf(clock),
      hosts: config.loopback_only ? new KnownHosts(config.public_url) : null,
      deliveries: new Deliveries(services.memory),
      heavy_reads: new HeavyReads(),
    },
    pagesOf({
      openapi_text: services.openapi_text,
      public_url: services.public_url,
      version,
      cors_origins: config.cors_origins,
    }),
  )
  let server: ReturnType<typeof Bun.serve> | undefined
  return {
    db,
    cron_secret: facts.cron_secret,
    secret_key: facts.secret_key,
    listen() {
      server = naming('HOST', () => serve(config, handlers, clock, log))
      state.public_url = config.public_url.replace(/:0(?=\/|$)/, `:${server.port}`)
      state.listening = { host: config.host, port: server.port! }
      maintenance.start()
      calls.start(background.onError)
      usage.start(background.onError)
      db_upkeep.start(background.onError)
      void handlers.warmUp()
      return server.url.href.replace(/\/$/, '')
    },
    async stop() {
      state.draining = true
      waiters.drain()
      const closed = server && drained(server)
      await withinTime(Promise.all([closed, maintenance.stop(), worker.stop()]), drain_ms_max)
      sender.close()
      const counted = [calls, usage, db_upkeep].map((counts) => counts.stop().catch(background.onError))
      await withinTime(Promise.all(counted), count_ms_max)
      await withinTime(db.close(), close_ms_max)
    },
  }
}

function serve(config: Config, handlers: RequestHandlers, clock: Clock, log: Log) {
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: idle_timeout_seconds,
    maxRequestBodySize: body_bytes_unlimited,
    development: false,
    // Outside development Bun shares the port by default, and requests would go to either of two services.
    reusePort: false,
    routes: handlers.routes as never,
    fetch: handlers.fetch as never,
    error: (error) => failure(error, newId('req', clock.now()), log, null),
  })
}

async function drained(server: ReturnType<typeof Bun.serve>): Promise<void> {
  const hard_stop = setTimeout(() => server.stop(true), drain_ms_max)
  await server.stop()
  clearTimeout(hard_stop)
}

/** Resolves when the work does, or when the time is over. */
async function withinTime(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: Timer | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}

/** A start that fails says which setting to look at. */
function naming<T>(setting: 'DATA_DIR' | 'HOST', action: () => T): T {
  try {
    return action()
  } catch (error) {
    const taken = setting === 'HOST' && (error as { code?: string }).code === 'EADDRINUSE'
    throw new ConfigError(taken ? 'PORT' : setting, (error as Error).message)
  }
}

async function readinessOf(db: Db, schema_version: number, draining: boolean): Promise<Readiness> {
  const facts = { version, engine: db.engine, schema_version }
  if (draining) return { ...facts, reason: 'draining', durability: {} }
  const trouble = db.trouble()
  if (trouble) return { ...facts, reason: trouble.reason, durability: {} }
  try {
    return { ...facts, reason: null, durability: await db.durability() }
  } catch {
    return { ...facts, reason: 'the database does not answer', durability: {} }
  }
}

/** Made once for each address, which is once. */
function openapiTexts(): (public_url: string) => string {
  const made = new Map<string, string>()
  return (public_url) => {
    const text = made.get(public_url) ?? JSON.stringify(openapiOf(routes, version, public_url))
    made.set(public_url, text)
    return text
  }
}

function limitsOf(clock: Clock) {
  return {
    sign_ups: new AddressLimit(clock, sign_ups_an_hour_max, hour_ms),
    failed_keys: new AddressLimit(clock, failed_keys_a_minute_max, minute_ms),
  }
}

/** A tenant on a plan without limits would be a tenant without limits. */
async function mustKnowPlans(db: Db, { plans }: Config): Promise<void> {
  for (const { plan } of await tenants.plansInUse(db)) {
    if (!Object.hasOwn(plans, plan)) {
      throw new ConfigError('PLANS_FILE', `tenants are on the plan "${plan}", which it does not have`)
    }
  }
}
