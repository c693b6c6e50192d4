// Helpers for tests of subscriptions: events that happen, and waits for deliveries.

import { service_cause } from '../../src/contract/event.ts'
import { unnamedAcrossTenants } from '../../src/db/db.ts'
import * as journal from '../../src/journal/service.ts'
import { events } from '../../src/subscriptions/events.ts'
import { type Answer, cron_secret, type TestService, type TestTenant } from './service.ts'

/** Events about subscriptions that are not there, `sub_0`, `sub_1` …: of a type that is there in any case. */
export async function happen(
  { app }: TestService,
  { tenant_id }: Pick<TestTenant, 'tenant_id'>,
  count: number,
  about: { workflow_id?: string; type?: 'subscription.updated' | 'subscription.resumed' } = {},
): Promise<void> {
  const { type = 'subscription.updated', ...others } = about
  for (let n = 0; n < count; n++) {
    await app.db.write((tx) =>
      journal.emit(tx, events[type], {
        ...{ tenant_id, cause: service_cause, subject_id: `sub_${n}`, data: {} },
        ...others,
      }),
    )
  }
}

export const updates = ['subscription.updated']

export function subscribe(
  service: TestService,
  { admin_key }: Pick<TestTenant, 'admin_key'>,
  body: Record<string, unknown>,
): Promise<Answer> {
  return service.ask('POST', '/v1/subscriptions', { key: admin_key, body: { types: updates, ...body } })
}

export async function subscribed(
  service: TestService,
  tenant: Pick<TestTenant, 'admin_key'>,
  body: Record<string, unknown>,
): Promise<string> {
  const answer = await subscribe(service, tenant, body)
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body.id
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of an answer's shape
export async function shown(service: TestService, { admin_key }: TestTenant, id: string): Promise<any> {
  return (await service.ask('GET', `/v1/subscriptions/${id}`, { key: admin_key })).body
}

export async function tick(service: TestService): Promise<void> {
  await service.ask('POST', '/v1/tick', { key: cron_secret })
}

/** Ticks until the condition holds. */
export async function tickUntil(
  service: TestService,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  for (let n = 0; n < 200; n++) {
    await tick(service)
    if (await holds()) return
  }
  const rows = await service.app.db.all(unnamedAcrossTenants('rows of jobs', 'select * from jobs'), {})
  const now = service.clock.now()
  throw new Error(`does not come to hold at ${now}, with the jobs ${JSON.stringify(rows)}`)
}
