// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  EFFECT_NOT_FOUND: {
    status: 404,
    message: 'There is no such effect.',
    when: 'The tenant has no [effect](effects.md) with this id.',
    next: 'List the effects to find the right id.',
    exit: 'not_found',
  },
  EFFECT_IN_FLIGHT: {
    status: 409,
    message: 'Somebody holds the lease of this effect.',
    when: 'The [effect](effects.md) is running: `details` has its id, the agent, and when the lease ends. `Retry-After` is the time until then, in seconds.',
    next: 'Wait until its lease ends and ask again: the answer then says what became of it.',
    exit: 'conflict',
  },
  EFFECT_UNKNOWN: {
    status: 409,
    message: 'Nobody knows whether this effect has happened.',
    when: 'The last lease of the [effect](effects.md) ran out and its holder has not reported. The effect stays unknown until the holder reports, or an admin resolves it.',
    next: 'Look at the target of the effect, and have an admin resolve it: succeeded, failed or retry.',
    exit: 'conflict',
  },
  EFFECT_NOT_HELD: {
    status: 409,
    message: 'This is not the current lease of the effect.',
    when: 'The `lease_token` is not that of the last lease of the [effect](effects.md), or that lease was settled or has run out; or a claim or start reuses the token of a released lease. `details.status` is the status of the effect.',
    next: 'Stop: do not carry out the effect. Read it to see what became of it. A new claim takes a new lease_token.',
    exit: 'conflict',
  },
  EFFECT_KEY_REUSED: {
    status: 422,
    message: 'This type and key are bound to another payload.',
    when: 'An [effect](effects.md) of this type and key has a different payload, or `payload_hash` is not the hash of what was approved. A single changed byte is enough.',
    next: 'Send the exact bytes that were sent first, or use another key for another effect.',
    exit: 'usage',
  },
  EFFECT_REJECTED: {
    status: 403,
    message: 'The approval of this effect was refused.',
    when: 'The approval of the [effect](effects.md) was rejected, has expired or was cancelled, which is final. Or the one that a claim names is over or `used_up`. `details` has its `status` and `checkpoint_id`.',
    next: 'Do not do it. If it is still wanted, ask for a new approval; a refused effect needs another key.',
    exit: 'forbidden',
  },
  EFFECT_APPROVAL_REQUIRED: {
    status: 403,
    message: 'This effect needs an approval first.',
    when: 'A [policy](effects.md#policies), or the mode `propose` of the agent, requires an approval, and this effect has none. Or the approval that it names, `details.checkpoint_id`, was given by fewer voters than the policy now requires, or by other voters.',
    next: 'POST the effect again, without a checkpoint_id: that asks for its approval.',
    exit: 'forbidden',
  },
  EFFECT_APPROVERS_GONE: {
    status: 409,
    message: 'Too few of the approvers that the policy for this effect names are left.',
    when: 'The [policy](effects.md#policies) that `details.policy` names requires more approvals than it has approval keys left: the others were revoked.',
    next: 'Have an admin set the policy again, with approval keys that exist.',
    exit: 'conflict',
  },
  EFFECT_POLICY_NOT_FOUND: {
    status: 404,
    message: 'There is no such policy.',
    when: 'The tenant has no [policy](effects.md#policies) for effects of this type.',
    next: 'List the policies to find the right type.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
