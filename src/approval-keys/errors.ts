// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  APPROVAL_KEY_NOT_FOUND: {
    status: 404,
    message: 'There is no such approval key.',
    when: 'The tenant has no approval key with this id. A revoked key is gone.',
    next: 'List the approval keys to find the right id.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
