// The settings of Schemathesis for each kind of key: the key, and the parameters that it cannot choose itself.

import type { Tenant } from '../attacks/lib/service.ts'

export const kinds = ['admin', 'agent', 'approval', 'none'] as const
export type Kind = (typeof kinds)[number]

/** The configuration of Schemathesis: the key, and parameters that have the same value in every request. */
export async function settingsFor(kind: Kind, tenant: Tenant): Promise<string> {
  const { key, parameters } = await callerOf(kind, tenant)
  const operations = Object.entries({ ...unhurried, ...parameters }).map(([operation, values]) => {
    const fixed = Object.entries(values).map(([name, value]) => `"${name}" = "${value}"`)
    return `[[operations]]\ninclude-name = "${operation}"\nparameters = { ${fixed.join(', ')} }\n`
  })
  const auth = key === null ? '' : `[auth.openapi.bearer]\nbearer = "${key}"\n`
  return [auth, ...operations].join('\n')
}

/** By operation, by the place and name of a parameter. */
type Parameters = Record<string, Record<string, string>>

/** A request that waits for what nobody does would take a minute. hooks.py has one whose body says how long. */
const unhurried: Parameters = {
  'GET /v1/checkpoints/{id}': { 'query.wait': '0' },
  'GET /v1/approvals/{checkpoint_id}': { 'query.wait': '0' },
  'GET /api/webhook/{id}/messages': { 'query.wait': '0' },
  'GET /v1/effects/{id}': { 'query.wait': '0' },
  'GET /v1/events': { 'query.wait': '0' },
}

/** A key of this kind, and the ids that no request finds. */
async function callerOf(kind: Kind, tenant: Tenant): Promise<{ key: string | null; parameters: Parameters }> {
  if (kind === 'none') return { key: null, parameters: {} }
  if (kind === 'admin') return { key: tenant.admin_key, parameters: own_tenant }
  if (kind === 'agent') return { key: tenant.agent_key, parameters: {} }
  const { id } = await tenant.ask<{ id: string }>('POST', '/v1/checkpoints', {
    ...{ title: 't', prompt: 'p', callback_url: 'https://example.com/' },
  })
  const made = await fetch(`${tenant.url}/v1/approval-keys`, {
    method: 'POST',
    headers: { ...tenant.admin_headers, 'content-type': 'application/json' },
    body: '{}',
  })
  const { approval_key } = (await made.json()) as { approval_key: string }
  const parameters = {
    'GET /v1/approvals/{checkpoint_id}': { 'path.checkpoint_id': id, 'query.wait': '0' },
    'POST /v1/checkpoints/{id}/approve': { 'path.id': id },
    'POST /v1/checkpoints/{id}/reject': { 'path.id': id },
  }
  return { key: approval_key, parameters }
}

/** An admin reads its own tenant. It neither deletes it nor ends its own key: every later request would be refused. */
const own_tenant: Parameters = {
  'GET /v1/tenants/{tenant_id}': { 'path.tenant_id': 'me' },
  'GET /v1/tenants/{tenant_id}/usage': { 'path.tenant_id': 'me' },
  'DELETE /v1/tenants/{tenant_id}': { 'path.tenant_id': 'another' },
  'POST /v1/tenants/{tenant_id}/rotate-key': { 'path.tenant_id': 'another' },
}
