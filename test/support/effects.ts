// Effects as the tests of their folder make them, and what they look at.

import { expect } from 'bun:test'
import { second_ms } from '../../src/base/clock.ts'
import { type ErrorCode, errors } from '../../src/base/errors.ts'
import { hashOf } from '../../src/base/keys.ts'
import type { Answer, TestService, TestTenant } from './service.ts'

export function expectRefusal(answer: Answer, code: ErrorCode, details?: object): void {
  const request_id = answer.headers.get('x-request-id')
  const error = { code, message: errors[code].message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(errors[code].status)
}

export const payload = { order: 7, amount: 30 }
export const payload_hash = hashOf(JSON.stringify(payload))
export const effect_id = expect.stringMatching(/^eff_[0-9a-z]{26}$/)
export const lease_token = expect.stringMatching(/^lse_[0-9a-z]{26}$/)
let made = 0

export function claim(service: TestService, { api_key }: { api_key: string }, body: object = {}) {
  service.clock.advance(1) // ids made in one millisecond are in no order
  made += 1
  return service.ask('POST', '/v1/effects', {
    key: api_key,
    body: { type: 'refund', key: `order-${made}`, payload, ...body },
  })
}

export async function claimed(service: TestService, tenant: TestTenant, body: object = {}) {
  const answer = await claim(service, tenant, body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body
}

export function ask(service: TestService, key: string, id: string, verb: string, body: object = {}) {
  return service.ask('POST', `/v1/effects/${id}/${verb}`, { key, body })
}

export const read = async (service: TestService, { api_key }: TestTenant, id: string) =>
  (await service.ask('GET', `/v1/effects/${id}`, { key: api_key })).body

export async function tick(service: TestService) {
  expect((await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })).status).toBe(200)
}

/** The lease of an effect runs out. */
export async function runOut(service: TestService, seconds = 60) {
  service.clock.advance(seconds * second_ms)
  await tick(service)
}

/** Types of the events of an effect, oldest first. */
export async function eventsOf(service: TestService, { api_key }: TestTenant, id: string) {
  const { body } = await service.ask('GET', '/v1/events?limit=200', { key: api_key })
  return body.items
    .filter((event: { subject: { id: string } }) => event.subject.id === id)
    .map((event: { type: string; data: object }) => event)
}

export async function typesOf(service: TestService, tenant: TestTenant, id: string) {
  return (await eventsOf(service, tenant, id)).map(({ type }: { type: string }) => type).toSorted()
}

export async function quotaOf(service: TestService, { admin_key, tenant_id }: TestTenant, name = 'effects') {
  const { body } = await service.ask('GET', `/v1/tenants/${tenant_id}`, { key: admin_key })
  return body.quota[name].used
}

export function decide(
  service: TestService,
  { admin_key }: TestTenant,
  id: string,
  verb: string,
  body: object = {},
) {
  return service.ask('POST', `/v1/checkpoints/${id}/${verb}`, { key: admin_key, body })
}

export const approval = { title: 'Refund 30 EUR?' }

/** An effect that waits for its approval. */
export async function proposed(service: TestService, tenant: TestTenant, body: object = {}) {
  const answer = await claim(service, tenant, { approval, ...body })
  expect(answer.status).toBe(202)
  return answer.body
}

export async function approved(service: TestService, tenant: TestTenant, body: object = {}) {
  const effect = await proposed(service, tenant, body)
  expect((await decide(service, tenant, effect.checkpoint_id, 'approve')).status).toBe(200)
  return effect
}
