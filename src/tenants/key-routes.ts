// Rotations of a tenant's admin key and signing secret.

import { Type } from 'typebox'
import { isoOrNull } from '../base/clock.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { PreviousKey, RotateBody, Shape } from '../contract/schemas.ts'
import * as tenants from './service.ts'
import { AdminKey, SigningSecret, type TenantShape, tag, tenantId, tenantOf } from './shapes.ts'

export const rotateTenantKey = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants/:tenant_id/rotate-key',
    tag,
    summary: 'Get a new admin key',
    description: 'The old key stops working at once, or after `grace_seconds`.',
    sdk: {
      name: 'tenants.rotateKey',
      retry: { safe: false, why: 'a repeat would end the key of the answer that was lost' },
    },
    cli: {
      usage: 'tenant rotate-key [tenant_id]',
      about: 'Make a new admin key; a profile that has the old one gets it',
      examples: ['waystation tenant rotate-key --grace 10m'],
      options: { grace_seconds: ['--grace <duration>', 'how long the old key still works; default 0'] },
    },
    auth: ['admin'],
    destructive: true,
    params: { tenant_id: tenantId },
    body: RotateBody,
    replies: {
      200: {
        body: Shape(
          'RotatedTenant',
          { of: 'Tenant', about: 'A tenant with its new admin key, and when the key before ends.' },
          {
            ...Tenant.properties,
            admin_key: AdminKey,
            previous_key_expires_at: PreviousKey,
          },
        ),
      },
    },
    shed: 'last',
    emits: ['tenant.key_rotated'],
    errors: [],
    async handle({ db, caller, dependencies }, { params, body }) {
      const rotated = await tenants.rotateKey(
        db,
        dependencies,
        caller,
        params.tenant_id,
        body.grace_seconds ?? 0,
      )
      return {
        ...tenantOf(rotated),
        admin_key: rotated.key,
        previous_key_expires_at: isoOrNull(rotated.previous_key_expires_at),
      }
    },
  })

export const rotateSigningSecret = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants/:tenant_id/rotate-signing-secret',
    tag,
    summary: 'Get a new signing secret; the old one also signs for another 24 hours',
    description: 'Both secrets sign for 24 hours: verify callbacks with both.',
    sdk: { name: 'tenants.rotateSigningSecret', retry: { safe: false, why: 'a repeat would rotate twice' } },
    cli: {
      usage: 'tenant rotate-signing-secret [tenant_id]',
      about: 'Make a new signing secret; both sign for 24 hours',
    },
    auth: ['admin'],
    params: { tenant_id: tenantId },
    body: Type.Object({}),
    replies: {
      200: {
        body: Shape(
          'TenantWithSecret',
          { of: 'Tenant', about: 'A tenant with its new signing secret.' },
          { ...Tenant.properties, signing_secret: SigningSecret },
        ),
      },
    },
    shed: 'last',
    emits: ['tenant.signing_secret_rotated'],
    errors: [],
    async handle({ db, caller, dependencies }, { params }) {
      const rotated = await tenants.rotateSigningSecret(db, dependencies, caller, params.tenant_id)
      return { ...tenantOf(rotated), signing_secret: rotated.signing_secret }
    },
  })
