// The whole service: database, dependencies of handlers, due work, and the request handlers of every route.

import { type Background, backgroundOf, workersOf } from './app/background.ts'
import { ClockLog } from './app/clock-log.ts'
import { egressOf } from './app/egress.ts'
import { Metrics } from './app/measured.ts'
import type { Nodes } from './app/nodes.ts'
import { overloadOf } from './app/overload.ts'
import { dependenciesOf, type Facts, handlersOf, type State } from './app/parts.ts'
import type { LateRows } from './app/secured.ts'
import { type AppOptions, keptSecrets, naming, openDatabase, requireUsable } from './app/start.ts'
import { lingered, stopInSteps } from './app/stop.ts'
import { atTime, MovedTime } from './app/test-clock.ts'
import { tracerOf } from './app/traced.ts'
import { TroubleLog } from './app/trouble-log.ts'
import type { Clock } from './base/clock.ts'
import { newId } from './base/ids.ts'
import { Repeat } from './base/repeat.ts'
import type { Tracer } from './base/tracer.ts'
import { TestTime } from './clock/service.ts'
import type { Config } from './config.ts'
import type { Jobs } from './contract/dependencies.ts'
import type { Db } from './db/db.ts'
import { features, follows } from './features.ts'
import { failure } from './http/answers.ts'
import { Drain } from './http/drain.ts'
import { idle_timeout_seconds } from './http/exchange.ts'
import type { RequestHandlers } from './http/handlers.ts'
import type { JobWorker } from './jobs/worker.ts'
import { JournalKeeper } from './journal/keeper.ts'
import { Measures } from './metrics/service.ts'
import { Quarantine } from './quarantine/service.ts'
import type { KeptSecret } from './secrets/service.ts'

/** Above the service's own limit, so that its 413 answers, with envelope and request id; Bun's would have neither. */
const body_bytes_unlimited = Number.MAX_SAFE_INTEGER
/** The interval at which stored bytes are written and the disk is checked. */
const maintain_every_ms = 1_000

export interface App {
  db: Db
  /** Null unless row-level security is to come into force later. */
  late_rows: LateRows | null
  cron_secret: KeptSecret
  secret_key: KeptSecret
  /** Of every route and page: also answer callers without a connection. */
  handlers: RequestHandlers
  /** Listens. Returns the address, `http://127.0.0.1:8420`. */
  listen(): string
  /** Null without METRICS. */
  metrics: Metrics | null
  /** The reason that changes on other nodes are looked for, not heard; null when they are, or when there can be none. */
  nodesTrouble(): string | null
  /**
   * No new connections; requests and attempts under way finish, 10 s at most, and requests that wait are answered
   * with the current state; then the database is closed.
   */
  stop(): Promise<void>
}

/** Opens everything but the port. Throws with one clear line when something cannot be used. */
export async function openApp(config: Config, options: AppOptions): Promise<App> {
  const secrets = keptSecrets(config)
  const tracer = await tracerOf(config, options)
  const measures = config.metrics ? new Measures() : null
  const { db, late_rows } = await openDatabase(config, options, measures?.db)
  try {
    const usable = await requireUsable(db, config, secrets)
    const facts = {
      secret_key: secrets.secret_key.value,
      cron_secret: secrets.cron_secret.value,
      ...usable,
    }
    const quarantine = new Quarantine()
    await quarantine.begin(db)
    const time = config.test_clock ? new TestTime(db) : null
    await time?.start()
    const opened = { config, db, options, facts, quarantine, time, measures, tracer, late_rows }
    const { nodes, ...app } = assemble(opened)
    await nodes?.start()
    return { db, late_rows, ...secrets, ...app }
  } catch (error) {
    await db.close()
    throw error
  }
}

type Assembled = Omit<App, 'db' | 'late_rows' | 'cron_secret' | 'secret_key'> & { nodes: Nodes | null }

interface Opened {
  config: Config
  db: Db
  options: AppOptions
  facts: Facts
  quarantine: Quarantine
  /** Null: the time is the real one. */
  time: TestTime | null
  measures: Measures | null
  tracer: Tracer | null
  late_rows: LateRows | null
}

function assemble(opened: Opened): Assembled {
  const { config, db, options, time, measures, tracer, late_rows } = opened
  const { log, background: in_background = true } = options
  const state: State = { drain: new Drain(), public_url: config.public_url, listening: null }
  const lookForJobs = () => in_background && timer.wake(db.clock.now())
  const { overload, loop_delay } = overloadOf(options, db.clock, measures)
  const given = { ...opened, state, lookForJobs, overload }
  const { policy, ...senders } = egressOf(config, db, state, log)
  const jobs: Jobs = {
    wake(due_at, at_once) {
      if (!in_background) return
      timer.wake(due_at, at_once)
      if (worker.hasBacklog && due_at <= db.clock.now()) nodes?.signals.due()
    },
    pauseOrResume: () => in_background && timer.pauseOrResume(),
    tick: () => maintenance.tick(),
  }
  const background = backgroundOf(config, db, log, { ...gateOf(opened), measures, tracer })
  const journal = new JournalKeeper({ ...background, follows })
  const test_clock = time && new MovedTime(time)
  const parts = { policy, jobs, journal, test_clock }
  const { dependencies, calls, usage, notifier, nodes } = dependenciesOf(given, parts)
  journal.connect(dependencies)
  db.onChange((key) => {
    notifier.notify(key)
    journal.changed(key)
  })
  const { worker, timer, maintenance } = workersOf({ ...background, journal }, dependencies, senders)
  test_clock?.connect({ db, time: time!, worker, maintenance, features, journal })
  const handlers = atTime(time, handlersOf(given, options, dependencies))
  const counting = [calls, usage, ...(late_rows ? [late_rows] : []), ...repeated(opened, lookForJobs)]
  let server: ReturnType<typeof Bun.serve> | undefined
  const { onError } = background
  const metrics = measures && new Metrics({ config, db, measures, dependencies, worker, onError })
  return {
    nodes,
    metrics,
    handlers,
    nodesTrouble: () => nodes?.trouble ?? null,
    listen() {
      server = naming('HOST', () => serve(config, handlers, db.clock, options))
      state.public_url = config.public_url.replace(/:0(?=\/|$)/, `:${server.port}`)
      state.listening = { host: config.host, port: server.port! }
      if (in_background) {
        maintenance.start()
        journal.start()
        for (const counts of counting) counts.start(onError)
      }
      loop_delay.start()
      metrics?.start(server, !options.shares_port)
      void handlers.warmUp()
      return server.url.href.replace(/\/$/, '')
    },
    async stop() {
      state.drain.begun = true
      notifier.drain()
      await stopInSteps({
        server,
        linger: async () => {
          if (options.lingers && server) await lingered(state.drain, server.port!)
        },
        drains: [() => maintenance.stop(), () => workStopped(worker, journal)],
        disconnect: [() => senders.sender.close(), () => metrics?.stop(), () => loop_delay.stop()],
        counts: [
          ...counting.map((counts) => () => counts.stop().catch(onError)),
          async () => nodes?.flush(),
          async () => tracer?.close().catch(onError),
        ],
        close: () => Promise.all([nodes?.close(), db.close()]),
      })
    },
  }
}

/** Resolves when nothing is under way, and the events that it has left have numbers. */
function workStopped(worker: JobWorker, journal: JournalKeeper): Promise<unknown> {
  const stopped = worker.stop()
  return Promise.all([stopped, journal.stop(stopped)])
}

/** Before and while due work starts: not in quarantine, nor while another node does all of it. */
function gateOf({ quarantine, time }: Opened): Pick<Background, 'held' | 'beforeLook'> {
  if (!time) return { held: () => quarantine.since !== null, beforeLook: undefined }
  return {
    held: () => quarantine.since !== null || time.movesElsewhere,
    beforeLook: () => time.refresh(),
  }
}

/** Work of each process, once a second. */
function repeated(opened: Opened, lookForJobs: () => void): Repeat[] {
  const { db, time, options } = opened
  const troubles = new TroubleLog(db, options.log, db.clock)
  const clock_log = new ClockLog(db.clock, options.log)
  return [
    () => db.maintain(),
    async () => troubles.look(),
    () => lookForRelease(opened, lookForJobs),
    time ? () => time.refresh() : async () => clock_log.look(),
  ].map((work) => new Repeat(maintain_every_ms, work))
}

async function lookForRelease({ db, options, quarantine }: Opened, lookForJobs: () => void): Promise<void> {
  if (!(await quarantine.hasEnded(db))) return
  options.log.info({}, 'released from quarantine: what is due is sent from now on')
  lookForJobs()
}

function serve(
  config: Config,
  handlers: RequestHandlers,
  clock: Clock,
  { log, shares_port = false }: AppOptions,
) {
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: idle_timeout_seconds,
    maxRequestBodySize: body_bytes_unlimited,
    development: false,
    // Outside development Bun shares the port by default, and requests would go to either of two services. The workers of
    // one service share it; their supervisor sees to it that they are alone.
    reusePort: shares_port,
    routes: handlers.routes as never,
    fetch: handlers.fetch as never,
    error: (error) => failure(error, newId('req', clock.now()), log, null),
  })
}
