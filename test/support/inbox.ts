// An inbox as its tests handle it, over HTTP.

import { expect } from 'bun:test'
import type { TestService, TestTenant } from './service.ts'

export interface TestInbox {
  id: string
  token: string
  /** Of its URL. */
  path: string
}

export async function newInbox(
  service: TestService,
  { api_key }: Pick<TestTenant, 'api_key'>,
  body: object = {},
): Promise<TestInbox> {
  const answer = await service.ask('POST', '/api/webhook', { key: api_key, body })
  expect(answer.status).toBe(201)
  const { id, token } = answer.body.data
  return { id, token, path: `/hook/${token}` }
}

/** The first 100 messages, oldest first. */
export async function messagesIn(service: TestService, { api_key }: TestTenant, { id }: TestInbox) {
  const answer = await service.ask('GET', `/api/webhook/${id}/messages?limit=100`, { key: api_key })
  expect(answer.status).toBe(200)
  return answer.body.data.items
}

export async function tick(service: TestService): Promise<void> {
  const answer = await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
  expect(answer.status).toBe(200)
}
