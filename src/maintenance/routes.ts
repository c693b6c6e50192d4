// POST /v1/tick

import { Type } from 'typebox'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Shape } from '../contract/schemas.ts'
import { tick_ms_max } from './tick.ts'

const Count = Type.Integer()

export const tick = route({
  group: v1,
  method: 'POST',
  path: '/v1/tick',
  tag: 'Tick',
  summary: 'Do all that is due, and answer when it is done',
  sdk: {
    name: 'tick',
    retry: { safe: true, why: 'a second tick does nothing twice; its counts leave out what the first did' },
  },
  cli: {
    usage: 'tick',
    about: 'Do all that is due, with the cron secret as key',
    examples: ['WAYSTATION_KEY="$(cat data/cron_secret)" waystation tick'],
  },
  auth: [],
  cron: true,
  body: Type.Object({}),
  replies: {
    200: {
      body: Shape('TickSummary', {
        schedules: Shape({ due: Count, fired: Count, retrying: Count, failed: Count }),
        checkpoints: Shape({ rejected: Count, expired: Count, callbacks: Count }),
        dlq: Shape({ locks_released: Count }),
        expired: Shape({ kv_keys: Count, inboxes: Count, idempotency_keys: Count }),
        tenants_purged: Count,
        duration_ms: Count,
      }),
    },
  },
  errors: ['UNAUTHORIZED'],
  handle({ services, extendTimeout }) {
    extendTimeout(tick_ms_max)
    return services.tick()
  },
})
