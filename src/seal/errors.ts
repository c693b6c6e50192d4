// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  SEAL_EVENT_NOT_FOUND: {
    status: 404,
    message: 'The tree has no such event.',
    when: 'No event has this id or number, or the event is not in the tree of the given size. The id of an event that retention has removed is no longer known; its number is.',
    next: 'Give the number of the event, seq, or leave out the size.',
    exit: 'not_found',
  },
  SEAL_SIZE_UNKNOWN: {
    status: 404,
    message: 'The tree is smaller than that.',
    when: 'The size given as `from`, `to`, `size` or `after` is larger than the tree; `details.size` is how many events the tree has. A checkpoint that you kept has the size of a tree that existed: when it is larger than `details.size`, the journal was truncated.',
    next: 'Compare the size with details.size. If you have a checkpoint of that size, events are missing.',
    exit: 'not_found',
  },
  SEAL_BROKEN: {
    status: 500,
    message: 'The stored journal and its tree do not match.',
    when: 'An event went missing before it was sealed, or hashes of the tree are missing: something other than the service changed rows. `details.reason` says what is missing.',
    next: 'Ask the operator of the service to compare the database with a backup.',
    exit: 'unexpected',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
