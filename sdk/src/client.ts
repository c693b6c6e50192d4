// The client: one object with a noun for each feature.

import { Checkpoints } from './checkpoints.ts'
import { Dlq } from './dlq.ts'
import { Inboxes } from './inboxes.ts'
import { Kv } from './kv.ts'
import { type Fetch, type Platform, platform } from './platform.ts'
import { RateLimit } from './rate-limit.ts'
import { Agents, ApprovalKeys, Approvals, Audit, Namespaces, Schedules, Tenants } from './records.ts'
import { type CallOptions, Transport } from './transport.ts'
import type { Liveness, Readiness, TickSummary } from './types.ts'

export interface WaystationOptions {
  /** Where the service is, without /v1: `http://127.0.0.1:8420`. */
  url: string
  /** Any key of the service, the cron secret for `tick` included; none is needed to sign up. */
  key?: string | undefined
  /** Sent along with an agent's key, which must be this agent's. */
  agent_id?: string | undefined
  /** How long each try of a call may take; default 30,000. */
  timeout_ms?: number | undefined
  /** How often a try that failed is followed by another one; default 4, at most 20. */
  retries?: number | undefined
  /** Instead of the global one: for proxies, certificates, tests. */
  fetch?: Fetch | undefined
  /** Instead of JSON.parse, for every answer: one that keeps the digits of long numbers, say. */
  parse_json?: ((text: string) => unknown) | undefined
  /** @internal */
  platform?: Partial<Platform> | undefined
}

const timeout_ms_default = 30_000
const retries_default = 4

export class Waystation {
  readonly tenants: Tenants
  readonly agents: Agents
  readonly approvalKeys: ApprovalKeys
  readonly approvals: Approvals
  readonly kv: Kv
  readonly namespaces: Namespaces
  readonly audit: Audit
  readonly dlq: Dlq
  readonly schedules: Schedules
  readonly checkpoints: Checkpoints
  readonly inboxes: Inboxes
  readonly rateLimit: RateLimit
  readonly health: Health
  readonly #transport: Transport

  constructor(options: WaystationOptions) {
    const { url, key, agent_id, timeout_ms, retries, fetch, parse_json } = options
    this.#transport = new Transport({
      url: baseOf(url),
      key: key === undefined ? undefined : headerText('key', key),
      agent_id: agent_id === undefined ? undefined : headerText('agent_id', agent_id),
      timeout_ms: timeout_ms ?? timeout_ms_default,
      retries: retries ?? retries_default,
      parse_json: parse_json ?? JSON.parse,
      platform: { ...platform, ...options.platform, ...(fetch && { fetch }) },
    })
    this.tenants = new Tenants(this.#transport)
    this.agents = new Agents(this.#transport)
    this.approvalKeys = new ApprovalKeys(this.#transport)
    this.approvals = new Approvals(this.#transport)
    this.kv = new Kv(this.#transport)
    this.namespaces = new Namespaces(this.#transport)
    this.audit = new Audit(this.#transport)
    this.dlq = new Dlq(this.#transport)
    this.schedules = new Schedules(this.#transport)
    this.checkpoints = new Checkpoints(this.#transport)
    this.inboxes = new Inboxes(this.#transport)
    this.rateLimit = new RateLimit(this.#transport)
    this.health = new Health(this.#transport)
  }

  /** Does all that is due. With the cron secret as `key`. */
  tick(options: CallOptions = {}): Promise<TickSummary> {
    return this.#transport.call('tick', {}, options)
  }

  /** The description of the API that this service serves, OpenAPI 3.1. */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#transport.call('openapi', {}, options)
  }
}

export class Health {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Whether the process answers. */
  live(options: CallOptions = {}): Promise<Liveness> {
    return this.#transport.call('livez', {}, options)
  }

  /** Whether it can do its work. Throws UNAVAILABLE, after its retries. */
  ready({
    verbose = false,
    ...options
  }: CallOptions & { verbose?: boolean | undefined } = {}): Promise<Readiness> {
    return this.#transport.call('readyz', { query: verbose ? { verbose: 'true' } : {} }, options)
  }
}

/** Throws TypeError for what is no http or https URL, or holds a password, which fetch would refuse. */
function baseOf(url: string): string {
  const { protocol, origin, pathname, search, hash, username, password } = new URL(url)
  if (!['http:', 'https:'].includes(protocol) || `${search}${hash}${username}${password}` !== '') {
    throw new TypeError('url must be the http or https address of the service, and no more than that')
  }
  return origin + pathname.replace(/\/+$/, '')
}

/** Without the line end that a file may have left. What fetch would refuse is refused here: its error shows the key. */
function headerText(name: string, value: string): string {
  const text = value.trim()
  if (/^[\x20-\x7e\x80-\xff]+$/.test(text)) return text
  throw new TypeError(`${name} must be a text on one line that is not empty`)
}
