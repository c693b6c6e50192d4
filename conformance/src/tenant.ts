// A tenant under test with a caller of each kind.

import { randomBytes } from 'node:crypto'
import { succeeded } from './assert.ts'
import type { Answer, Sent } from './client.ts'
import type { Kind } from './contract.ts'
import type { Place } from './objects.ts'
import type { Trial } from './trial.ts'

type Send = (sent: Sent) => Promise<Answer>

export interface Keys {
  tenant_id: string
  name: string
  admin_key: string
  /** Null when it was not given. */
  signing_secret: string | null
}

/** Sends as one caller. A body that is not text or bytes goes out as JSON, with its content type. */
export class Actor {
  constructor(
    readonly send: Send,
    readonly headers: Record<string, string>,
    readonly key: string = '',
    readonly id: string = '',
  ) {}

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('GET', path, undefined, headers)
  }

  post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('POST', path, body, headers)
  }

  put(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('PUT', path, body, headers)
  }

  patch(path: string, body?: unknown): Promise<Answer> {
    return this.call('PATCH', path, body)
  }

  delete(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.call('DELETE', path, body, headers)
  }

  call(
    method: string,
    path: string,
    body?: unknown,
    headers: Sent['headers'] = {},
    chunked = false,
  ): Promise<Answer> {
    const sent: Sent = { method, path, headers: { ...this.headers, ...headers }, chunked }
    if (body === undefined) return this.send(sent)
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const type = raw ? {} : { 'content-type': 'application/json' }
    const text = raw ? body : JSON.stringify(body)
    return this.send({ ...sent, headers: { ...type, ...sent.headers }, body: text })
  }

  /** The same caller, who sends the key in x-api-key and nothing else. */
  asApiKey(): Actor {
    return new Actor(this.send, { 'x-api-key': this.key }, this.key, this.id)
  }

  /** The same caller, who sends the key as Bearer and nothing else. */
  asBearer(): Actor {
    return new Actor(this.send, { authorization: `Bearer ${this.key}` }, this.key, this.id)
  }
}

/** Made once and shared: `in` binds it to the check that uses it, so that the report shows that one's calls. */
export class Tenant {
  readonly admin: Actor
  readonly idle_url: string
  readonly #agents: Map<string, Promise<{ id: string; key: string }>>

  constructor(
    readonly keys: Keys,
    private readonly place: Place,
    private readonly send: Send,
    agents: Map<string, Promise<{ id: string; key: string }>> = new Map(),
  ) {
    this.idle_url = place.idle_url
    this.admin = new Actor(send, { 'x-admin-key': keys.admin_key }, keys.admin_key)
    this.#agents = agents
  }

  get id(): string {
    return this.keys.tenant_id
  }

  in(trial: Trial): Tenant {
    return new Tenant(this.keys, this.place, (sent) => trial.anyone.send(sent), this.#agents)
  }

  /** The agent of this name, made on first use. */
  async agent(name = 'conformance-one'): Promise<Actor> {
    let made = this.#agents.get(name)
    if (!made) {
      made = this.#newAgent(name)
      this.#agents.set(name, made)
    }
    const { id, key } = await made
    return agentActor(this.send, id, key)
  }

  other(): Promise<Actor> {
    return this.agent('conformance-two')
  }

  /** A caller with a new approval key, for this checkpoint or for all. */
  async approver(checkpoint_id?: string): Promise<Actor> {
    const body = checkpoint_id ? { checkpoint_id } : {}
    const made = succeeded(await this.admin.post('/v1/approval-keys', body), 201)
    return approvalActor(this.send, made.approval_key, made.approval_key_id)
  }

  /** A caller of this kind. */
  async actor(kind: Kind): Promise<Actor> {
    if (kind === 'admin') return this.admin
    if (kind === 'agent') return this.agent()
    const known = this.#agents.get('approval key') ?? this.#newApprovalKey()
    this.#agents.set('approval key', known)
    const { id, key } = await known
    return approvalActor(this.send, key, id)
  }

  async #newApprovalKey(): Promise<{ id: string; key: string }> {
    const { key, id } = await this.approver()
    return { key, id }
  }

  async #newAgent(name: string): Promise<{ id: string; key: string }> {
    const answer = await this.admin.post('/v1/agents', { name: `${name}-${unique()}` })
    const { agent_id, api_key } = succeeded(answer, 201)
    return { id: agent_id, key: api_key }
  }
}

export function agentActor(send: Send, id: string, key: string): Actor {
  return new Actor(send, { 'x-agent-id': id, 'x-api-key': key }, key, id)
}

export function approvalActor(send: Send, key: string, id: string): Actor {
  return new Actor(send, { 'x-approval-key': key }, key, id)
}

/** Eight letters and digits, for names that nothing else has. */
export function unique(): string {
  return randomBytes(4).toString('hex')
}
