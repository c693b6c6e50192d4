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
  const items = []
  for (let after = ''; ; ) {
    const query = `limit=100${after && `&after=${after}`}`
    const answer = await service.ask('GET', `/api/webhook/${id}/messages?${query}`, { key: api_key })
    expect(answer.status).toBe(200)
    items.push(...answer.body.data.items)
    after = answer.body.data.nextAfter
    // Of large messages a page holds fewer.
    if (answer.body.data.items.length === 0 || items.length >= 100) return items.slice(0, 100)
  }
}

export async function tick(service: TestService): Promise<void> {
  const answer = await service.ask('POST', '/v1/tick', { key: service.app.cron_secret.value })
  expect(answer.status).toBe(200)
}
