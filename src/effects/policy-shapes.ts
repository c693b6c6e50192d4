// Parameters and answers of the routes of policies.

import { Type } from 'typebox'
import { iso } from '../base/clock.ts'
import type { Param } from '../contract/route.ts'
import { Nullable, Shape, Time } from '../contract/schemas.ts'
import { type_form } from './effect.ts'
import { any_type, approval_rules, approversOf, type PolicyRow } from './policy.ts'

const policy_form = `^(\\*|${type_form.source.slice(1, -1)})$`
export const policy_type: Param = {
  schema: Type.String({
    pattern: policy_form,
    description: 'A type of effects, or * for those without a policy.',
  }),
  read: (decoded) => (decoded === any_type || type_form.test(decoded) ? decoded : null),
  message: `must match ${policy_form}`,
}

export const EffectPolicy = Shape(
  'EffectPolicy',
  'The conditions under which the effects of a type may start.',
  {
    type: Type.String(),
    approval: Type.Enum([...approval_rules], {
      description: 'required: an effect that asks for no approval still gets one.',
    }),
    required_approvals: Type.Integer({ description: 'The minimum number of approvals.' }),
    approvers: Nullable(
      Type.Array(Type.String(), {
        description: 'Ids of approval keys, or admin; null: anybody with a key for it.',
      }),
    ),
    lease_seconds_max: Nullable(
      Type.Integer({ description: 'The longest lease; a longer one is shortened to it.' }),
    ),
    created_at: Time('When it was first set.'),
    updated_at: Time('When it was last set.'),
  },
)

export function policyOf(row: PolicyRow) {
  return {
    type: row.type,
    approval: row.approval,
    required_approvals: row.required_approvals,
    approvers: approversOf(row),
    lease_seconds_max: row.lease_seconds_max,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}
