// The state that all checks share: the service, tenants, the receiver of callbacks, and the rules that every answer keeps.

import type { AnswerRules } from './answer-rules.ts'
import { NotRun, succeeded } from './assert.ts'
import type { Answer, Client, Sent } from './client.ts'
import { type GivenTenant, type Options, UsageError } from './options.ts'
import { type Hook, type Receiver, startReceiver } from './receiver.ts'
import { Tenant, unique } from './tenant.ts'
import { Clock } from './timeline.ts'
import { pause } from './trial.ts'

/** Of one request that is shed each time. */
const shed_tries_max = 5

export class World {
  readonly options: Options
  readonly rules: AnswerRules
  readonly clock: Clock
  readonly #client: Client
  readonly #tenants = new Map<string, Promise<Tenant>>()
  readonly #made = new Map<string, Promise<unknown>>()
  #receiver: Receiver | null = null

  constructor(options: Options, client: Client, rules: AnswerRules) {
    this.options = options
    this.rules = rules
    this.#client = client
    this.clock = new Clock(async () => (await this.tenantOf('clock')).admin)
  }

  /** Throws a UsageError when the receiver cannot listen where it is told to. */
  async start(): Promise<void> {
    if (!this.options.receives) return
    try {
      this.#receiver = await startReceiver(this.options)
    } catch (error) {
      throw new UsageError(`the receiver cannot listen: ${(error as Error).message}`)
    }
  }

  /** Throws a UsageError when the service refuses a key that was given: each check would fail for that alone. */
  async requireKeys(): Promise<void> {
    for (const { tenant_id, admin_key } of this.options.tenants) {
      const path = `/v1/tenants/${encodeURIComponent(tenant_id)}`
      const headers = { 'x-admin-key': admin_key }
      const { status } = await this.send({ method: 'GET', path, headers })
      if (status >= 400) throw new UsageError(`the service answers ${status} to the key of ${tenant_id}`)
    }
    const headers = this.cron_headers
    if (headers && (await this.send({ method: 'POST', path: '/v1/tick', headers })).status === 401)
      throw new UsageError('the service answers 401 to the cron secret')
  }

  /** Without a receiver a name that never resolves: what is sent there fails, and is nobody's. */
  get idle_url(): string {
    return this.#receiver?.idle_url ?? 'http://conformance.invalid/idle'
  }

  async send(sent: Sent, calls: Answer[] = []): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      const answer = await this.#client.send(sent)
      calls.push(answer)
      this.rules.judge(answer)
      // A service may shed load, and says when to come back: it has done nothing then.
      const is_shed = answer.status === 503 && answer.json?.error?.code === 'UNAVAILABLE'
      if (!is_shed || tries === shed_tries_max) return answer
      await pause(Math.min(Number(answer.headers['retry-after']) || 1, 5) * 1_000)
    }
  }

  /** The shared tenant of this name; of given tenants the first serves all names but that of the stranger. */
  tenantOf(name: string): Promise<Tenant> {
    const given = this.options.tenants
    const key = given.length > 0 ? String(name === 'stranger') : name
    let tenant = this.#tenants.get(key)
    if (!tenant) {
      tenant = given.length > 0 ? this.#given(given[name === 'stranger' ? 1 : 0]) : this.newTenant('pro')
      this.#tenants.set(key, tenant)
    }
    return tenant
  }

  async newTenant(plan: 'free' | 'pro'): Promise<Tenant> {
    if (this.options.tenants.length > 0) throw new NotRun('needs a tenant of its own, and tenants were given')
    const name = `conformance-${unique()}${unique()}`
    const body = JSON.stringify({ name, owner_email: 'conformance@example.com', plan })
    const headers = { 'content-type': 'application/json' }
    const answer = await this.send({ method: 'POST', path: '/v1/tenants', headers, body })
    if (answer.status === 429 || answer.status === 403)
      throw new NotRun(`the service refuses a sign-up: ${answer.json?.error?.code ?? answer.status}`)
    const { tenant_id, admin_key, signing_secret } = succeeded(answer, 201)
    return new Tenant({ tenant_id, name, admin_key, signing_secret }, this, (sent) => this.send(sent))
  }

  /** An object that several checks of a chapter use and none changes; the first check makes it. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const made = this.#made.get(name) ?? make()
    this.#made.set(name, made)
    return made as Promise<T>
  }

  async hook(): Promise<Hook> {
    if (!this.#receiver)
      throw new NotRun('the service cannot reach the receiver of this suite: give --receiver-url')
    return this.#receiver.hook()
  }

  get cron_headers(): Record<string, string> | null {
    const { cron_secret } = this.options
    return cron_secret === null ? null : { authorization: `Bearer ${cron_secret}` }
  }

  /** A tick, or the smallest move of a test clock. False without both: the service ticks on its own. */
  async pushDueWork(): Promise<boolean> {
    const headers = this.cron_headers
    if (headers) await this.send({ method: 'POST', path: '/v1/tick', headers })
    else if (await this.clock.isServed()) await this.clock.advance(0.001)
    else return false
    return true
  }

  async stop(): Promise<void> {
    await this.#receiver?.stop()
    this.#client.close()
  }

  async #given(given: GivenTenant | undefined): Promise<Tenant> {
    if (!given) throw new NotRun('needs a second tenant: give --tenant twice')
    return new Tenant({ ...given, name: '', signing_secret: null }, this, (sent) => this.send(sent))
  }
}
