// Checkpoints that are asked for an effect, as a feature makes them, and what it hears of their end.

import { afterAll, beforeAll } from 'bun:test'
import { hour_ms } from '../../src/base/clock.ts'
import type { CheckpointRow } from '../../src/checkpoints/checkpoint.ts'
import * as checkpoints from '../../src/checkpoints/service.ts'
import type { DecidedCheckpoint, Decides } from '../../src/contract/decides.ts'
import { decides, default_plans } from '../../src/features.ts'
import { requested } from './requested.ts'
import type { TestService, TestTenant } from './service.ts'

type Steering = Parameters<typeof checkpoints.steeringOf>[0]

interface Asked extends Steering {
  payload?: string
  editable?: boolean
  timeout_action?: 'auto_reject' | 'dlq'
  expires_at?: number
}

export function askForEffect(
  service: TestService,
  { tenant_id, agent_id }: TestTenant,
  {
    payload = '{"amount":40}',
    editable = true,
    timeout_action = 'auto_reject',
    expires_at,
    ...given
  }: Asked = {},
): Promise<CheckpointRow> {
  service.clock.advance(1)
  const caller = { kind: 'agent', agent_id, tenant_id, plan: 'free', status: 'active', ...requested } as const
  const dependencies = { jobs: { wake() {}, pauseOrResume() {}, tick: never }, plans: default_plans }
  return service.app.db.write(tenant_id, (tx) =>
    checkpoints.create(tx, caller, dependencies, {
      ...{
        title: 'Refund order 7?',
        prompt: null,
        callback_url: '',
        callback_payload: null,
        workflow_id: null,
      },
      ...{ timeout_action, expires_at: expires_at ?? tx.now + hour_ms },
      ...checkpoints.steeringOf(given, {
        ...{ effect_id: 'eff_of_a_test', effect: { type: 'refund', key: 'order-7', note: null } },
        ...{ payload, editable },
      }),
    }),
  )
}

const never = () => Promise.reject(new Error('no tick is made here'))

/** Every settlement of the services of this file, in order. */
export function heardDecisions(): { tenant_id: string; checkpoint: DecidedCheckpoint; actor: string }[] {
  const heard: { tenant_id: string; checkpoint: DecidedCheckpoint; actor: string }[] = []
  const hook: Decides = (tx, _, { tenant_id, checkpoint, cause }) => {
    tx.afterCommit(() => heard.push({ tenant_id, checkpoint, actor: cause.actor }))
  }
  const list = decides as Decides[]
  beforeAll(() => void list.push(hook))
  afterAll(() => void list.splice(list.indexOf(hook), 1))
  return heard
}
