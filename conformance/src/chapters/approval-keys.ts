// Approval-proxy keys: shown once, usable until revoked, for one checkpoint or for all.

import { equal, holds, invalid, matches, refused, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import { maskedForm } from '../contract.ts'
import * as objects from '../objects.ts'
import { approvalKey, hasShape, newApprovalKey } from '../shapes.ts'
import { unique } from '../tenant.ts'

export const approval_keys = chapter('approval-keys', {
  create: [
    'POST /approval-keys answers 201 with approval_key_id and a one-time approval_key, with or without checkpoint_id and label',
    'core 2, core 4, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const bare = succeeded(await tenant.admin.post('/v1/approval-keys'), 201)
      hasShape(bare, newApprovalKey, 'POST /v1/approval-keys')
      const { id } = await objects.checkpoint(tenant)
      const body = { checkpoint_id: id, label: 'Eve' }
      const of_one = succeeded(await tenant.admin.post('/v1/approval-keys', body), 201)
      hasShape(of_one, newApprovalKey, 'POST /v1/approval-keys')
      holds(of_one.approval_key !== bare.approval_key, 'two keys are the same')
    },
  ],
  label: [
    'label has 256 characters at most',
    'core 2, decisions 1',
    async (t) => {
      const { admin } = await t.tenant()
      succeeded(await admin.post('/v1/approval-keys', { label: 'x'.repeat(256) }), 201)
      for (const label of ['x'.repeat(257), 7])
        invalid(await admin.post('/v1/approval-keys', { label }), '/label')
    },
  ],
  'unknown-checkpoint': [
    'A key for an unknown checkpoint, or for one of another tenant, is 404 CHECKPOINT_NOT_FOUND',
    'decisions 2',
    async (t) => {
      const { admin } = await t.tenant()
      const { id } = await objects.checkpoint(await t.stranger())
      for (const checkpoint_id of [id, `chk_${unique()}`])
        refused(await admin.post('/v1/approval-keys', { checkpoint_id }), 'CHECKPOINT_NOT_FOUND')
    },
  ],
  list: [
    'GET /approval-keys lists the keys, each masked in the field that held it',
    'core 5.3, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const made = succeeded(await tenant.admin.post('/v1/approval-keys', { label: 'listed' }), 201)
      const { items } = succeeded(await tenant.admin.get('/v1/approval-keys?limit=200'), 200)
      const shown = items.find(
        (one: { approval_key_id: string }) => one.approval_key_id === made.approval_key_id,
      )
      holds(shown !== undefined, 'the new key is not in the list')
      hasShape(shown, approvalKey, 'an item of GET /v1/approval-keys')
      matches(shown.approval_key, maskedForm('approval'), 'masked approval_key')
      equal(
        shown.approval_key.slice(-4),
        made.approval_key.slice(-4),
        'last four characters of the masked key',
      )
    },
  ],
  'used-twice': [
    'An approval key is usable until it is revoked, also more than once',
    'decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const approver = await tenant.approver()
      for (const verb of ['approve', 'reject']) {
        const { id } = await objects.checkpoint(tenant)
        succeeded(await approver.post(`/v1/checkpoints/${id}/${verb}`), 200)
      }
      succeeded(await tenant.admin.delete(`/v1/approval-keys/${approver.id}`), 204)
      const { id } = await objects.checkpoint(tenant)
      refused(await approver.post(`/v1/checkpoints/${id}/approve`), 'UNAUTHORIZED')
      refused(await tenant.admin.delete(`/v1/approval-keys/${approver.id}`), 'APPROVAL_KEY_NOT_FOUND')
    },
  ],
  bound: [
    'A key with checkpoint_id is for that checkpoint only: another of the tenant is 403, a foreign or absent one 404',
    'core 2, core 5, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const own = (await objects.checkpoint(tenant)) as { id: string }
      const other = await objects.checkpoint(tenant)
      const foreign = await objects.checkpoint(await t.stranger())
      const approver = await tenant.approver(own.id)
      for (const verb of ['approve', 'reject']) {
        refused(await approver.post(`/v1/checkpoints/${other.id}/${verb}`), 'FORBIDDEN')
        refused(await approver.post(`/v1/checkpoints/${foreign.id}/${verb}`), 'CHECKPOINT_NOT_FOUND')
        refused(await approver.post(`/v1/checkpoints/chk_${unique()}/${verb}`), 'CHECKPOINT_NOT_FOUND')
      }
      const settled = succeeded(await approver.post(`/v1/checkpoints/${own.id}/approve`), 200)
      equal(settled.resolved_by, `approval_key:${approver.id}`, 'resolved_by')
    },
  ],
  unbound: [
    'A key without checkpoint_id is for every checkpoint of the tenant; a foreign or absent one is 404',
    'core 4, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const approver = await tenant.approver()
      const foreign = await objects.checkpoint(await t.stranger())
      for (const id of [foreign.id, `chk_${unique()}`])
        refused(await approver.post(`/v1/checkpoints/${id}/approve`), 'CHECKPOINT_NOT_FOUND')
      const { id } = await objects.checkpoint(tenant)
      equal(succeeded(await approver.post(`/v1/checkpoints/${id}/approve`), 200).status, 'approved', 'status')
    },
  ],
})
