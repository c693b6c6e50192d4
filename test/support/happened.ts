// Events of a workflow that no call of the API has left.

import { declareEvents, service_cause } from '../../src/contract/event.ts'
import * as journal from '../../src/journal/service.ts'
import type { TestService } from './service.ts'

const types = declareEvents({
  'checkpoint.created': { about: 'For tests.', subject: 'checkpoint', data: {}, waiting: 1 },
  'checkpoint.approved': { about: 'For tests.', subject: 'checkpoint', data: {}, waiting: -1 },
  'dlq.created': { about: 'For tests.', subject: 'dlq_item', data: {}, failing: 1 },
})

/** Leaves an event, in a transaction of its own. `private_to`: only this agent may see it. */
export function happened(
  { app }: TestService,
  tenant_id: string,
  workflow_id: string,
  type: keyof typeof types = 'checkpoint.created',
  private_to: string | null = null,
): Promise<unknown> {
  const event = { tenant_id, cause: service_cause, subject_id: 'thing_1', workflow_id, private_to, data: {} }
  return app.db.write(tenant_id, async (tx) => journal.emit(tx, types[type], event))
}
