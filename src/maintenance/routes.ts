// POST /v1/tick

import { Type } from 'typebox'
import type { Counters } from '../contract/feature.ts'
import { route } from '../contract/route.ts'
import { Shape } from '../contract/schemas.ts'
import { tick_ms_max } from '../jobs/timer.ts'

const Count = Type.Integer()

export function tickRoutes(counters: Counters) {
  const groups = Object.entries(counters)
  const tick = route({
    method: 'POST',
    path: '/v1/tick',
    tag: 'Tick',
    summary: 'Do all that is due, and answer when it is done',
    auth: [],
    cron: true,
    body: Type.Object({}),
    replies: {
      200: Shape({
        ...Object.fromEntries(
          groups.map(([group, names]) => [
            group,
            Shape(Object.fromEntries(names.map((name) => [name, Count]))),
          ]),
        ),
        tenants_purged: Count,
        duration_ms: Count,
      }),
    },
    errors: ['UNAUTHORIZED'],
    async handle({ dependencies, hold }) {
      hold(tick_ms_max)
      const { counts, tenants_purged, duration_ms } = await dependencies.jobs.tick()
      const reported = groups.map(([group, names]) => [
        group,
        Object.fromEntries(names.map((name) => [name, counts[`${group}.${name}`] ?? 0])),
      ])
      return { ...Object.fromEntries(reported), tenants_purged, duration_ms }
    },
  })
  return { tick }
}
