// Parameters and answers that the routes share.

import { Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { limit } from '../base/limit.ts'
import type { CountedQuota } from '../contract/feature.ts'
import { idParam, Nullable, Shape, Text, Time } from '../contract/schemas.ts'
import { quotasShown } from '../quotas/service.ts'
import { frozenSince } from './tenant.ts'
import type { TenantView } from './view.ts'

export const tag = 'Tenants'
export const tenantId = idParam('The tenant that the admin key belongs to; any other is refused with 403.')

export const TenantName = Type.String({
  minLength: 3,
  maxLength: 40,
  'x-trim': true,
  description: 'Unique regardless of case; no control characters; counted after trimming.',
})
export const OwnerEmail = Type.String({ format: 'email', maxLength: 254 })

const reason_characters_max = limit(
  'tenants.freeze_reason',
  500,
  'characters',
  'The reason of a freeze. Past it 400.',
)
export const FreezeReason = Text(reason_characters_max, 'Shown to the agents that are refused.')

const QuotaUse = Shape('Usage', 'How much of a quota is used.', {
  used: Type.Integer(),
  limit: Nullable(Type.Integer()),
})

export function tenantShape(quotas: readonly CountedQuota[]) {
  return Shape('Tenant', 'An account: its plan, its use of its quotas, and its state.', {
    tenant_id: Type.String(),
    name: Type.String(),
    plan: Type.String(),
    quota: Shape(
      'Quota',
      'The quotas of a tenant, each with its use.',
      Object.fromEntries(quotasShown(quotas).map((name) => [name, QuotaUse])),
    ),
    owner_email: Type.String(),
    status: Type.Enum(['active', 'pending_deletion']),
    purge_at: Nullable(Time('When all data of this tenant is purged; null while it is active.')),
    created_at: Time('When it was created.'),
    frozen_at: Nullable(Time('When it was frozen; null while it is not.')),
    frozen_reason: Nullable(Type.String()),
    resumed_at: Nullable(
      Time('When it was resumed, while locks, leases and timeouts are still being moved by the frozen time.'),
    ),
    quarantined_since: Type.Optional(
      Time(
        'In the answer of GET while the service is a restored copy that its operator has not released: nothing due is sent, and no effect starts.',
      ),
    ),
  })
}

export type TenantShape = ReturnType<typeof tenantShape>

export const AdminKey = Type.String({ description: 'Shown in this answer only.' })
export const SigningSecret = Type.String({
  description: 'Standard Webhooks secret that signs callbacks. Shown in this answer only.',
})

export function tenantOf({ tenant, quota }: TenantView) {
  return {
    tenant_id: tenant.tenant_id,
    name: tenant.name,
    plan: tenant.plan,
    quota,
    owner_email: tenant.owner_email,
    status: tenant.status,
    purge_at: isoOrNull(tenant.purge_at),
    created_at: iso(tenant.created_at),
    frozen_at: isoOrNull(frozenSince(tenant)),
    frozen_reason: tenant.frozen_reason,
    resumed_at: tenant.frozen_again_at === null ? isoOrNull(tenant.resumed_at) : null,
  }
}
