// Helpers for tests of redrive, retry and replay.

import { afterAll, expect } from 'bun:test'
import { type ErrorCode, errors } from '../../src/base/errors.ts'
import { recount } from '../../src/db/recount.ts'
import { recounted_tables } from '../../src/features.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import type { Answer, TestService, TestTenant } from './service.ts'

/** Digits that no double holds, and a name twice: it has to stay text. */
export const exact_payload = '{"n": 123456789012345678901234567890, "a": 1.0, "a": [1e400]}'

/** Makes receivers that answer this status; they are stopped after the tests of the file. 410 ends all attempts at once. */
export function receivers(): (status: number) => Promise<Receiver> {
  const made: Receiver[] = []
  afterAll(async () => {
    for (const receiver of made) await receiver.stop()
  })
  return async (status) => {
    const receiver = await startReceiver()
    made.push(receiver)
    receiver.answer = () => ({ status })
    return receiver
  }
}

/** The envelope, and nothing else; under /api it has `success`. */
export function expectRefusal(answer: Answer, code: ErrorCode, details?: object, envelope = {}): void {
  const request_id = answer.headers.get('x-request-id')
  // The sentence of a 402 also names the plan and the way on: src/quotas/quota.ts.
  const over = expect.stringMatching(
    /^The plan free allows \d+ \w+, and \d+ are used\. Remove some, or ask the operator/,
  )
  const message = code === 'QUOTA_EXCEEDED' ? over : errors[code].message
  const error = { code, message, ...(details && { details }), request_id }
  expect(answer.body).toEqual({ ...envelope, error })
  expect(answer.status).toBe(errors[code].status)
}

/** The use of the two quotas. */
export async function usedOf(service: TestService, { admin_key }: TestTenant) {
  const { quota } = (await service.ask('GET', '/v1/tenants/me', { key: admin_key })).body
  return { active_schedules: quota.active_schedules.used, dlq_items: quota.dlq_items.used }
}

/** Bytes of rows that the counter lacks. */
export async function missingBytes({ app }: TestService, { tenant_id }: TestTenant): Promise<number> {
  await app.db.maintain()
  return recount(app.db, recounted_tables, tenant_id)
}
