// The parts of the service: the dependencies of handlers, the sender of callbacks, the request handlers.

import { HeavyReads } from '../base/heavy-reads.ts'
import { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { limit } from '../base/limit.ts'
import { MemoryBudget } from '../base/memory.ts'
import { Notifier } from '../base/notifier.ts'
import type { Overload } from '../base/overload.ts'
import { Remembered } from '../base/remembered.ts'
import type { Tracer } from '../base/tracer.ts'
import { type EgressPolicy, refusalAtCreation } from '../callbacks/guard.ts'
import type { Listening } from '../callbacks/own-address.ts'
import { isOwnInbox } from '../callbacks/own-inbox.ts'
import type { Config } from '../config.ts'
import type { Dependencies, Jobs, Journal, Secrets, TestClock } from '../contract/dependencies.ts'
import { Tails } from '../contract/tails.ts'
import { keyCache } from '../credentials/cache.ts'
import type { Db } from '../db/db.ts'
import { counted_quotas, deadlines, decides, event_types, redrives, routes } from '../features.ts'
import { Deliveries } from '../http/deliveries.ts'
import type { Drain } from '../http/drain.ts'
import { type RequestHandlers, requestHandlers } from '../http/handlers.ts'
import { KnownHosts } from '../http/host.ts'
import { RequestLog } from '../http/request-log.ts'
import { journalReader } from '../journal/service.ts'
import type { Measures } from '../metrics/service.ts'
import type { Quarantine } from '../quarantine/service.ts'
import * as quotas from '../quotas/service.ts'
import { cursorKeyUnder } from '../secrets/service.ts'
import { pagesOf } from '../site/pages.ts'
import { usageCounts } from '../usage/service.ts'
import { ownLimiters } from './admission.ts'
import { type Nodes, nodesOf } from './nodes.ts'
import { openapiTexts, signUpOffer } from './offer.ts'
import { durabilityOf, readinessOf } from './readiness.ts'
import type { AppOptions } from './start.ts'

const tokens_max = limit(
  'inbox.tokens_remembered',
  10_000,
  'entries',
  'Tokens of inboxes whose tenant a node remembers; past it the least recently used is looked up again.',
)

/** Facts that change while the service runs. */
export interface State {
  readonly drain: Drain
  /** Known in full once the service listens. */
  public_url: string
  listening: Listening | null
}

export interface Facts {
  secret_key: string
  cron_secret: string
  schema_version: number
  sealer: Secrets
}

export interface Given {
  config: Config
  db: Db
  state: State
  facts: Facts
  options: Pick<AppOptions, 'log' | 'looks_again'>
  overload: Overload
  quarantine: Quarantine
  /** Another node has due jobs and no permits for them. */
  lookForJobs(): void
  /** Null when nothing is counted. */
  measures: Measures | null
  /** Null: there are no spans. */
  tracer: Tracer | null
}

interface Connected {
  policy: EgressPolicy
  jobs: Jobs
  journal: Journal
  test_clock: TestClock | null
}

/** The dependencies of handlers, and those of them that are started and stopped. */
export function dependenciesOf(
  { config, db, state, facts, options, quarantine, lookForJobs }: Given,
  { policy, jobs, journal, test_clock }: Connected,
) {
  const { clock } = db
  const openapiText = openapiTexts()
  const calls = quotas.monthlyCalls(db, clock)
  const usage = usageCounts(db)
  const durability = durabilityOf(db)
  const notifier = new Notifier({ looks_again: options.looks_again ?? true })
  const onCleared = (tenant_id: string) => nodes?.signals.tenantChanged(tenant_id)
  const cache = keyCache(clock, { onCleared, exist: () => nodes !== null })
  const nodes: Nodes | null = nodesOf(config, db, options.log, { notifier, cache, lookForJobs })
  const dependencies: Dependencies = {
    clock,
    plans: config.plans,
    keys: {
      secrets: facts.sealer,
      cache,
      cursor: cursorKeyUnder(facts.secret_key),
    },
    counts: { calls, usage, quotas: counted_quotas },
    urls: {
      public_url: () => state.public_url,
      callbackRefusal: (tenant_id, url) => refusalAtCreation(policy, tenant_id, url),
      isOwnInbox: (tenant_id, url) => isOwnInbox(policy, tenant_id, url),
    },
    shared: {
      notifier,
      tails: new Tails(journalReader(db, journal), notifier),
      semaphore: new KeyedSemaphore(clock),
      memory: new MemoryBudget(clock, config.memory_bytes_max),
      tokens: new Remembered(tokens_max),
    },
    jobs,
    journal,
    test_clock,
    redrives,
    decides,
    deadlines,
    event_types,
    service: {
      signup_open: config.signup_open,
      default_plan: config.default_plan,
      plans_open: config.plans_open,
      plans_local: config.plans_local,
      sends_mail: config.smtp_url !== null,
      quarantine,
      readiness: () =>
        readinessOf(db, { durability, nodes, quarantine, draining: state.drain.begun }, facts.schema_version),
      openapi_text: () => openapiText(state.public_url),
    },
  }
  return { dependencies, calls, usage, notifier, nodes }
}

export function handlersOf(
  { config, db, state, facts, measures, tracer, overload }: Omit<Given, 'options' | 'lookForJobs'>,
  { log, limiters }: Pick<AppOptions, 'log' | 'limiters'>,
  dependencies: Dependencies,
): RequestHandlers {
  const { clock } = db
  const { urls, shared } = dependencies
  return requestHandlers(
    routes.filter(({ route }) => config.test_clock || !route.with_test_clock),
    {
      db,
      clock,
      dependencies,
      log,
      log_requests: config.log_level === 'debug',
      trusted_proxies: config.trusted_proxies,
      cors_origins: config.cors_origins,
      cron_secret: facts.cron_secret,
      limits: config.loopback_only ? null : (limiters ?? ownLimiters(clock)),
      hosts: config.loopback_only ? new KnownHosts(config.public_url) : null,
      drain: state.drain,
      deliveries: new Deliveries(shared.memory),
      heavy_reads: new HeavyReads(),
      overload,
      request_log: config.log_requests.length === 0 ? null : new RequestLog(log, config.log_requests),
      measures: measures?.requests ?? null,
      tracer,
    },
    pagesOf({
      public_url: urls.public_url,
      cors_origins: config.cors_origins,
      sign_up: signUpOffer(config),
      test_clock: config.test_clock,
    }),
  )
}
