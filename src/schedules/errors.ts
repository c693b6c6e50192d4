// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  SCHEDULE_NOT_FOUND: {
    status: 404,
    message: 'There is no such schedule.',
    when: 'The tenant has no schedule with this id. A cancelled or fired schedule still exists.',
    next: 'List the schedules to find the right id.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
