// Requests that take more than a plain decision, and the people who decide them.

import { expect } from 'bun:test'
import { askForEffect } from './effect-checkpoints.ts'
import type { TestService, TestTenant } from './service.ts'

export const answer_schema = {
  type: 'object',
  title: 'The refund',
  properties: {
    amount: { type: 'integer', title: 'Amount in EUR', minimum: 1, maximum: 500 },
    speed: { type: 'string', title: 'When', enum: ['now', 'next week'] },
    note: { type: 'string', title: 'Note to the customer' },
    by: { type: 'string', title: 'Booked on', format: 'date' },
    notify: { type: 'boolean', title: 'Tell the customer' },
  },
  required: ['amount', 'speed'],
}

/** The calls that tests of such requests share. */
export function approvers(service: TestService) {
  async function ask({ api_key }: TestTenant, more: object) {
    const body = { title: 'Refund order 7?', callback_url: null, ...more }
    const made = await service.ask('POST', '/v1/checkpoints', { key: api_key, body })
    expect(made.status).toBe(201)
    return made.body.id as string
  }

  async function keyOf({ admin_key }: TestTenant, body: object = {}) {
    const made = await service.ask('POST', '/v1/approval-keys', { key: admin_key, body })
    expect(made.status).toBe(201)
    return made.body as { approval_key: string; approval_key_id: string }
  }

  /** An effect that takes the votes of two. */
  async function askTwo(tenant: TestTenant, payload = '{"to":"kim","amount":100}') {
    const [kim, lee] = [await keyOf(tenant, { label: 'Kim' }), await keyOf(tenant, { label: 'Lee' })]
    const { id } = await askForEffect(service, tenant, { payload, required_approvals: 2 })
    return { id, kim, lee }
  }

  return {
    ...{ ask, keyOf, askTwo },
    linkOf: (id: string, { approval_key }: { approval_key: string }) =>
      `${service.url}/approve/${id}#${approval_key}`,
    read: async ({ admin_key }: TestTenant, id: string) =>
      (await service.ask('GET', `/v1/checkpoints/${id}`, { key: admin_key })).body,
    approve: (id: string, { approval_key }: { approval_key: string }, body: object = {}) =>
      service.ask('POST', `/v1/checkpoints/${id}/approve`, { key: approval_key, body }),
  }
}
