// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  CHECKPOINT_NOT_FOUND: {
    status: 404,
    message: 'There is no such checkpoint.',
    when: 'The tenant has no checkpoint with this id. This is also the answer when an approval key is to be bound to a checkpoint that does not exist.',
    next: 'List the checkpoints to find the right id.',
    exit: 'not_found',
  },
  CHECKPOINT_ALREADY_RESOLVED: {
    status: 409,
    message: 'This checkpoint is already resolved.',
    when: 'The [checkpoint](checkpoints.md) has already been approved, rejected or cancelled, or has timed out; `details.status` says which. The first decision stands.',
    next: 'Read the checkpoint to see who decided what, and act on that.',
    exit: 'conflict',
  },
  ALREADY_VOTED: {
    status: 409,
    message: 'This key has already voted on this checkpoint.',
    when: 'Each approval key, and the admin key, has one vote on a [checkpoint](checkpoints.md#votes); `details` has the decision that it made, and the counts.',
    next: 'Wait for the votes of others; read the checkpoint to see how many are missing.',
    exit: 'conflict',
  },
  VOTE_DIFFERS: {
    status: 409,
    message: 'This vote is for something other than the votes before it.',
    when: 'An approval carries a different answer from an earlier approval (`details.differs` is `answer`), or it does not name the payload as an approver has changed it, or its `expected_hash` says that its approver saw a different payload (both `payload`).',
    next: 'Read the request again; approve what it now says, or reject it.',
    exit: 'conflict',
  },
  NOT_AN_APPROVER: {
    status: 403,
    message: 'This key is not an approver of this checkpoint.',
    when: 'The [checkpoint](checkpoints.md#approvers) names its `approvers`, and this key is not one of them.',
    next: 'Ask one of its approvers, or wait until it is escalated to you.',
    exit: 'forbidden',
  },
  ANSWER_INVALID: {
    status: 422,
    message: 'The answer does not fit the schema of this checkpoint.',
    when: 'An approval carries an `answer` that breaks the [`answer_schema`](checkpoints.md#answers), lacks one, or carries one where none is asked for; `details.issues` lists each fault.',
    next: 'Correct the answer as details.issues says, and approve again. Nothing was changed.',
    exit: 'usage',
  },
  NOT_EDITABLE: {
    status: 422,
    message: 'The payload of this checkpoint cannot be changed.',
    when: 'An approval carries an `effective_payload`, and the checkpoint is not `editable`.',
    next: 'Approve it as it is, or reject it and say in the reason what should be asked instead.',
    exit: 'usage',
  },
  TOO_MANY_COMMENTS: {
    status: 409,
    message: 'This checkpoint has reached its limit of comments.',
    when: 'The [checkpoint](checkpoints.md#comments) already has 200 comments.',
    next: 'Decide it, or continue the discussion elsewhere.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
