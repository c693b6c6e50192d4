// POST /v1/tick

import { Type } from 'typebox'
import type { Counters } from '../contract/feature.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { Part, Shape } from '../contract/schemas.ts'
import { requireReleased } from '../quarantine/service.ts'
import { tick_ms_max } from './tick.ts'

const Count = Type.Integer()

/** `counters`: the numbers that the answer has, by group. */
export function tickRoutes(counters: Counters) {
  const groups = Object.entries(counters)
  const shapes = groups.map(([group, names]) => {
    return [
      group,
      Part(
        `Tick${group[0]!.toUpperCase()}${group.slice(1)}`,
        {
          of: 'TickCounts',
          about: `Numbers of ${group}.`,
          shared: 'Numbers of a tick.',
        },
        Object.fromEntries(names.map((name) => [name, Count])),
      ),
    ] as const
  })
  const tick = route({
    group: v1,
    method: 'POST',
    path: '/v1/tick',
    tag: 'Tick',
    summary: 'Do all the work that is due, and answer when it is done',
    description: 'For an external timer, with the cron secret. The service does the same on its own.',
    sdk: {
      name: 'tick',
      retry: { safe: true, why: 'a second tick does nothing twice; its counts leave out what the first did' },
    },
    cli: {
      usage: 'tick',
      about: 'Do all the work that is due, with the cron secret as the key',
      examples: ['WAYSTATION_KEY="$(cat data/cron_secret)" waystation tick'],
    },
    auth: [],
    cron: true,
    body: Type.Object({}),
    replies: {
      200: {
        body: Shape('TickSummary', 'The work that a tick did, in numbers.', {
          ...Object.fromEntries(shapes),
          tenants_purged: Count,
          duration_ms: Count,
        }),
      },
    },
    errors: ['UNAUTHORIZED', 'QUARANTINED'],
    async handle({ dependencies, extendTimeout }) {
      requireReleased(dependencies.service.quarantine)
      extendTimeout(tick_ms_max)
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
