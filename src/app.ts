// The service put together: database, what handlers use, and the request handlers over every route.

import type { Clock } from './base/clock.ts'
import { hour_ms, minute_ms } from './base/clock.ts'
import { newId } from './base/ids.ts'
import { type Config, ConfigError } from './config.ts'
import { openapiOf } from './contract/openapi.ts'
import type { Readiness, Services } from './contract/services.ts'
import { keyCache } from './credentials/cache.ts'
import type { Db } from './db/db.ts'
import { migrate } from './db/migrate.ts'
import { openDb } from './db/open.ts'
import { failure, type Log } from './http/answers.ts'
import { AddressLimit } from './http/limits.ts'
import { type RequestHandlers, requestHandlers } from './http/server.ts'
import { routes } from './routes.ts'
import { cursorKeyUnder, type KeptSecret, keptSecret, mustBeTheKey, secretsUnder } from './secrets/service.ts'
import * as tenants from './tenants/service.ts'
import { type Sweeper, startSweeper } from './tick/sweep.ts'
import { version } from './version.ts'

const sign_ups_an_hour_max = 30
const failed_keys_a_minute_max = 60
/** Bun closes a connection that is idle, or slow, this long. Seconds. */
const idle_timeout_seconds = 10
/** Our own 413 answers a larger body, with envelope and request id; Bun's would have neither. */
const body_bytes_unlimited = Number.MAX_SAFE_INTEGER
/** How long requests under way may take to finish after the stop signal. */
const drain_ms_max = 10_000

export interface AppOptions {
  clock: Clock
  log: Log
  /** The disk failed under a write. */
  onFatal: (error: unknown) => void
}

export interface App {
  db: Db
  cron_secret: KeptSecret
  secret_key: KeptSecret
  /** Listens. The answer is the address, `http://127.0.0.1:8420`. */
  listen(): string
  /** No new connections; requests under way finish, 10 s at most; then the database is closed. */
  stop(): Promise<void>
}

/** Opens everything but the port. Throws with one clear line when something cannot be used. */
export async function openApp(config: Config, { clock, log, onFatal }: AppOptions): Promise<App> {
  const { cron_secret, secret_key } = naming('DATA_DIR', () => ({
    cron_secret: keptSecret(config.cron_secret, config.data_dir, 'cron_secret'),
    secret_key: keptSecret(config.secret_key, config.data_dir, 'secret_key'),
  }))
  const db = await openDb(config.database_url, { clock, onFatal, exclusive: true }).catch((error: Error) => {
    throw new ConfigError('DATABASE_URL', error.message)
  })
  let draining = false
  let public_url = config.public_url
  let handlers: RequestHandlers
  try {
    const schema_version = await migrate(db)
    await mustBeTheKey(db, secret_key.value)
    await mustKnowPlans(db, config)
    const services = servicesOf(
      config,
      clock,
      db,
      secret_key.value,
      schema_version,
      () => draining,
      () => public_url,
    )
    handlers = requestHandlers(
      routes.map(({ route }) => route),
      {
        db,
        clock,
        services,
        log,
        log_requests: config.log_level === 'debug',
        trusted_proxies: config.trusted_proxies,
        cors_origins: config.cors_origins,
        limits: config.loopback_only ? null : limitsOf(clock),
      },
    )
  } catch (error) {
    await db.close()
    throw error
  }

  let server: ReturnType<typeof Bun.serve> | undefined
  let sweeper: Sweeper | undefined
  return {
    db,
    cron_secret,
    secret_key,
    listen() {
      server = naming('HOST', () =>
        Bun.serve({
          hostname: config.host,
          port: config.port,
          idleTimeout: idle_timeout_seconds,
          maxRequestBodySize: body_bytes_unlimited,
          development: false,
          routes: handlers.routes as never,
          fetch: handlers.fetch as never,
          error: (error) => failure(error, newId('req', clock.now()), log, null),
        }),
      )
      if (config.tick === 'internal') {
        sweeper = startSweeper(db, clock, (error) => log.error({ error: String(error) }, 'sweep failed'))
      }
      public_url = config.public_url.replace(/:0(?=\/|$)/, `:${server.port}`)
      void handlers.warmUp()
      return server.url.href.replace(/\/$/, '')
    },
    async stop() {
      draining = true
      if (server) await drained(server)
      await sweeper?.stop()
      await db.close()
    },
  }
}

/** A start that fails says which setting to look at. */
function naming<T>(setting: 'DATA_DIR' | 'HOST', action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw new ConfigError(setting, (error as Error).message)
  }
}

async function drained(server: ReturnType<typeof Bun.serve>): Promise<void> {
  const hard_stop = setTimeout(() => server.stop(true), drain_ms_max)
  await server.stop()
  clearTimeout(hard_stop)
}

function servicesOf(
  config: Config,
  clock: Clock,
  db: Db,
  secret_key: string,
  schema_version: number,
  isDraining: () => boolean,
  publicUrl: () => string,
): Services {
  let openapi_text: string | undefined
  return {
    plans: config.plans,
    secrets: secretsUnder(secret_key),
    key_cache: keyCache(clock),
    cursor_key: cursorKeyUnder(secret_key),
    signup_open: config.signup_open,
    callback_https_only: config.callback_https_only,
    async readiness(): Promise<Readiness> {
      const facts = { version, engine: db.engine, schema_version }
      if (isDraining()) return { ...facts, reason: 'draining', durability: {} }
      try {
        return { ...facts, reason: null, durability: await db.durability() }
      } catch {
        return { ...facts, reason: 'the database does not answer', durability: {} }
      }
    },
    openapi_text() {
      openapi_text ??= JSON.stringify(openapiOf(routes, version, publicUrl()))
      return openapi_text
    },
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
    if (!Object.hasOwn(plans, plan))
      throw new Error(`PLANS_FILE: tenants are on the plan "${plan}", which it does not have`)
  }
}
