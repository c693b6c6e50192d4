// The cron tick.

import { equal, holds, refused, succeeded } from '../assert.ts'
import { chapter } from '../check.ts'
import { hasShape, tick as tickShape } from '../shapes.ts'
import type { Trial } from '../trial.ts'

const path = '/v1/tick'

export const tick = chapter('tick', {
  refuses: [
    'A missing or invalid cron secret, or any other credential, is 401 UNAUTHORIZED',
    'core 4, core 5.4, decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const rows = [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: 'Bearer' },
        tenant.admin.headers,
        agent.headers,
      ]
      for (const headers of [...rows, { authorization: `Bearer ${tenant.admin.key}` }])
        refused(await t.anyone.post(path, undefined, headers), 'UNAUTHORIZED')
    },
  ],
  summary: [
    'POST /tick answers 200 with a summary of processed schedules and timeouts',
    'core 4, decisions 5 Tick',
    async (t) =>
      hasShape(succeeded(await t.anyone.post(path, undefined, secret(t)), 200), tickShape, 'POST /v1/tick'),
  ],
  'other-credentials': [
    'Beside the cron secret other credentials are ignored',
    'decisions 2',
    async (t) => {
      const tenant = await t.tenant()
      const agent = await tenant.agent()
      const headers = { ...tenant.admin.headers, ...agent.headers, ...secret(t) }
      succeeded(await t.anyone.post(path, undefined, headers), 200)
    },
  ],
  'fires-due': [
    'A tick answers when everything that was due at its arrival has ended its attempt',
    'core 3, decisions 5 Tick',
    async (t) => {
      const headers = secret(t)
      const hook = await t.hook()
      const agent = await (await t.tenant()).agent()
      const body = { callback_url: hook.url, callback_payload: 1, fire_at: '2000-01-01T00:00:00Z' }
      const { id } = succeeded(await agent.post('/v1/schedules', body), 201)
      succeeded(await t.anyone.post(path, undefined, headers), 200)
      equal(hook.received.length, 1, 'calls once the tick has answered')
      equal(succeeded(await agent.get(`/v1/schedules/${id}`), 200).status, 'fired', 'status')
    },
  ],
  concurrent: [
    'Any number of ticks at once fires nothing twice',
    'decisions 5 Tick',
    async (t) => {
      const headers = secret(t)
      const agent = await (await t.tenant()).agent()
      const hooks = await Promise.all(Array.from({ length: 10 }, () => t.hook()))
      for (const { url } of hooks)
        succeeded(
          await agent.post('/v1/schedules', {
            callback_url: url,
            callback_payload: 1,
            fire_at: '2000-01-01T00:00:00Z',
          }),
          201,
        )
      const ticks = await Promise.all(
        Array.from({ length: 5 }, () => t.anyone.post(path, undefined, headers)),
      )
      for (const answer of ticks) succeeded(answer, 200)
      await t.until(() => hooks.every(({ received }) => received.length > 0), 'every schedule fires')
      await t.settled()
      holds(
        hooks.every(({ received }) => received.length === 1),
        'a schedule was fired twice',
      )
    },
  ],
})

function secret(t: Trial): Record<string, string> {
  return t.world.cron_headers ?? t.notRun('needs the cron secret: give --cron-secret')
}
