// /v1/tenants/{id}/usage

import { Type } from 'typebox'
import { iso, parseTime } from '../base/clock.ts'
import { invalid } from '../base/errors.ts'
import { v1 } from '../contract/group.ts'
import { route } from '../contract/route.ts'
import { idParam, Part, Shape, Time } from '../contract/schemas.ts'
import * as tenants from '../tenants/service.ts'
import * as usage from './service.ts'
import { rangeOf, steps, stepsOf } from './steps.ts'

const Calls = Type.Integer({ description: 'Calls with a key of the tenant.' })
const Failures = Type.Integer({ description: 'Those that were answered 4xx or 5xx.' })

/** `groups`: the names under which calls are counted, in the order in which they are shown. */
export function usageRoutes(groups: readonly string[]) {
  const getUsage = route({
    group: v1,
    method: 'GET',
    path: '/v1/tenants/:tenant_id/usage',
    tag: 'Tenants',
    summary: 'Count the calls of each hour or day, by feature',
    description:
      'Calls and failures of each step, by feature. Every step of the range is listed, even one without calls.',
    sdk: { name: 'tenants.usage' },
    cli: {
      usage: 'tenant usage [tenant_id]',
      about: 'Show when there were calls and failures, and of which features',
      examples: [
        'waystation tenant usage',
        'waystation tenant usage --step day --from 2026-11-01T00:00:00Z --json',
      ],
      options: {
        step: ['--step <step>', 'default hour'],
        from: ['--from <time>', 'RFC 3339; default a day before, or 30 days'],
        to: ['--to <time>', 'RFC 3339; default now'],
      },
      columns: ['start_at', 'calls', 'failures'],
    },
    auth: ['admin'],
    params: {
      tenant_id: idParam('The tenant that the admin key belongs to, or me; any other is refused with 403.'),
    },
    query: Type.Object({
      from: Type.Optional(
        Time('The first step is the one that contains this instant; default a day, or 30 days, before to.'),
      ),
      to: Type.Optional(Time('Before this instant; default now. At most 35 days after from.')),
      step: Type.Optional(Type.Enum([...steps], { description: 'hour (the default) or day, in UTC.' })),
    }),
    replies: {
      200: {
        body: reportOf(groups),
      },
    },
    errors: [],
    async handle({ db, caller, dependencies, now }, { params, query }) {
      tenants.requireOwnOrMe(caller, params.tenant_id)
      const { step = 'hour' } = query
      const [from, to] = [query.from, query.to].map((time) =>
        time === undefined ? undefined : parseTime(time)!,
      )
      const range = rangeOf(step, from, to, now)
      if (!range) throw invalid({ path: 'query.from', message: 'must not be more than 35 days before to' })
      const counts = await usage.read(db, dependencies.counts.usage, caller.tenant_id, range)
      return {
        from: iso(range.from),
        to: iso(range.to),
        step,
        items: stepsOf(step, range, groups, counts).map((item) => ({
          ...item,
          start_at: iso(item.start_at),
        })),
      }
    },
  })
  return { getUsage }
}

function reportOf(groups: readonly string[]) {
  return Part('UsageReport', 'Calls by the hour or day.', {
    from: Time('The start of the first step.'),
    to: Time('The end of what is counted.'),
    step: Type.Enum([...steps]),
    items: Type.Array(
      Shape('UsageStep', 'The calls of one hour or day.', {
        start_at: Time('When the step begins.'),
        calls: Calls,
        failures: Failures,
        features: Type.Array(
          Part('FeatureUsage', 'The calls of one feature.', {
            feature: Type.Enum([...groups]),
            calls: Calls,
            failures: Failures,
          }),
        ),
      }),
    ),
  })
}
