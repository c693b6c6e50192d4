// /v1/dlq/{id}/redrive

import { causeOf } from '../contract/event.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { redrive } from './redrive.ts'
import { Item, id, itemOf, tag } from './shapes.ts'

export const redriveItem = route({
  group: v1,
  method: 'POST',
  path: '/v1/dlq/:id/redrive',
  tag,
  summary: 'Send what failed again',
  description:
    'A schedule is sent again as a new schedule, and the callback of a decision as itself; the item is then resolved, and `redriven_as` names what is sent. An item that an agent recorded can be claimed again.',
  sdk: { name: 'dlq.redrive' },
  cli: { usage: 'dlq redrive <id>', about: 'Send what failed again, or let agents claim it again' },
  auth: ['agent', 'admin'],
  params: { id },
  replies: { 200: { body: Item } },
  kept_if_room: true,
  emits: [
    ...['dlq.resolved', 'dlq.reopened', 'dlq.lock_expired'],
    ...['schedule.retried', 'schedule.created', 'callback.redriven'],
  ],
  errors: ['DLQ_NOT_FOUND', 'ALREADY_CLAIMED', 'INVALID_STATE', 'QUOTA_EXCEEDED'],
  async create(tx, { caller, dependencies }, { params }) {
    return itemOf(await redrive(tx, caller, dependencies, { id: params.id, cause: causeOf(caller) }))
  },
})
