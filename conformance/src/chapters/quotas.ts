// Plans and quotas: exact counts, and 402 once one is full.

import { equal, holds, invalid, NotRun, refused, succeeded } from '../assert.ts'
import { chapter, forEach, type Made, timed } from '../check.ts'
import { day, minute } from '../contract.ts'
import * as objects from '../objects.ts'
import { type Tenant, unique } from '../tenant.ts'
import type { Trial } from '../trial.ts'

/** A quota that takes more calls to fill is not filled. */
const filled_max = 600

/** Of plans that no operator has changed. */
const plan_table = {
  free: {
    quotas: {
      agents: 25,
      kv_keys: 5_000,
      dlq_items: 500,
      active_schedules: 100,
      inboxes: 3,
      api_calls_per_month: 500,
    },
    ttl_days: 7,
  },
  pro: {
    quotas: {
      agents: 500,
      kv_keys: 1_000_000,
      dlq_items: 50_000,
      active_schedules: 50_000,
      inboxes: 50,
      api_calls_per_month: null,
    },
    ttl_days: 30,
  },
} as const

interface Quota {
  name: string
  /** Uses one more of it. */
  use(tenant: Tenant): Promise<unknown>
  /** Gives one back. Null: nothing does. */
  free: ((tenant: Tenant) => Promise<unknown>) | null
}

const quota_names: Quota[] = [
  {
    name: 'agents',
    use: (tenant) => tenant.admin.post('/v1/agents', { name: `agent-${unique()}` }),
    free: async ({ admin }) => {
      const { items } = succeeded(await admin.get('/v1/agents'), 200)
      return admin.delete(`/v1/agents/${items[0].agent_id}`)
    },
  },
  {
    name: 'dlq_items',
    use: async (tenant) => (await tenant.agent()).post('/v1/dlq', { payload: 1, error: 'x' }),
    free: async (tenant) => {
      const { items } = succeeded(await tenant.admin.get('/v1/dlq?status=failed'), 200)
      return (await tenant.agent()).post(`/v1/dlq/${items[0].id}/resolve`)
    },
  },
  {
    name: 'active_schedules',
    use: async (tenant) => (await tenant.agent()).post('/v1/schedules', objects.scheduleBody(tenant)),
    free: async (tenant) => {
      const { items } = succeeded(await tenant.admin.get('/v1/schedules?status=pending'), 200)
      return (await tenant.agent()).delete(`/v1/schedules/${items[0].id}`)
    },
  },
  {
    name: 'inboxes',
    use: async (tenant) => (await tenant.agent()).post('/api/webhook', {}),
    free: async (tenant) => {
      const agent = await tenant.agent()
      const { items } = succeeded(await agent.get('/api/webhook'), 200)
      return agent.delete(`/api/webhook/${items[0].id}`)
    },
  },
]

export const quotas = chapter('quotas', {
  ...forEach(quota_names, full),
  'kv-keys': [
    'Keys count toward kv_keys while they are there, and rate counters do, too',
    'edge 8, decisions 4',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      equal((await quotaOf(tenant, 'kv_keys')).used, 0, 'kv_keys of a new tenant')
      const { namespace, key } = await objects.value(tenant)
      equal((await quotaOf(tenant, 'kv_keys')).used, 1, 'kv_keys with a key')
      await objects.counter(tenant)
      equal((await quotaOf(tenant, 'kv_keys')).used, 2, 'kv_keys with a counter, too')
      succeeded(await agent.delete(`/v1/kv/${namespace}/${key}`), 204)
      equal((await quotaOf(tenant, 'kv_keys')).used, 1, 'kv_keys after the delete')
    },
  ],
  'plan-table': [
    'The plans free and pro have the limits of the table, and the most seconds of an inbox',
    'edge 8, decisions 4',
    async (t) => {
      for (const plan of ['free', 'pro'] as const) {
        const tenant = await t.newTenant(plan)
        const limits = plan_table[plan]
        for (const [name, limit] of Object.entries(limits.quotas))
          equal((await quotaOf(tenant, name)).limit, limit, `limit of ${name} on the plan ${plan}`)
        const agent = await tenant.agent()
        succeeded(await agent.post('/api/webhook', { ttl: limits.ttl_days * day }), 201)
        invalid(await agent.post('/api/webhook', { ttl: limits.ttl_days * day + 1 }), '/ttl')
      }
    },
  ],
  'expired-frees': timed(2 * minute, 'What has expired never fills a quota', 'decisions 4', async (t) => {
    const tenant = await t.newTenant('free')
    const agent = await tenant.agent()
    const limit = fillable((await quotaOf(tenant, 'inboxes')).limit, 'inboxes')
    const create = () => agent.post('/api/webhook', { ttl: minute })
    for (let i = 0; i < limit; i++) succeeded(await create(), 201)
    refused(await create(), 'QUOTA_EXCEEDED', { quota: 'inboxes', used: limit, limit })
    await t.time.wait(minute + 1)
    for (let i = 0; i < limit; i++) succeeded(await create(), 201)
    refused(await create(), 'QUOTA_EXCEEDED')
  }),
  'dlq-open-items': [
    'dlq_items counts failed and claimed items; resolved and archived ones do not count',
    'decisions 4',
    async (t) => {
      const tenant = await t.newTenant()
      const agent = await tenant.agent()
      const { id } = await objects.claimed(tenant)
      const other = await objects.claimed(tenant)
      equal((await quotaOf(tenant, 'dlq_items')).used, 2, 'dlq_items with two claimed')
      succeeded(await agent.post(`/v1/dlq/${id}/resolve`), 200)
      succeeded(await agent.post(`/v1/dlq/${other.id}/fail`), 200)
      equal((await quotaOf(tenant, 'dlq_items')).used, 0, 'dlq_items once both are closed')
    },
  ],
  'api-calls': [
    'Calls of /api count toward api_calls_per_month, at most 1 s behind; calls of /v1 do not; over it they are 402',
    'edge 8, decisions 4',
    async (t) => {
      const tenant = await t.newTenant('free')
      const agent = await tenant.agent()
      const given = await quotaOf(tenant, 'api_calls_per_month')
      const { used } = given
      const limit = fillable(given.limit, 'calls of /api')
      for (let calls = used; calls < limit; calls += 20) {
        const some = Math.min(20, limit - calls)
        await Promise.all(Array.from({ length: some }, () => agent.get('/api/rate-limit/x')))
      }
      await t.until(
        async () => (await agent.get('/api/rate-limit/x')).status === 402,
        'a call over the quota is refused',
      )
      refused(await agent.get('/api/rate-limit/x'), 'QUOTA_EXCEEDED', { quota: 'api_calls_per_month', limit })
      succeeded(await agent.get('/v1/audit'), 200)
    },
  ],
  race: [
    'Used and limit are exact under concurrency: of creations at the same time as many succeed as there is room',
    'decisions 4',
    async (t) => {
      const tenant = await t.newTenant('free')
      const agent = await tenant.agent()
      const given = await quotaOf(tenant, 'inboxes')
      const limit = fillable(given.limit, 'inboxes')
      const answers = await Promise.all(
        Array.from({ length: limit + 5 }, () => agent.post('/api/webhook', {})),
      )
      equal(answers.filter(({ status }) => status === 201).length, limit, 'inboxes that were made')
      for (const answer of answers.filter(({ status }) => status !== 201)) refused(answer, 'QUOTA_EXCEEDED')
      equal((await quotaOf(tenant, 'inboxes')).used, limit, 'used')
    },
  ],
})

function full({ name, use, free }: Quota): Made {
  return {
    name: `full ${name}`,
    sentence: `Over the quota ${name} a creation is 402 QUOTA_EXCEEDED with details {quota, used, limit}; used counts exactly`,
    section: 'core 4, core 7, edge 8, decisions 4',
    passes_seconds: null,
    run: async (t: Trial) => {
      const tenant = await t.newTenant('free')
      await tenant.agent()
      const given = await quotaOf(tenant, name)
      const { used } = given
      const limit = fillable(given.limit, name)
      for (let made = used; made < limit; made += 10)
        await Promise.all(Array.from({ length: Math.min(10, limit - made) }, () => use(tenant)))
      equal(await quotaOf(tenant, name), { used: limit, limit }, `quota ${name} once it is full`)
      const over = await use(tenant)
      refused(over as Parameters<typeof refused>[0], 'QUOTA_EXCEEDED', { quota: name, used: limit, limit })
      await free?.(tenant)
      equal((await quotaOf(tenant, name)).used, limit - 1, `used of ${name} with one less`)
      await use(tenant)
      holds((await quotaOf(tenant, name)).used === limit, `the freed place of ${name} is not taken`)
    },
  }
}

/** A quota that can be filled by calls. */
function fillable(limit: number | null, name: string): number {
  if (limit !== null && limit <= filled_max) return limit
  throw new NotRun(`the plan free has ${limit ?? 'unlimited'} ${name}`)
}

async function quotaOf(tenant: Tenant, name: string): Promise<{ used: number; limit: number | null }> {
  const { used, limit } = succeeded(await tenant.admin.get(`/v1/tenants/${tenant.id}`), 200).quota[name]
  return { used, limit }
}
