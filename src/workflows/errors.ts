// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  WORKFLOW_NOT_FOUND: {
    status: 404,
    message: 'There is no such workflow.',
    when: 'No event of the tenant that the caller may see carries this workflow_id.',
    next: 'List the workflows by the beginning of the id. A workflow begins with its first event.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
