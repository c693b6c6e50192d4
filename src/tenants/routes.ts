// /v1/tenants

import { type TSchema, Type } from 'typebox'
import { iso, isoOrNull } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { anonymousCause } from '../contract/event.ts'
import type { CountedQuota } from '../contract/feature.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { action_request, idParam, Shape } from '../contract/schemas.ts'
import { freezeTenant, resumeTenant } from './freeze-routes.ts'
import { rotateSigningSecret, rotateTenantKey } from './key-routes.ts'
import * as tenants from './service.ts'
import {
  AdminKey,
  OwnerEmail,
  SigningSecret,
  TenantName,
  type TenantShape,
  tag,
  tenantId,
  tenantOf,
  tenantShape,
} from './shapes.ts'
import { hasControls } from './tenant.ts'

/** The routes, for tenants with these quotas. */
export function tenantRoutes(quotas: readonly CountedQuota[]) {
  const Tenant = tenantShape(quotas)
  return {
    createTenant: createTenant(Tenant),
    getTenant: getTenant(Tenant),
    deleteTenant: deleteTenant(Tenant),
    restoreTenant: restoreTenant(Tenant),
    freezeTenant: freezeTenant(Tenant),
    resumeTenant: resumeTenant(Tenant),
    rotateTenantKey: rotateTenantKey(Tenant),
    rotateSigningSecret: rotateSigningSecret(Tenant),
  }
}

const NamedPlan = Type.String({
  maxLength: 64,
  examples: ['free', 'pro'],
  description:
    'One that is open to sign-ups: free and pro unless configured, plus unlimited on loopback. Any other is refused with the list of those that are open. The default is free unless configured.',
})

const createTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants',
    tag,
    summary: 'Create a tenant',
    description: 'Needs no key. The admin key and the signing secret are shown in this answer only.',
    sdk: { name: 'tenants.create' },
    cli: {
      usage: 'tenant create <name>',
      about: 'Sign up a tenant; its admin key and signing secret are shown only once',
      group: 'Tenants: sign up, show, rotate keys, delete, restore',
      examples: ['waystation tenant create acme --email you@example.com --save admin'],
      options: {
        owner_email: ['--email <address>', "the owner's address"],
        plan: ['--plan <plan>', 'one that is open to sign-ups, such as free, pro or unlimited; default free'],
      },
      key: 'admin_key',
    },
    auth: [],
    sign_up: true,
    body: signUpBody(NamedPlan),
    configuredBody: ({ plans_open }) => signUpBody(Type.Enum([...plans_open])),
    replies: {
      201: {
        body: Shape(
          'CreatedTenant',
          {
            of: 'Tenant',
            about: 'A tenant with its admin key and signing secret, as only its creation answers them.',
          },
          { ...Tenant.properties, admin_key: AdminKey, signing_secret: SigningSecret },
        ),
      },
    },
    emits: ['tenant.created'],
    errors: ['TENANT_NAME_TAKEN', 'FORBIDDEN', 'RATE_LIMITED'],
    async create(tx, { dependencies, request_id }, { body }) {
      if (hasControls(body.name))
        throw invalid({ path: '/name', message: 'must not contain control characters' })
      const plan = body.plan ?? dependencies.service.default_plan
      const created = await tenants.create(tx, dependencies, { ...body, plan }, anonymousCause(request_id))
      const { admin_key, signing_secret } = created
      return { ...tenantOf(created), admin_key, signing_secret }
    },
  })

function signUpBody<P extends TSchema>(Plan: P) {
  return Type.Object({
    name: TenantName,
    owner_email: OwnerEmail,
    plan: Type.Optional(Plan),
  })
}

const getTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'GET',
    path: '/v1/tenants/:tenant_id',
    tag,
    summary: 'Read the tenant and its use of its quotas',
    description: '`me` is the tenant of the key.',
    sdk: { name: 'tenants.get' },
    cli: { usage: 'tenant get [tenant_id]', about: 'Show a tenant and how much of its plan is used' },
    auth: ['admin'],
    while_pending_deletion: true,
    params: {
      tenant_id: idParam('The tenant that the admin key belongs to, or me; any other is refused with 403.'),
    },
    replies: { 200: { body: Tenant } },
    shed: 'last',
    errors: [],
    async handle({ db, now, caller, dependencies }, { params }) {
      const { since } = dependencies.service.quarantine
      const tenant = tenantOf(await tenants.read(db, now, caller, params.tenant_id, dependencies))
      return { ...tenant, ...(since === null ? {} : { quarantined_since: iso(since) }) }
    },
  })

const deleteTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'DELETE',
    path: '/v1/tenants/:tenant_id',
    tag,
    summary: 'Schedule the tenant for deletion, 30 days from now',
    description: 'Needs `confirm: "DELETE ALL DATA"`. All data of the tenant is removed after 30 days.',
    sdk: { name: 'tenants.delete', retry: { safe: true, why: 'deleting it again answers the same' } },
    cli: {
      usage: 'tenant delete [tenant_id]',
      about: 'Delete a tenant; it can be restored for 30 days',
      examples: ["waystation tenant delete --confirm 'DELETE ALL DATA'"],
      options: { confirm: false },
    },
    auth: ['admin'],
    while_pending_deletion: true,
    destructive: true,
    params: { tenant_id: tenantId },
    body: Type.Object({ confirm: Type.Enum(['DELETE ALL DATA']) }, action_request),
    body_error: 'DELETE_REQUIRES_CONFIRM',
    replies: {
      202: {
        body: Shape('DeletedTenant', 'The tenant that is scheduled for deletion.', {
          tenant_id: Type.String(),
          status: Tenant.properties.status,
          purge_at: Tenant.properties.purge_at,
        }),
      },
    },
    emits: ['tenant.deleted'],
    errors: ['DELETE_REQUIRES_CONFIRM'],
    async handle({ db, caller, dependencies }, { params }) {
      const tenant = await tenants.remove(db, dependencies, caller, params.tenant_id)
      return { tenant_id: tenant.tenant_id, status: tenant.status, purge_at: isoOrNull(tenant.purge_at) }
    },
  })

const restoreTenant = (Tenant: TenantShape) =>
  route({
    group: v1,
    method: 'POST',
    path: '/v1/tenants/:tenant_id/restore',
    tag,
    summary: 'Cancel the deletion',
    description: 'Possible within 30 days of the deletion. Keys and data are as they were.',
    sdk: {
      name: 'tenants.restore',
      retry: { safe: false, why: 'a tenant that is already active is refused' },
    },
    cli: { usage: 'tenant restore [tenant_id]', about: 'Restore a tenant that is scheduled for deletion' },
    auth: ['admin'],
    while_pending_deletion: true,
    params: { tenant_id: tenantId },
    body: Type.Object({}),
    replies: { 200: { body: Tenant } },
    emits: ['tenant.restored'],
    errors: ['INVALID_STATE'],
    async handle({ db, caller, dependencies }, { params }) {
      return tenantOf(await tenants.restore(db, dependencies, caller, params.tenant_id))
    },
  })
