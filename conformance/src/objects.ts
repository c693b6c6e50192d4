// Objects on which the operations are called.

import { succeeded } from './assert.ts'
import { type Tenant, unique } from './tenant.ts'

/** Path parameters by name. */
export type Params = Record<string, string>

export type Maker = (tenant: Tenant) => Promise<Params>

/** The run, or a tenant in it. */
export interface Place {
  /** An address that every service may call, and that takes what is sent. */
  readonly idle_url: string
}

export const far_time = '2999-01-01T00:00:00.000Z'

export function scheduleBody({ idle_url }: Place): Record<string, unknown> {
  return { callback_url: idle_url, callback_payload: { n: 1 }, fire_at: far_time }
}

export function checkpointBody({ idle_url }: Place): Record<string, unknown> {
  return { title: 'May I?', callback_url: idle_url, callback_payload: { n: 1 } }
}

export async function self(tenant: Tenant): Promise<Params> {
  return { tenant_id: tenant.id }
}

export async function deletedSelf(tenant: Tenant): Promise<Params> {
  const path = `/v1/tenants/${tenant.id}`
  succeeded(await tenant.admin.delete(path, { confirm: 'DELETE ALL DATA' }), 202)
  return { tenant_id: tenant.id }
}

export async function agent(tenant: Tenant): Promise<Params> {
  const made = succeeded(await tenant.admin.post('/v1/agents', { name: `agent-${unique()}` }), 201)
  return { agent_id: made.agent_id }
}

export async function approvalKey(tenant: Tenant): Promise<Params> {
  const made = succeeded(await tenant.admin.post('/v1/approval-keys'), 201)
  return { approval_key_id: made.approval_key_id }
}

export async function namespace(tenant: Tenant): Promise<Params> {
  const { namespace } = (await value(tenant)) as { namespace: string }
  return { namespace }
}

export async function value(tenant: Tenant): Promise<Params> {
  const params = { namespace: `ns-${unique()}`, key: `key-${unique()}` }
  const agent = await tenant.agent()
  succeeded(await agent.put(`/v1/kv/${params.namespace}/${params.key}`, { value: { n: 0 } }), 200)
  return params
}

export async function entry(tenant: Tenant): Promise<Params> {
  const agent = await tenant.agent()
  return { id: succeeded(await agent.post('/v1/audit', { action: 'conformance.made' }), 201).id }
}

export async function item(tenant: Tenant): Promise<Params> {
  const agent = await tenant.agent()
  return { id: succeeded(await agent.post('/v1/dlq', { payload: { n: 1 }, error: 'it failed' }), 201).id }
}

export async function claimed(tenant: Tenant): Promise<Params> {
  const params = await item(tenant)
  const agent = await tenant.agent()
  succeeded(await agent.post(`/v1/dlq/${params.id}/claim`), 200)
  return params
}

export async function schedule(tenant: Tenant): Promise<Params> {
  const agent = await tenant.agent()
  return { id: succeeded(await agent.post('/v1/schedules', scheduleBody(tenant)), 201).id }
}

export async function checkpoint(tenant: Tenant): Promise<Params> {
  const agent = await tenant.agent()
  return { id: succeeded(await agent.post('/v1/checkpoints', checkpointBody(tenant)), 201).id }
}

export async function inbox(tenant: Tenant): Promise<Params> {
  const agent = await tenant.agent()
  const { id, token } = succeeded(await agent.post('/api/webhook', {}), 201)
  return { inbox_id: id, token }
}

export async function token(tenant: Tenant): Promise<Params> {
  return { token: (await inbox(tenant)).token as string }
}

export async function counter(tenant: Tenant): Promise<Params> {
  const key = `rl-${unique()}`
  const agent = await tenant.agent()
  succeeded(await agent.post('/api/rate-limit/check', { key, limit: 10, windowSeconds: 60 }), 200)
  return { key }
}
