import { describe, expect, test } from 'bun:test'
import type { Plan } from '../contract/dependencies.ts'
import { default_plans, plan_limits } from '../features.ts'
import { defaultPlans, limitsInWords, parsePlans as parsePlansOf } from './plans.ts'

const day_seconds = 86_400
const gib = 1_073_741_824
const limits = Object.keys(default_plans.free!)
const parsePlans = (text: string) => parsePlansOf(text, plan_limits)

describe('the built-in plans', () => {
  test('are those of the API contract, and unlimited, which has the numbers of enterprise', () => {
    const rows = {
      agents: [25, 100, 500, null, null],
      kv_keys: [5_000, 50_000, 1_000_000, null, null],
      dlq_items: [500, 5_000, 50_000, null, null],
      active_schedules: [100, 1_000, 50_000, null, null],
      inboxes: [3, 10, 50, null, null],
      api_calls_per_month: [500, null, null, null, null],
      storage_bytes: [gib, 10 * gib, 100 * gib, null, null],
      event_days: [7, 30, 90, 365, 365],
      events_kept: [1_000_000, 10_000_000, 100_000_000, null, null],
      inbox_messages: [100, 500, 1_000, 10_000, 10_000],
      inbox_ttl_seconds: [7, 30, 30, 365, 365].map((days) => days * day_seconds),
    }
    expect(Object.keys(default_plans)).toEqual(['free', 'builder', 'pro', 'enterprise', 'unlimited'])
    const table = Object.fromEntries(
      Object.keys(rows).map((limit) => [limit, Object.values(default_plans).map((plan) => plan[limit])]),
    )
    expect(table).toEqual(rows)
  })

  test.each([
    ['free', '500 api calls per month, 1 GiB storage, 25 agents'],
    ['builder', '10 GiB storage, 100 agents'],
    ['unlimited', 'no quotas'],
  ])('%s in words: %s', (plan, words) => {
    const names = ['api_calls_per_month', 'storage_bytes', 'agents']
    expect(limitsInWords(default_plans[plan]!, names)).toBe(words)
    expect(limitsInWords({ ...default_plans[plan]!, storage_bytes: 5_242_880 }, names)).toContain(
      '5 MiB storage',
    )
  })

  test('could be a PLANS_FILE', () => {
    expect(parsePlans(JSON.stringify(default_plans))).toEqual(default_plans)
  })
})

describe('a table of plans', () => {
  const free = default_plans.free!
  const withFree = (change: object) => JSON.stringify({ free: { ...free, ...change }, pro: free })

  test('needs free and pro, may leave out the others, and may have plans of its own', () => {
    const table = { free, pro: free, 'team of 9': { ...free, agents: 9 } }
    expect(parsePlans(JSON.stringify(table))).toEqual(table)
  })

  test.each([0, 1, 2 ** 53 - 1, null])('takes a limit of %p', (agents) => {
    expect(parsePlans(withFree({ agents })).free!.agents).toBe(agents)
  })

  test.each([[-1], [1.5], [2 ** 53], ['5'], [true], [[]], [{}]])('takes no limit of %p', (agents) => {
    expect(() => parsePlans(withFree({ agents }))).toThrow(
      new Error('"free.agents" must be a whole number of 0 or more, or null'),
    )
  })

  test.each(limits)(
    'that does not name %s takes the default of the plan of that name, else of free',
    (limit) => {
      const given: Plan = { ...free, inboxes: 7, storage_bytes: 8, inbox_messages: 9 }
      const { [limit]: _left_out, ...rest } = given
      const { pro, enterprise, own } = parsePlans(
        JSON.stringify({ free, pro: rest, enterprise: rest, own: rest }),
      )
      expect(pro).toEqual({ ...rest, [limit]: default_plans.pro![limit]! })
      expect(enterprise![limit]).toBe(default_plans.enterprise![limit])
      expect(own![limit]).toBe(free[limit])
    },
  )

  test('from before a limit was there goes on with the default that its feature declares', () => {
    const places = { name: 'places', defaults: { free: 2, builder: 20, pro: 200, enterprise: null } }
    const with_places = [...plan_limits, places]
    const table = parsePlansOf(JSON.stringify({ free, pro: free, enterprise: free, own: free }), with_places)
    expect(Object.values(table).map(({ places }) => places)).toEqual([2, 200, null, 2])
    expect(table.free).toEqual({ ...free, places: 2 })
    expect(defaultPlans(with_places).builder).toEqual({ ...default_plans.builder, places: 20 })
    expect(() => parsePlans(JSON.stringify(table))).toThrow(new Error('"free.places" is not a limit'))
  })

  test('has unlimited when it names it, with no limits unless it names some', () => {
    const table = parsePlans('{"free": {}, "pro": {}, "unlimited": {"agents": 9}}')
    expect(table.unlimited).toEqual({ ...default_plans.unlimited, agents: 9 })
  })

  test('of no limits at all is that of the defaults', () => {
    expect(parsePlans('{"free": {}, "pro": {}}')).toEqual({ free, pro: default_plans.pro! })
  })

  test.each([
    ['null', 'it is not a JSON object'],
    ['[]', 'it is not a JSON object'],
    ['"free"', 'it is not a JSON object'],
    ['7', 'it is not a JSON object'],
    ['{}', 'plan "free" is missing'],
    [JSON.stringify({ pro: free }), 'plan "free" is missing'],
    [JSON.stringify({ free }), 'plan "pro" is missing'],
    [JSON.stringify({ free: null, pro: free }), '"free" is not a JSON object'],
    [JSON.stringify({ free: 7, pro: free }), '"free" is not a JSON object'],
    [withFree({ agent: 3 }), '"free.agent" is not a limit'],
  ])('refuses %s', (text, message) => {
    expect(() => parsePlans(text)).toThrow(new Error(message))
  })

  test.each(['', '{', "{'free': {}}"])('refuses what is not JSON, in one line: %j', (text) => {
    expect(() => parsePlans(text)).toThrow(/^JSON Parse error: [^\n]+$/)
  })
})
