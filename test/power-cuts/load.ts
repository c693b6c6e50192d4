// Clients of every noun. Each request carries an id by which its answer is found in the record; each answer claims something.

import type { Caller } from '../../src/contract/caller.ts'
import { claimOf } from '../../src/idempotency/service.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Claim, type Values, valueNamed } from './claims.ts'

export interface Tenant {
  tenant_id: string
  admin_key: string
  agent_id: string
  api_key: string
}

// biome-ignore lint/suspicious/noExplicitAny: each call below knows the shape of its answer
type Body = any
type Random = (below: number) => number

interface Asked {
  method: string
  path: string
  key: string | null
  body?: object | undefined
  idempotency_key?: string
}

interface Answer {
  status: number
  body: Body
  claim(...claims: Claim[]): void
}

const acknowledged = (what: string, rank = 1): Claim => ({ kind: 'acknowledged', what, rank })
const shown = (what: string, rank = 1): Claim => ({ kind: 'shown', what, rank })
const gone = (what: string): Claim => acknowledged(what, 0)

export interface LoadOptions {
  url: string
  clients: number
  /** Turns of each client: a turn is one to five calls. */
  turns: number
  random: Random
  /** Requests and contents are numbered from here. */
  first: number
}

/** A key that several clients write and read. */
const shared_keys = 12
const own_keys = 6
/** Now and then a value is this large, so that the log fills up and begins again. */
const large_value_characters = 120_000

export class Load {
  /** By the id of the request. */
  readonly claims = new Map<string, Claim[]>()
  readonly values: Values = new Map()
  /** Answers that no client expected. */
  readonly refused: string[] = []
  #requests = 0
  #serial: number
  #receiver!: Awaited<ReturnType<typeof startReceiver>>

  constructor(private readonly options: LoadOptions) {
    this.#serial = options.first
  }

  /** How many were sent. */
  get requests(): number {
    return this.#requests
  }

  /** Resolves when every client has done all its turns, or is not answered any more. */
  async run(): Promise<void> {
    this.#receiver = await startReceiver()
    try {
      const tenants = [await this.#newTenant(), await this.#newTenant()]
      const clients = Array.from({ length: this.options.clients }, (_, n) =>
        this.#client(n, tenants[n % tenants.length]!),
      )
      await Promise.all(clients)
    } finally {
      await this.#receiver.stop()
    }
  }

  async #client(n: number, tenant: Tenant): Promise<void> {
    const turns: [weight: number, turn: () => Promise<void>][] = [
      [30, () => this.#putOwn(tenant, n)],
      [22, () => this.#changeShared(tenant)],
      [8, () => this.#read(tenant)],
      [12, () => this.#append(tenant)],
      [6, () => this.#deadLetter(tenant)],
      [6, () => this.#schedule(tenant)],
      [6, () => this.#checkpoint(tenant)],
      [4, () => this.#hook(tenant)],
      [8, () => this.#rate(tenant, n)],
      [4, () => this.#keys(tenant)],
    ]
    const by_weight = turns.flatMap(([weight, turn]) => Array.from({ length: weight }, () => turn))
    for (let turn = 0; turn < this.options.turns; turn++) {
      try {
        await by_weight[this.options.random(by_weight.length)]!()
      } catch {
        return // refused, which is noted, or nobody answers any more
      }
    }
  }

  async #newTenant(): Promise<Tenant> {
    const name = `cut-${crypto.randomUUID().slice(0, 13)}`
    const made = await this.#ask(201, {
      ...{ method: 'POST', path: '/v1/tenants', key: null },
      body: { name, owner_email: 'owner@example.com' },
    })
    const { tenant_id, admin_key } = made.body
    made.claim(acknowledged(`tenant ${tenant_id}`))
    await this.#accepted(admin_key)
    const agent = await this.#ask(201, {
      ...{ method: 'POST', path: '/v1/agents', key: admin_key, body: { name: 'writer' } },
    })
    const { agent_id, api_key } = agent.body
    agent.claim(acknowledged(`agent ${tenant_id}/${agent_id}`))
    await this.#accepted(api_key)
    return { tenant_id, admin_key, agent_id, api_key }
  }

  /** At once, unless the service answers before the flush: then readers do not see the key yet. */
  async #accepted(key: string): Promise<void> {
    const ask = { method: 'GET', path: '/v1/agents/writer', key }
    for (let tries = 0; tries < 100; tries++) {
      const { status } = await this.#ask([200, 401, 404], ask)
      if (status !== 401) return
      await Bun.sleep(20)
    }
    throw new Error('a new key is not accepted')
  }

  async #putOwn(tenant: Tenant, n: number): Promise<void> {
    const key = `own-${n}-${this.options.random(own_keys)}`
    await this.#put(tenant, key, this.options.random(12) === 0 ? large_value_characters : 300)
    if (this.options.random(4) > 0) return
    const what = `kv ${tenant.tenant_id}/cuts/${key}`
    const { body, claim } = await this.#ask(200, this.#kv('GET', tenant, key))
    claim(shown(what, body.version * 2))
    const removed = await this.#ask(204, this.#kv('DELETE', tenant, key))
    removed.claim(acknowledged(what, body.version * 2 + 1))
  }

  async #changeShared(tenant: Tenant): Promise<void> {
    const key = `shared-${this.options.random(shared_keys)}`
    const { status, body, claim } = await this.#ask([200, 404], this.#kv('GET', tenant, key))
    const what = `kv ${tenant.tenant_id}/cuts/${key}`
    if (status === 200) claim(shown(what, body.version * 2))
    await this.#put(tenant, key, 300, status === 200 ? body.version : 0)
  }

  #kv(method: string, { api_key }: Tenant, key: string, body?: object): Asked {
    return { method, path: `/v1/kv/cuts/${key}`, key: api_key, body }
  }

  /** `cas_version`: only over this version. A refusal says that another one is there. */
  async #put(tenant: Tenant, key: string, characters: number, cas_version?: number): Promise<void> {
    const value = JSON.stringify({ n: ++this.#serial, x: 'x'.repeat(this.options.random(characters)) })
    const what = `kv ${tenant.tenant_id}/cuts/${key}`
    const { status, body, claim } = await this.#ask([200, 409], {
      ...this.#kv('PUT', tenant, key, {
        value: JSON.parse(value),
        ...(cas_version === undefined ? {} : { cas_version }),
      }),
    })
    if (status === 409) {
      const { current_version } = body.error.details
      if (current_version !== null) claim(shown(what, current_version * 2))
      return
    }
    claim(acknowledged(what, body.version * 2))
    this.values.set(valueNamed(tenant.tenant_id, key, body.version), value)
  }

  /** Claims the items that lists show. */
  async #read({ tenant_id, admin_key }: Tenant): Promise<void> {
    const entries = await this.#ask(200, { method: 'GET', path: '/v1/audit?limit=50', key: admin_key })
    entries.claim(
      ...entries.body.items.map((entry: Body) => shown(`audit ${tenant_id}/${entry.seq}/${entry.action}`)),
    )
    const letters = await this.#ask(200, { method: 'GET', path: '/v1/dlq?limit=50', key: admin_key })
    letters.claim(...letters.body.items.map(({ id }: Body) => shown(`dead letter ${id}`)))
    const fired = await this.#ask(200, {
      ...{ method: 'GET', path: '/v1/schedules?status=fired&limit=50', key: admin_key },
    })
    fired.claim(...fired.body.items.map(({ id }: Body) => shown(`schedule ${id}`, 2)))
  }

  /** Half of them with an Idempotency-Key, and a third of these twice. */
  async #append(tenant: Tenant): Promise<void> {
    const asked = { method: 'POST', path: '/v1/audit', key: tenant.api_key }
    const body = { action: `cut-${++this.#serial}`, workflow_id: 'cuts' }
    const with_key = this.options.random(2) === 0
    const idempotency_key = `the-append-no-${this.#serial}`
    for (let repeats = with_key && this.options.random(3) === 0 ? 2 : 1; repeats > 0; repeats--) {
      const entry = await this.#ask(201, { ...asked, body, ...(with_key ? { idempotency_key } : {}) })
      entry.claim(acknowledged(`audit ${tenant.tenant_id}/${entry.body.seq}/${body.action}`))
      if (with_key) entry.claim(acknowledged(`answer ${hashOf(idempotency_key, tenant, asked.path, body)}`))
    }
  }

  async #deadLetter(tenant: Tenant): Promise<void> {
    const asked = { method: 'POST', path: '/v1/dlq', key: tenant.api_key }
    const body = { payload: { n: ++this.#serial }, error: 'card declined' }
    const idempotency_key = `the-letter-no-${this.#serial}`
    const letter = await this.#ask(201, { ...asked, body, idempotency_key })
    const what = `dead letter ${letter.body.id}`
    letter.claim(
      acknowledged(what),
      acknowledged(`answer ${hashOf(idempotency_key, tenant, asked.path, body)}`),
    )
    if (this.options.random(2) === 0) return
    const path = `/v1/dlq/${letter.body.id}`
    const claimed = await this.#ask(200, { ...asked, path: `${path}/claim` })
    claimed.claim(acknowledged(what, 2))
    const { lock_token } = claimed.body
    const verb = this.options.random(2) === 0 ? 'resolve' : 'fail'
    const ended = await this.#ask(200, { ...asked, path: `${path}/${verb}`, body: { lock_token } })
    ended.claim(acknowledged(what, 1000))
  }

  /** Due at once, or cancelled before it is due. */
  async #schedule({ api_key }: Tenant): Promise<void> {
    const is_due = this.options.random(3) > 0
    const made = await this.#ask(201, {
      ...{ method: 'POST', path: '/v1/schedules', key: api_key },
      body: {
        callback_url: this.#receiver.url,
        callback_payload: { n: ++this.#serial },
        fire_at: is_due ? '2020-01-01T00:00:00Z' : '9999-01-01T00:00:00Z',
      },
    })
    const what = `schedule ${made.body.id}`
    made.claim(acknowledged(what))
    if (is_due) return
    const cancelled = await this.#ask(204, {
      ...{ method: 'DELETE', path: `/v1/schedules/${made.body.id}`, key: api_key },
    })
    cancelled.claim(acknowledged(what, 2))
  }

  /** A decision, for which somebody waits, and which is reported. */
  async #checkpoint({ api_key, admin_key }: Tenant): Promise<void> {
    const made = await this.#ask(201, {
      ...{ method: 'POST', path: '/v1/checkpoints', key: api_key },
      body: { title: `ship ${++this.#serial}?`, callback_url: this.#receiver.url },
    })
    const path = `/v1/checkpoints/${made.body.id}`
    const what = `checkpoint ${made.body.id}`
    made.claim(acknowledged(what))
    const waiting = this.#ask(200, { method: 'GET', path: `${path}?wait=20`, key: api_key })
    const verb = this.options.random(2) === 0 ? 'approve' : 'reject'
    const decided = this.#ask(200, { method: 'POST', path: `${path}/${verb}`, key: admin_key })
    const [seen, decision] = await Promise.all([waiting, decided])
    decision.claim(acknowledged(what, 2))
    if (seen.body.status !== 'pending') seen.claim(shown(what, 2))
  }

  /** Messages of strangers, which are forwarded. */
  async #hook({ api_key }: Tenant): Promise<void> {
    const made = await this.#ask(201, {
      ...{ method: 'POST', path: '/api/webhook', key: api_key, body: { forwardUrl: this.#receiver.url } },
    })
    const { id, token } = made.body.data
    made.claim(acknowledged(`inbox ${id}`))
    for (let messages = 1 + this.options.random(3); messages > 0; messages--) {
      const body = { message: ++this.#serial }
      const taken = await this.#ask(200, { method: 'POST', path: `/hook/${token}`, key: null, body })
      taken.claim(acknowledged(`message ${JSON.stringify(body)}`))
    }
  }

  async #rate({ tenant_id, api_key }: Tenant, n: number): Promise<void> {
    const key = `rate-${n % 4}`
    const { body, claim } = await this.#ask([200, 429], {
      ...{ method: 'POST', path: '/api/rate-limit/check', key: api_key },
      body: { key, limit: 1_000_000, windowSeconds: 86_400 },
    })
    claim(acknowledged(`rate ${tenant_id}/${key}`, body.data.count))
  }

  /** A key is made, and revoked. */
  async #keys({ admin_key }: Tenant): Promise<void> {
    const made = await this.#ask(201, { method: 'POST', path: '/v1/approval-keys', key: admin_key })
    const { approval_key_id } = made.body
    made.claim(acknowledged(`approval key ${approval_key_id}`))
    if (this.options.random(2) === 0) return
    // From the moment of the request on it may be gone, also when no answer comes.
    this.#withdraw(made, `approval key ${approval_key_id}`)
    const revoked = await this.#ask(204, {
      ...{ method: 'DELETE', path: `/v1/approval-keys/${approval_key_id}`, key: admin_key },
    })
    revoked.claim(gone(`approval key ${approval_key_id}`))
  }

  #withdraw({ claim }: Answer, what: string): void {
    const made = this.#claimsOf.get(claim)!
    made.splice(0, made.length, ...made.filter((other) => other.what !== what))
  }

  readonly #claimsOf = new WeakMap<Answer['claim'], Claim[]>()

  async #ask(expected: number | readonly number[], asked: Asked): Promise<Answer> {
    const { method, path, key, body, idempotency_key } = asked
    const request_id = `cut-${String(this.options.first + ++this.#requests).padStart(8, '0')}`
    const response = await fetch(`${this.options.url}${path}`, {
      method,
      headers: {
        'x-request-id': request_id,
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(idempotency_key ? { 'idempotency-key': idempotency_key } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    if (![expected].flat().includes(response.status)) {
      this.refused.push(`${method} ${path}: ${response.status} ${text}`)
      throw new Error('refused')
    }
    const claims: Claim[] = []
    this.claims.set(request_id, claims)
    const claim = (...more: Claim[]) => void claims.push(...more)
    this.#claimsOf.set(claim, claims)
    return { status: response.status, body: text ? JSON.parse(text) : null, claim }
  }
}

function hashOf(key: string, { tenant_id, agent_id }: Tenant, path: string, body: object): string {
  const caller = { kind: 'agent', tenant_id, agent_id, plan: 'pro', status: 'active' } as Caller
  return claimOf({ key, caller, route: `POST ${path}`, body: Buffer.from(JSON.stringify(body)) }).key_hash
}
