// Members of a body that steer a decision.

import { Type } from 'typebox'
import { limit } from '../base/limit.ts'
import { AnyJsonObject, kib, Part } from '../contract/schemas.ts'
import { timeout_seconds_max } from './checkpoint.ts'

const votes_max = limit(
  'checkpoints.votes',
  10,
  'entries',
  '`required_approvals` and `required_rejections`. Past it 400.',
)
const approvers_max = limit(
  'checkpoints.approvers',
  50,
  'entries',
  'Approvers that a checkpoint, or a step of `escalate`, names. Past it 400.',
)
const steps_max = limit('checkpoints.escalations', 5, 'entries', 'Steps of `escalate`. Past it 400.')
export const answer_schema_bytes_max = limit(
  'checkpoints.answer_schema_bytes',
  16 * kib,
  'bytes',
  'The JSON text of an answer_schema. Past it 413.',
)
export const answer_bytes_max = limit(
  'checkpoints.answer_bytes',
  128 * kib,
  'bytes',
  'The JSON text of an answer. Past it 413.',
)
export const uses_max = limit(
  'checkpoints.uses',
  100,
  'entries',
  'Effects that may start under one approval. Past it 400.',
)

const Approvers = Type.Array(
  Type.String({
    maxLength: 64,
    pattern: '^(admin|apk_[0-9a-z]{26})$',
    description: 'An approval key, or admin.',
  }),
  { minItems: 1, maxItems: approvers_max, examples: [['admin']] },
)

const Votes = Type.Integer({ minimum: 1, maximum: votes_max })

/** Members of a body that asks for a decision. */
export const steering_fields = {
  answer_schema: Type.Optional(
    AnyJsonObject(
      answer_schema_bytes_max,
      'A flat JSON Schema of the answer that an approval must carry: at most 20 fields of type string, number, integer or boolean.',
    ),
  ),
  required_approvals: Type.Optional({
    ...Votes,
    description: 'Approvals by different voters that it needs; default 1.',
  }),
  required_rejections: Type.Optional({
    ...Votes,
    description: 'Rejections by different voters that it needs; default 1.',
  }),
  approvers: Type.Optional({
    ...Approvers,
    description: 'Ids of the approval keys that may decide, or admin. Default: anybody with a key for it.',
  }),
  escalate: Type.Optional(
    Type.Array(
      Part(
        'EscalationStep',
        { of: 'Escalation', about: 'Who else may decide, and after how many seconds.' },
        {
          after_seconds: Type.Integer({ minimum: 1, maximum: timeout_seconds_max }),
          approvers: Type.Optional(Approvers),
        },
      ),
      {
        minItems: 1,
        maxItems: steps_max,
        examples: [[{ after_seconds: 3_600 }]],
        description:
          'While nobody has decided, these may also decide after that many seconds; a step without approvers lets anybody with a key decide.',
      },
    ),
  ),
}
