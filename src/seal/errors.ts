// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  SEAL_EVENT_NOT_FOUND: {
    status: 404,
    message: 'The tree has no such event.',
    when: 'No event has this id or number, or the tree of the given size does not reach it. After retention has removed an event its id is no longer known; its number still is.',
    next: 'Give the number of the event, seq, or leave out the size.',
    exit: 'not_found',
  },
  SEAL_SIZE_UNKNOWN: {
    status: 404,
    message: 'The tree is smaller than that.',
    when: 'A size was given, as `from`, `to`, `size` or `after`, that the tree does not have; `details.size` is the number of its events. If a checkpoint that you kept has a size larger than `details.size`, the journal was truncated.',
    next: 'Compare the size with details.size. If you have a checkpoint of that size, events are gone.',
    exit: 'not_found',
  },
  SEAL_BROKEN: {
    status: 500,
    message: 'The stored journal and its tree do not fit together.',
    when: 'An event is missing that was not sealed yet, or hashes of the tree are: something other than the service changed rows. `details.reason` says what is missing.',
    next: 'Ask who runs the service to compare the database with a backup.',
    exit: 'unexpected',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
