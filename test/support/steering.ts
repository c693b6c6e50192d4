// Checkpoints with and without what steers their decision.

import { expect } from 'bun:test'
import { eventsOf } from './events.ts'
import { cron_secret, type TestService, type TestTenant } from './service.ts'

/** As a checkpoint shows it that takes one plain decision. */
export const plain_steering = {
  answer_schema: null,
  answer: null,
  required_approvals: 1,
  required_rejections: 1,
  approvals: 0,
  rejections: 0,
  approvers: null,
  escalate: null,
  escalated: 0,
  comments: 0,
  editable: false,
  edited_payload: null,
  edited_payload_hash: null,
  effective_payload: null,
  permit_expires_at: null,
  uses: 1,
  uses_left: 1,
  effect_id: null,
  effect: null,
}

/** Checkpoints that more than one person may decide, as the tests of their folder make and read them. */
export function approvalsOf(service: TestService) {
  async function ask(tenant: TestTenant, body: object = {}) {
    service.clock.advance(1)
    const wanted = { title: 'Refund order 7?', callback_url: null, ...body }
    const made = await service.ask('POST', '/v1/checkpoints', { key: tenant.api_key, body: wanted })
    expect([made.status, made.body.error]).toEqual([201, undefined])
    return made.body
  }

  async function voter(tenant: TestTenant, body: object = {}) {
    const made = await service.ask('POST', '/v1/approval-keys', { key: tenant.admin_key, body })
    expect(made.status).toBe(201)
    return { id: made.body.approval_key_id as string, key: made.body.approval_key as string }
  }

  const decide = (key: string, id: string, verb: 'approve' | 'reject', body: object = {}) =>
    service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key, body })
  const read = async ({ api_key }: TestTenant, id: string) =>
    (await service.ask('GET', `/v1/checkpoints/${id}`, { key: api_key })).body
  const votesOf = async ({ admin_key }: TestTenant, id: string) =>
    (await service.ask('GET', `/v1/checkpoints/${id}/votes`, { key: admin_key })).body.items
  const tick = () => service.ask('POST', '/v1/tick', { key: cron_secret })
  const left = async ({ tenant_id }: TestTenant) =>
    (await eventsOf(service, tenant_id, 'checkpoint')).map(({ type }) => type)
  return { ask, voter, decide, read, votesOf, tick, left }
}
