// /v1/tenants/:tenant_id/freeze and /resume

import { Type } from 'typebox'
import { parseTime } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { action_request, Time } from '../contract/schemas.ts'
import * as tenants from './service.ts'
import { FreezeReason, type TenantShape, tag, tenantId, tenantOf } from './shapes.ts'

export const freezeTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants/:tenant_id/freeze',
    tag,
    summary: 'Stop everything: agents may change nothing, and only subscriptions deliver',
    description: 'Takes effect on all nodes within a second. A tenant that is already frozen stays as it is.',
    sdk: { name: 'tenants.freeze', retry: { safe: true, why: 'a tenant that is frozen stays as it is' } },
    cli: {
      usage: 'tenant freeze [tenant_id]',
      about: 'Stop all agents and everything due, until the tenant is resumed',
      examples: ['waystation tenant freeze --reason "runs wild"'],
      options: { reason: ['--reason <text>', 'shown to the agents that are refused'] },
    },
    auth: ['admin'],
    destructive: true,
    params: { tenant_id: tenantId },
    body: Type.Object(
      {
        reason: Type.Optional(FreezeReason),
      },
      action_request,
    ),
    replies: { 200: { body: Tenant } },
    shed: 'last',
    emits: ['tenant.frozen'],
    errors: [],
    async handle({ db, caller, dependencies }, { params, body }) {
      const { reason = null } = body
      return tenantOf(await tenants.freeze(db, dependencies, caller, params.tenant_id, reason))
    },
  })

export const resumeTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants/:tenant_id/resume',
    tag,
    summary: 'End the freeze',
    description:
      'Locks, leases and timeouts are moved by the time that the tenant was frozen; what fell due runs now. `frozen_at` is still set in the answer when there is so much to move that it takes a few more seconds. With `frozen_at` in the body, a different freeze is left alone: 409.',
    sdk: {
      name: 'tenants.resume',
      retry: {
        safe: { with: 'frozen_at' },
        why: 'with the time of the freeze a repeat never ends the next one',
      },
    },
    cli: {
      usage: 'tenant resume [tenant_id]',
      about: 'Resume the agents and everything that is due',
      examples: ['waystation tenant resume'],
      options: { frozen_at: ['--frozen-at <time>', 'only the freeze that began then'] },
    },
    auth: ['admin'],
    params: { tenant_id: tenantId },
    body: Type.Object(
      {
        frozen_at: Type.Optional(
          Time('The `frozen_at` of the freeze that you mean: 409 when another one is in force.'),
        ),
      },
      action_request,
    ),
    replies: { 200: { body: Tenant } },
    shed: 'last',
    emits: ['tenant.resumed'],
    errors: ['INVALID_STATE'],
    async handle({ db, caller, dependencies }, { params, body }) {
      const frozen_at = body.frozen_at === undefined ? null : parseTime(body.frozen_at)!
      return tenantOf(await tenants.resume(db, dependencies, caller, params.tenant_id, frozen_at))
    },
  })
