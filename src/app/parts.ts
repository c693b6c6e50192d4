// The parts of the service: the dependencies of handlers, the sender of callbacks, the request handlers.

import { HeavyReads } from '../base/heavy-reads.ts'
import { KeyedSemaphore } from '../base/keyed-semaphore.ts'
import { limit } from '../base/limit.ts'
import { MemoryBudget } from '../base/memory.ts'
import { Notifier } from '../base/notifier.ts'
import type { Overload } from '../base/overload.ts'
import { Remembered } from '../base/remembered.ts'
import { Sender } from '../callbacks/deliver.ts'
import { type EgressPolicy, refusalAtCreation, systemInterfaces } from '../callbacks/guard.ts'
import { Lookups } from '../callbacks/lookups.ts'
import { Mailer } from '../callbacks/mail.ts'
import type { Listening } from '../callbacks/own-address.ts'
import { SystemResolver } from '../callbacks/resolver.ts'
import type { Config } from '../config.ts'
import type { Dependencies, Jobs, Journal } from '../contract/dependencies.ts'
import { openapiOf } from '../contract/openapi.ts'
import { Tails } from '../contract/tails.ts'
import { keyCache } from '../credentials/cache.ts'
import type { Db } from '../db/db.ts'
import { counted_quotas, deadlines, decides, event_types, redrives, routes } from '../features.ts'
import { Deliveries } from '../http/deliveries.ts'
import type { Drain } from '../http/drain.ts'
import { type RequestHandlers, requestHandlers } from '../http/handlers.ts'
import { KnownHosts } from '../http/host.ts'
import { journalReader } from '../journal/service.ts'
import * as quotas from '../quotas/service.ts'
import { cursorKeyUnder, secretsUnder } from '../secrets/service.ts'
import type { SignUpOffer } from '../site/console.ts'
import { pagesOf } from '../site/pages.ts'
import { usageCounts } from '../usage/service.ts'
import { version } from '../version.ts'
import { ownLimiters } from './admission.ts'
import { type Nodes, nodesOf } from './nodes.ts'
import { readinessOf } from './readiness.ts'
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
}

export interface Given {
  config: Config
  db: Db
  state: State
  facts: Facts
  options: Pick<AppOptions, 'log' | 'looks_again'>
  overload: Overload
  /** Another node has due jobs and no permits for them. */
  lookForJobs(): void
}

export function egressOf(config: Config, db: Db, state: State) {
  const lookups = new Lookups(new SystemResolver(db.clock))
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
  const { smtp_url, mail_from } = config
  const mail = smtp_url === null ? null : { smtp_url, from: mail_from! }
  return { policy, sender: new Sender(policy, db.clock), mailer: new Mailer(mail, db.clock) }
}

/** The dependencies of handlers, and those of them that are started and stopped. */
export function dependenciesOf(
  { config, db, state, facts, options, lookForJobs }: Given,
  policy: EgressPolicy,
  jobs: Jobs,
  journal: Journal,
) {
  const { clock } = db
  const openapiText = openapiTexts()
  const calls = quotas.monthlyCalls(db, clock)
  const usage = usageCounts(db)
  const notifier = new Notifier({ looks_again: options.looks_again ?? true })
  const onCleared = (tenant_id: string) => nodes?.signals.tenantChanged(tenant_id)
  const cache = keyCache(clock, { onCleared, exist: () => nodes !== null })
  const nodes: Nodes | null = nodesOf(config, db, options.log, { notifier, cache, lookForJobs })
  const dependencies: Dependencies = {
    clock,
    plans: config.plans,
    keys: {
      secrets: secretsUnder(facts.secret_key),
      cache,
      cursor: cursorKeyUnder(facts.secret_key),
    },
    counts: { calls, usage, quotas: counted_quotas },
    urls: {
      public_url: () => state.public_url,
      callbackRefusal: (tenant_id, url) => refusalAtCreation(policy, tenant_id, url),
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
      readiness: () => readinessOf(db, nodes, facts.schema_version, state.drain.begun),
      openapi_text: () => openapiText(state.public_url),
    },
  }
  return { dependencies, calls, usage, notifier, nodes }
}

export function handlersOf(
  { config, db, state, facts, overload }: Pick<Given, 'config' | 'db' | 'state' | 'facts' | 'overload'>,
  { log, limiters }: Pick<AppOptions, 'log' | 'limiters'>,
  dependencies: Dependencies,
): RequestHandlers {
  const { clock } = db
  const { urls, shared, service } = dependencies
  return requestHandlers(
    routes,
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
    },
    pagesOf({
      openapi_text: service.openapi_text,
      public_url: urls.public_url,
      version,
      cors_origins: config.cors_origins,
      sign_up: signUpOffer(config),
    }),
  )
}

function signUpOffer({ signup_open, default_plan, plans_open, plans }: Config): SignUpOffer | null {
  if (!signup_open) return null
  return { default_plan, plans: Object.fromEntries(plans_open.map((plan) => [plan, plans[plan]!])) }
}

/** The OpenAPI document as text, made once for each address of the service. */
function openapiTexts(): (public_url: string) => string {
  const made = new Map<string, string>()
  return (public_url) => {
    const text = made.get(public_url) ?? JSON.stringify(openapiOf(routes, version, public_url))
    made.set(public_url, text)
    return text
  }
}
