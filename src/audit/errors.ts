// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  AUDIT_ENTRY_NOT_FOUND: {
    status: 404,
    message: 'There is no such audit entry.',
    when: "The tenant's log has no entry with this id.",
    next: 'List the entries to find the right id.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
