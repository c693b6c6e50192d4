// Effects and their policies among the many rows of plans.ts.

import type { Parts } from './plans.ts'

export function effectSeeds(others: number, { tenant, id, past, future, fill }: Parts): string[] {
  const is_over = 'i % 10 > 5'
  return [
    fill('effects', others, {
      ...{ tenant_id: tenant, id: id('eff'), type: `'t' || cast((i / 2) % 20 as text)`, key: id('k') },
      status: `case when i % 10 < 4 then 'running' when i % 10 < 6 then 'unknown' when i % 10 = 9 then 'approved' else 'succeeded' end`,
      ...{ agent_id: `'a'`, on_unknown: `'hold'`, lease_ms: 60_000, payload_hash: `'h'`, fence: 1 },
      workflow_id: `case when i % 3 = 0 then 'flow' end`,
      lease_until: `case when i % 10 < 2 then ${past} when i % 10 < 4 then ${future} end`,
      permit_expires_at: `case when i % 10 = 9 then ${past} end`,
      forget_at: `case when ${is_over} and i % 10 < 8 then ${past} when ${is_over} then ${future} end`,
      ...{ kept_ms: 1_000, kept_bytes: 2, created_at: past, updated_at: past, payload: `'{}'` },
    }),
    fill('effect_policies', others, {
      ...{ tenant_id: tenant, type: `'t' || cast(i as text)`, approval: `'required'` },
      ...{ required_approvals: 1, created_at: past, updated_at: past },
    }),
  ]
}
