// Clients that write as fast as they are answered, and remember what they were told.

import type { KeyHolder } from '../../src/contract/caller.ts'
import { claimOf } from '../../src/idempotency/service.ts'
import type { CreateCall, Creation, History, KvCall, Outcome } from './crash-history.ts'

export interface LoadTenant {
  tenant_id: string
  admin_key: string
  agent_id: string
  api_key: string
}

/** A create, with all that a repeat needs. */
export interface Sent {
  call: CreateCall
  idempotency_key: string
  path: string
  key: string | null
  body: string
  /** The first answer's body. */
  text: string | null
}

export interface Load {
  history: History
  /** Creates that carried an Idempotency-Key. */
  sent: Sent[]
  /** Answers that were neither success nor silence: there must be none. */
  refused: string[]
}

export const newLoad = (): Load => ({ history: { kv: [], creates: [] }, sent: [], refused: [] })

export const kv_namespace = 'crash'
/** Records a creation of the test itself before the load, so that every row found has a creator. */
export function madeBefore({ history }: Load, what: Creation, tenant_id: string, name: string): void {
  history.creates.push({ what, tenant_id, name, key_hash: null, outcome: 'acknowledged', seq: null })
}

const keys_of_a_client = 12

/** One client: writes until no answer comes. `random` gives whole numbers below its argument. */
export async function client(
  url: string,
  id: number,
  tenant: LoadTenant,
  load: Load,
  unique: () => number,
  random: (below: number) => number,
): Promise<void> {
  for (;;) {
    const roll = random(100)
    let outcome: Outcome | 'refused'
    if (roll < 60) outcome = await put(url, id, tenant, load, unique, random)
    else if (roll < 65) outcome = await remove(url, id, tenant, load, unique, random)
    else if (roll < 85) outcome = await create(url, 'audit', tenant, load, unique(), random(2) === 0)
    else if (roll < 92) outcome = await create(url, 'approval-keys', tenant, load, unique(), true)
    else if (roll < 97) outcome = await create(url, 'agents', tenant, load, unique(), true)
    else outcome = await create(url, 'tenants', tenant, load, unique(), true)
    if (outcome !== 'acknowledged') return
  }
}

async function put(
  url: string,
  id: number,
  tenant: LoadTenant,
  load: Load,
  unique: () => number,
  random: (below: number) => number,
): Promise<Outcome | 'refused'> {
  const key = `client-${id}-key-${random(keys_of_a_client)}`
  const wrote = JSON.stringify({ unique: unique(), padding: 'x'.repeat(random(400)) })
  const call: KvCall = { tenant_id: tenant.tenant_id, key, wrote, outcome: 'unknown', version: null }
  load.history.kv.push(call)
  const answer = await send(
    load,
    url,
    'PUT',
    `/v1/kv/${kv_namespace}/${key}`,
    tenant.api_key,
    `{"value":${wrote}}`,
  )
  if (answer.outcome === 'acknowledged') call.version = JSON.parse(answer.text).version
  return settle(call, answer.outcome)
}

/** Of a key that is surely there; when there is none, a put. */
async function remove(
  url: string,
  id: number,
  tenant: LoadTenant,
  load: Load,
  unique: () => number,
  random: (below: number) => number,
): Promise<Outcome | 'refused'> {
  const key = `client-${id}-key-${random(keys_of_a_client)}`
  const last = load.history.kv.findLast((call) => call.key === key)
  if (!last?.wrote || last.outcome !== 'acknowledged') return put(url, id, tenant, load, unique, random)
  const call: KvCall = { tenant_id: tenant.tenant_id, key, wrote: null, outcome: 'unknown', version: null }
  load.history.kv.push(call)
  const answer = await send(load, url, 'DELETE', `/v1/kv/${kv_namespace}/${key}`, tenant.api_key, null)
  return settle(call, answer.outcome)
}

async function create(
  url: string,
  what: Creation,
  tenant: LoadTenant,
  load: Load,
  n: number,
  with_key: boolean,
): Promise<Outcome | 'refused'> {
  const name = `${what === 'agents' || what === 'tenants' ? 'made' : 'Made'}-${n}`
  const path = `/v1/${what}`
  const body = JSON.stringify(bodies[what](name))
  const key = {
    tenants: null,
    agents: tenant.admin_key,
    'approval-keys': tenant.admin_key,
    audit: tenant.api_key,
  }[what]
  const idempotency_key = `the-key-of-the-create-no-${n}`
  const call: CreateCall = {
    what,
    tenant_id: tenant.tenant_id,
    name,
    key_hash: with_key ? hashOf(idempotency_key, what, tenant, path, body) : null,
    outcome: 'unknown',
    seq: null,
  }
  load.history.creates.push(call)
  const sent: Sent = { call, idempotency_key, path, key, body, text: null }
  if (with_key) load.sent.push(sent)
  const answer = await send(load, url, 'POST', path, key, body, with_key ? idempotency_key : null)
  if (answer.outcome === 'acknowledged') {
    sent.text = answer.text
    if (what === 'audit') call.seq = JSON.parse(answer.text).seq
  }
  return settle(call, answer.outcome)
}

const bodies: Record<Creation, (name: string) => object> = {
  tenants: (name) => ({ name, owner_email: 'owner@example.com' }),
  agents: (name) => ({ name }),
  'approval-keys': (name) => ({ label: name }),
  audit: (name) => ({ action: name, workflow_id: 'crash', metadata: { name } }),
}

function hashOf(key: string, what: Creation, tenant: LoadTenant, path: string, body: string): string {
  const facts = { tenant_id: tenant.tenant_id, plan: 'pro', status: 'active' } as const
  const callers: Record<Creation, KeyHolder | null> = {
    tenants: null,
    agents: { kind: 'admin', ...facts },
    'approval-keys': { kind: 'admin', ...facts },
    audit: { kind: 'agent', agent_id: tenant.agent_id, ...facts },
  }
  return claimOf({
    key,
    caller: callers[what] ?? '127.0.0.1',
    route: `POST ${path}`,
    body: Buffer.from(body),
  }).key_hash
}

function settle(call: KvCall | CreateCall, outcome: Outcome | 'refused'): Outcome | 'refused' {
  if (outcome !== 'refused') call.outcome = outcome
  return outcome
}

interface Answered {
  outcome: Outcome | 'refused'
  text: string
  replayed: boolean
}

async function send(
  load: Load,
  url: string,
  method: string,
  path: string,
  key: string | null,
  body: string | null,
  idempotency_key: string | null = null,
): Promise<Answered> {
  try {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(idempotency_key ? { 'idempotency-key': idempotency_key } : {}),
      },
      ...(body === null ? {} : { body }),
    })
    const text = await response.text()
    // On a busy machine what waits too long is refused, and has done nothing: it is sent again.
    if (response.status === 503 && text.includes('"UNAVAILABLE"'))
      return send(load, url, method, path, key, body, idempotency_key)
    if (!response.ok) load.refused.push(`${method} ${path}: ${response.status} ${text}`)
    return {
      outcome: response.ok ? 'acknowledged' : 'refused',
      text,
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }
  } catch {
    return { outcome: 'unknown', text: '', replayed: false }
  }
}

/** The same request with the same Idempotency-Key once more. What comes back counts as its answer. */
export async function sendAgain(url: string, load: Load, sent: Sent): Promise<Answered> {
  const answer = await send(load, url, 'POST', sent.path, sent.key, sent.body, sent.idempotency_key)
  settle(sent.call, answer.outcome)
  if (answer.outcome === 'acknowledged') {
    sent.text = answer.text
    if (sent.call.what === 'audit') sent.call.seq = JSON.parse(answer.text).seq
  }
  return answer
}
