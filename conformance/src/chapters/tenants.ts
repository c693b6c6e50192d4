// Tenants: sign-up, reading, rotation, deletion and restoration.

import { bytesOf, equal, holds, invalid, matches, refused, succeeded } from '../assert.ts'
import { chapter, timed } from '../check.ts'
import { day, hour, type Kind, keyForm, kinds, minute, timestamp } from '../contract.ts'
import * as objects from '../objects.ts'
import { filled, operations } from '../operations.ts'
import { deletedTenant, hasShape, newTenant, tenant as tenantShape } from '../shapes.ts'
import { Actor, type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

const confirm = { confirm: 'DELETE ALL DATA' }
const grace_days = 30
const works_while_pending = [
  'GET /v1/tenants/{tenant_id}',
  'DELETE /v1/tenants/{tenant_id}',
  'POST /v1/tenants/{tenant_id}/restore',
]

export const tenants = chapter('tenants', {
  create: [
    'POST /tenants answers 201 with tenant_id, name, plan, admin_key, quota, signing_secret, status active and created_at',
    'core 2, decisions 5 Tenants',
    async (t) => {
      const name = freshName()
      const made = succeeded(await signUp(t, { name }), 201)
      hasShape(made, newTenant, 'POST /v1/tenants')
      equal([made.name, made.status], [name, 'active'], 'name and status')
      for (const [quota, { used }] of Object.entries(made.quota as Record<string, { used: number }>))
        equal(used, 0, `quota.${quota}.used of a new tenant`)
    },
  ],
  'name-length': [
    'A tenant’s name has 3 to 40 characters after trimming, and no control characters',
    'core 2, core 8, decisions 5 Tenants',
    async (t) => {
      const name = freshName()
      for (const good of [unique().slice(0, 3), name.padEnd(40, 'x')]) {
        const answer = await signUp(t, { name: good })
        // A name of three letters may be in use already.
        if (answer.status !== 409) equal(succeeded(answer, 201).name, good, 'name')
      }
      equal(
        succeeded(await signUp(t, { name: `  ${freshName()}  ` }), 201).name.length,
        name.length,
        'trimmed length',
      )
      for (const bad of ['ab', ' ab ', 'x'.repeat(41), '', 'line\nfeed', 7, null])
        invalid(await signUp(t, { name: bad }), '/name')
    },
  ],
  'name-taken': [
    'A name in use, in any case of letters, is 409 TENANT_NAME_TAKEN',
    'core 4, decisions 5 Tenants',
    async (t) => {
      const name = freshName()
      succeeded(await signUp(t, { name }), 201)
      for (const taken of [name, name.toUpperCase(), ` ${name} `])
        refused(await signUp(t, { name: taken }), 'TENANT_NAME_TAKEN')
    },
  ],
  email: [
    'owner_email has the format of an email address',
    'core 2',
    async (t) => {
      for (const owner_email of ['nobody', '@example.com', 'a@', 'a b@example.com', 7])
        invalid(await signUp(t, { owner_email }), '/owner_email')
    },
  ],
  plan: [
    'plan is free or pro, and free by default',
    'core 2, decisions 4',
    async (t) => {
      equal(succeeded(await signUp(t, {}), 201).plan, 'free', 'plan without one in the request')
      for (const plan of ['free', 'pro']) equal(succeeded(await signUp(t, { plan }), 201).plan, plan, 'plan')
      for (const plan of ['builder', 'enterprise', 'FREE', '', 1]) invalid(await signUp(t, { plan }), '/plan')
    },
  ],
  read: [
    'GET /tenants/{id} adds owner_email, status and purge_at, and shows no key and no secret',
    'core 4, core 5.3, decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const shown = succeeded(await tenant.admin.get(`/v1/tenants/${tenant.id}`), 200)
      hasShape(shown, tenantShape, 'GET /v1/tenants/{id}')
      equal([shown.tenant_id, shown.name], [tenant.id, tenant.keys.name], 'tenant_id and name')
      equal([shown.status, shown.purge_at], ['active', null], 'status and purge_at')
      equal(
        ['admin_key' in shown, 'signing_secret' in shown],
        [false, false],
        'admin_key, signing_secret shown',
      )
    },
  ],
  foreign: [
    'The tenant resource of another tenant is 403 FORBIDDEN, existing or not, with the same bytes',
    'core 1.2, core 5.5, decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      const { id } = await t.stranger()
      const foreign = await admin.get(`/v1/tenants/${id}`)
      refused(foreign, 'FORBIDDEN')
      const absent = await admin.get(`/v1/tenants/${id.slice(0, -8)}${unique()}`)
      equal(
        bytesOf(absent),
        bytesOf(foreign),
        'the answer for an unknown tenant beside that for a foreign one',
      )
    },
  ],
  'rotate-key': [
    'POST /tenants/{id}/rotate-key answers a new admin_key; the old key dies at once',
    'core 4, decisions 2',
    async (t) => {
      const tenant = await t.newTenant()
      const path = `/v1/tenants/${tenant.id}`
      const { admin_key } = succeeded(await tenant.admin.post(`${path}/rotate-key`), 200)
      matches(admin_key, keyForm('admin'), 'admin_key')
      holds(admin_key !== tenant.admin.key, 'the new key is the old one')
      refused(await tenant.admin.get(path), 'UNAUTHORIZED')
      succeeded(await adminOf(t, admin_key).get(path), 200)
    },
  ],
  'rotate-key-grace': [
    'grace_seconds, 0 to 604800, keeps the old key for a while; rotating again ends it at once',
    'decisions 2',
    async (t) => {
      const tenant = await t.newTenant()
      const path = `/v1/tenants/${tenant.id}`
      for (const grace_seconds of [-1, 604_801, 1.5, '1'])
        invalid(await tenant.admin.post(`${path}/rotate-key`, { grace_seconds }), '/grace_seconds')
      const first = succeeded(await tenant.admin.post(`${path}/rotate-key`, { grace_seconds: 604_800 }), 200)
      succeeded(await tenant.admin.get(path), 200)
      succeeded(await adminOf(t, first.admin_key).post(`${path}/rotate-key`, { grace_seconds: 0 }), 200)
      refused(await tenant.admin.get(path), 'UNAUTHORIZED')
      refused(await adminOf(t, first.admin_key).get(path), 'UNAUTHORIZED')
    },
  ],
  'grace-ends': timed(
    minute + 5,
    'A key that was rotated with a grace works until the grace ends',
    'decisions 2',
    async (t) => {
      const tenant = await t.newTenant()
      const path = `/v1/tenants/${tenant.id}`
      succeeded(await tenant.admin.post(`${path}/rotate-key`, { grace_seconds: minute }), 200)
      await t.time.wait(minute - 5)
      succeeded(await tenant.admin.get(path), 200)
      await t.time.wait(10)
      refused(await tenant.admin.get(path), 'UNAUTHORIZED')
    },
  ),
  'rotate-signing-secret': [
    'POST /tenants/{id}/rotate-signing-secret answers a new signing_secret',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const signing_secret = await rotatedSecret(tenant)
      matches(signing_secret, /^whsec_[A-Za-z0-9+/]+={0,2}$/, 'signing_secret')
      holds(signing_secret !== tenant.keys.signing_secret, 'the new secret is the old one')
    },
  ],
  'delete-needs-confirm': [
    'DELETE /tenants/{id} without a body whose confirm is DELETE ALL DATA is 400 DELETE_REQUIRES_CONFIRM',
    'core 2, core 4, decisions 5 Tenants',
    async (t) => {
      const { admin, id } = await t.tenant()
      for (const body of [
        undefined,
        {},
        { confirm: 'delete all data' },
        { confirm: 'DELETE' },
        { confirm: true },
        [],
        '{',
      ])
        refused(await admin.delete(`/v1/tenants/${id}`, body), 'DELETE_REQUIRES_CONFIRM')
      equal(
        succeeded(await admin.get(`/v1/tenants/${id}`), 200).status,
        'active',
        'status after the refusals',
      )
    },
  ],
  delete: [
    'DELETE /tenants/{id} answers 202 with status pending_deletion and a purge_at 30 days later; GET and another DELETE work',
    'core 4, core 8, decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const path = `/v1/tenants/${tenant.id}`
      const deleted = succeeded(await tenant.admin.delete(path, confirm), 202)
      hasShape(deleted, deletedTenant, 'DELETE /v1/tenants/{id}')
      const days = (Date.parse(deleted.purge_at) - (await t.time.now())) / 1_000 / day
      holds(Math.abs(days - grace_days) < 0.01, `purge_at is in ${days} days`)
      const shown = succeeded(await tenant.admin.get(path), 200)
      equal([shown.status, shown.purge_at], ['pending_deletion', deleted.purge_at], 'status and purge_at')
      equal(succeeded(await tenant.admin.delete(path, confirm), 202).tenant_id, tenant.id, 'tenant_id')
    },
  ],
  'pending-refuses': [
    'While a tenant waits for its deletion, everything but GET, DELETE and restore by the admin key is 403 TENANT_PENDING_DELETION',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const actors = new Map<Kind, Actor>()
      for (const kind of kinds) actors.set(kind, await tenant.actor(kind))
      succeeded(await tenant.admin.delete(`/v1/tenants/${tenant.id}`, confirm), 202)
      for (const { name, method, path, query, body, callers } of operations) {
        if (!Array.isArray(callers) || works_while_pending.includes(name)) continue
        const target = `${filled(path, { tenant_id: tenant.id })}${query}`
        for (const kind of callers as readonly Kind[])
          refused(await actors.get(kind)!.call(method, target, body?.(t.world)), 'TENANT_PENDING_DELETION')
      }
    },
  ],
  'pending-keeps': [
    'While a tenant waits for its deletion, its name stays taken and the hooks of its inboxes answer 404',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const { token } = (await objects.inbox(tenant)) as { token: string }
      succeeded(await t.anyone.post(`/hook/${token}`, { n: 1 }), 200)
      succeeded(await tenant.admin.delete(`/v1/tenants/${tenant.id}`, confirm), 202)
      refused(await signUp(t, { name: tenant.keys.name }), 'TENANT_NAME_TAKEN')
      refused(await t.anyone.post(`/hook/${token}`, { n: 1 }), 'INBOX_NOT_FOUND')
    },
  ],
  restore: [
    'POST /tenants/{id}/restore makes the tenant active again, with its keys and its data',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const { namespace, key } = await objects.value(tenant)
      succeeded(await tenant.admin.delete(`/v1/tenants/${tenant.id}`, confirm), 202)
      const restored = succeeded(await tenant.admin.post(`/v1/tenants/${tenant.id}/restore`), 200)
      hasShape(restored, tenantShape, 'POST /v1/tenants/{id}/restore')
      equal([restored.status, restored.purge_at], ['active', null], 'status and purge_at')
      succeeded(await agent.get(`/v1/kv/${namespace}/${key}`), 200)
    },
  ],
  'restore-active': [
    'Restoring a tenant that is active is 409 INVALID_STATE',
    'decisions 1, decisions 5 Tenants',
    async (t) => {
      const { admin, id } = await t.tenant()
      refused(await admin.post(`/v1/tenants/${id}/restore`), 'INVALID_STATE', { status: 'active' })
    },
  ],
  purge: timed(
    grace_days * day + 2 * hour,
    'A deleted tenant is purged 30 days later: its keys die and its name is free again',
    'core 3, decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const path = `/v1/tenants/${tenant.id}`
      succeeded(await tenant.admin.delete(path, confirm), 202)
      await t.time.wait(grace_days * day - hour)
      succeeded(await tenant.admin.get(path), 200)
      await t.time.wait(2 * hour)
      await t.until(
        async () => (await tenant.admin.get(path)).status === 401,
        'the admin key of a purged tenant dies',
      )
      succeeded(await signUp(t, { name: tenant.keys.name }), 201)
    },
  ),
  'rests-while-pending': timed(
    hour,
    'Schedules and timeouts of a deleted tenant rest; after a restore, what fell due meanwhile runs',
    'decisions 5 Tenants',
    async (t) => {
      const tenant = await t.newTenant()
      const { id, hook } = await dueIn(t, tenant, minute)
      const asked = { title: 'x', callback_url: hook.url, timeout_seconds: minute, timeout_action: 'dlq' }
      const waiting = succeeded(await (await tenant.agent()).post('/v1/checkpoints', asked), 201)
      succeeded(await tenant.admin.delete(`/v1/tenants/${tenant.id}`, confirm), 202)
      await t.time.wait(10 * minute)
      await t.settled()
      equal(hook.received.length, 0, 'calls of a schedule whose tenant is deleted')
      const restored_ms = await t.time.now()
      succeeded(await tenant.admin.post(`/v1/tenants/${tenant.id}/restore`), 200)
      await t.time.wait(1)
      await t.until(() => hook.received.length === 1, 'the schedule fires after the restore')
      const agent = await tenant.agent()
      await t.until(
        async () => (await agent.get(`/v1/schedules/${id}`)).json.status === 'fired',
        'it is fired',
      )
      const path = `/v1/checkpoints/${waiting.id}`
      await t.until(
        async () => (await agent.get(path)).json.status === 'expired',
        'the checkpoint is expired',
      )
      const { resolved_at } = succeeded(await agent.get(path), 200)
      holds(Date.parse(resolved_at) >= restored_ms, `it was settled at ${resolved_at}, while it should rest`)
    },
  ),
})

async function dueIn(t: Trial, tenant: Tenant, seconds: number) {
  const hook = await t.hook()
  const agent = await tenant.agent()
  const fire_at = new Date((await t.time.now()) + seconds * 1_000).toISOString()
  matches(fire_at, timestamp, 'fire_at')
  const body = { callback_url: hook.url, callback_payload: null, fire_at }
  return { hook, id: succeeded(await agent.post('/v1/schedules', body), 201).id as string }
}

/** The signing secret that follows that of the tenant. */
export async function rotatedSecret({ admin, id }: Tenant): Promise<string> {
  return succeeded(await admin.post(`/v1/tenants/${id}/rotate-signing-secret`), 200).signing_secret
}

function freshName(): string {
  return `conformance-${unique()}${unique()}`
}

function signUp(t: Trial, body: Record<string, unknown>) {
  if (t.world.options.tenants.length > 0) t.notRun('needs sign-up')
  return t.anyone.post('/v1/tenants', { name: freshName(), owner_email: 'conformance@example.com', ...body })
}

function adminOf(t: Trial, key: string): Actor {
  return new Actor(t.anyone.send, { 'x-admin-key': key }, key)
}
