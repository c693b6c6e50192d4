// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  CHECKPOINT_NOT_FOUND: {
    status: 404,
    message: 'There is no such checkpoint.',
    when: 'The tenant has no checkpoint with this id. Also answered when an approval key was to be bound to one that does not exist.',
    next: 'List the checkpoints to find the right id.',
    exit: 'not_found',
  },
  CHECKPOINT_ALREADY_RESOLVED: {
    status: 409,
    message: 'This checkpoint is already resolved.',
    when: 'The [checkpoint](checkpoints.md) was approved, rejected or cancelled, or timed out before; `details.status` says which. The first decision stands.',
    next: 'Read the checkpoint to see who decided what, and act on that.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
