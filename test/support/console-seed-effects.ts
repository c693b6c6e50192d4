// Effects of the small company: one of each status, and what the company demands of them.

import type { Waystation } from '../../sdk/src/index.ts'
import type { Staff } from './console-seed.ts'

const minute_ms = 60_000

/** Those that came to an end, and those of which nobody knows. */
export async function finishEffects({ admin, billing, support, deploy, pass }: Staff): Promise<void> {
  await admin.effectPolicies.set('payout', {
    ...{ approval: 'required', required_approvals: 2, lease_seconds_max: 600 },
  })
  await admin.effectPolicies.set('*', { approval: 'optional', approvers: ['admin'] })
  const mail = await billing.effects.claim({
    ...{ type: 'mail', key: 'receipt-2026-1041', payload: { to: 'ada@example.com', template: 'receipt' } },
  })
  await billing.effects.succeed(mail.id, { lease_token: mail.lease_token!, result: { message: 'msg_71' } })
  const sms = await support.effects.claim({ type: 'sms', key: 'ticket-8812', payload: { to: '+43 1 5550' } })
  await support.effects.fail(sms.id, { lease_token: sms.lease_token!, error: 'The number is not in use.' })
  const index = await deploy.effects.claim({ type: 'reindex', key: '4.1.3', payload: { shards: 4 } })
  await deploy.effects.fail(index.id, {
    ...{ lease_token: index.lease_token!, error: 'Two shards are read-only.', retry: true },
  })
  const credit = await asked(support, { type: 'credit', key: 'ticket-8815', payload: { amount: 400 } })
  await admin.checkpoints.reject(credit.checkpoint_id!, { reason: 'Twice what the policy allows.' })
  await changedAndLost({ admin, billing, pass })
  const again = await support.effects.claim({
    ...{ type: 'mail', key: 'ticket-8810', payload: { to: 'kim@example.com' }, on_unknown: 'ask' },
    ...{ lease_seconds: 30, workflow_id: 'ticket-8810' },
  })
  await support.effects.extend(again.id, { lease_token: again.lease_token!, lease_seconds: 40 })
  await pass(minute_ms)
}

/** Approved as an approver has changed it, begun, and not reported. */
async function changedAndLost({ admin, billing, pass }: Pick<Staff, 'admin' | 'billing' | 'pass'>) {
  const refund = await asked(billing, {
    ...{ type: 'refund', key: 'invoice-2026-1038', workflow_id: 'invoice-2026-1038' },
    payload: { invoice: '2026-1038', amount: '410.00', currency: 'EUR', notify: true },
    note: 'The customer sent two of five parts back.',
  })
  const effective_payload = { invoice: '2026-1038', amount: '164.00', currency: 'EUR', notify: true }
  await pass(4 * minute_ms)
  await admin.checkpoints.approve(refund.checkpoint_id!, {
    ...{ effective_payload, reason: 'Only what came back.' },
  })
  await billing.effects.start(refund.id, { lease_seconds: 60 })
  await pass(2 * minute_ms)
}

/** Those that wait for somebody. */
export async function openEffects({ admin, billing, deploy }: Staff): Promise<void> {
  await deploy.effects.claim({
    ...{ type: 'reindex', key: '4.2.0', payload: { shards: 4 }, lease_seconds: 3_600 },
  })
  const payout = {
    type: 'payout',
    key: 'november',
    payload: { iban: 'AT61 1904 3002 3457 3201', amount: 9_120 },
  }
  await asked(billing, { ...payout, workflow_id: 'payouts-2026-11' })
  const invoice = await asked(billing, { type: 'charge', key: '2026-1043', payload: { amount: '89.00' } })
  await admin.checkpoints.approve(invoice.checkpoint_id!, { uses: 3 })
}

type Claim = Parameters<Waystation['effects']['claim']>[0]

function asked(agent: Waystation, body: Claim) {
  const approval = { title: `Allow ${body.type} ${body.key}?`, editable: true, timeout_seconds: 6 * 3_600 }
  return agent.effects.claim({ ...body, approval })
}
