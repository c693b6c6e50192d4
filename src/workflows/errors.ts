// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  WORKFLOW_NOT_FOUND: {
    status: 404,
    message: 'There is no such workflow.',
    when: 'No event of the tenant carries this workflow_id, or none of them is visible to the caller.',
    next: 'List the workflows by the beginning of the id. A workflow exists from its first event on.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
