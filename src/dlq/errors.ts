// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  DLQ_NOT_FOUND: {
    status: 404,
    message: 'There is no such dead letter.',
    when: 'The tenant has no dead letter with this id. It may have been deleted, or swept 90 days after it was resolved or archived.',
    next: 'List the dead letters to find the right id.',
    exit: 'not_found',
  },
  ALREADY_CLAIMED: {
    status: 409,
    message: 'Another agent holds the lock on this dead letter.',
    when: 'An agent, perhaps you, holds the lock on this [dead letter](dlq.md).',
    next: 'Claim another one, or wait until locked_until.',
    exit: 'conflict',
  },
  LOCK_NOT_HELD: {
    status: 409,
    message: 'You do not hold the lock on this dead letter.',
    when: 'The [dead letter](dlq.md) is locked, but not by you: another agent holds it, or the `lock_token` is one of an earlier claim, because the lock ran out and somebody else took it.',
    next: 'Stop working on it: somebody else is working on it. Claim it again when its lock is free.',
    exit: 'conflict',
  },
  OPERATION_NOT_FOUND: {
    status: 404,
    message: 'There is no such operation.',
    when: 'The tenant has no operation on [dead letters](dlq.md) with this id, or it ended more than 7 days ago.',
    next: 'List the operations to find the right id.',
    exit: 'not_found',
  },
  TOO_MANY_OPERATIONS: {
    status: 409,
    message: 'Five operations on dead letters are running.',
    when: 'The tenant already has five operations on many [dead letters](dlq.md) running.',
    next: 'Wait until one has ended, or cancel one.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
