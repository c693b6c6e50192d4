// The terms of a policy, in words.

import type { ApprovalKey, EffectPolicy } from '../../sdk/src/types.ts'
import { count, counted, shown } from '../text/words.ts'
import { Badge, Facts } from '../ui/basics.tsx'

export function Approval({ approval, required_approvals }: EffectPolicy) {
  if (approval === 'required')
    return <Badge tone="accent">{`${counted(required_approvals, 'approval')} required`}</Badge>
  return <Badge tone="neutral">{required_approvals > 1 ? `if any, ${required_approvals}` : 'optional'}</Badge>
}

export function byWhom({ approvers }: EffectPolicy, keys: readonly ApprovalKey[]): string {
  return approvers === null ? 'everybody with a key for it' : approvers.map(nameOf(keys)).join(', ')
}

/** The name of an approver. */
function nameOf(keys: readonly ApprovalKey[]): (id: string) => string {
  return (id) => {
    if (id === 'admin') return 'an administrator'
    return shown(keys.find(({ approval_key_id }) => approval_key_id === id)?.label ?? id)
  }
}

export function LongestLease({ lease_seconds_max }: EffectPolicy) {
  if (lease_seconds_max === null) return <span class="muted">any</span>
  return <>{count(lease_seconds_max)} s</>
}

export function Terms({ policy, keys }: { policy: EffectPolicy; keys: readonly ApprovalKey[] }) {
  return (
    <Facts
      facts={{
        Approval: <Approval {...policy} />,
        'By whom': byWhom(policy, keys),
        'Longest lease': <LongestLease {...policy} />,
      }}
    />
  )
}
