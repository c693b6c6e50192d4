// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  SUBSCRIPTION_NOT_FOUND: {
    status: 404,
    message: 'There is no such subscription.',
    when: 'The tenant has no [subscription](subscriptions.md) with this id.',
    next: 'List the subscriptions to find the right id.',
    exit: 'not_found',
  },
  LINK_NOT_FOUND: {
    status: 404,
    message: 'This link is not valid, or is no longer valid.',
    when: 'No email of a [subscription](subscriptions.md#mail) has this link, or the time to confirm with it is over.',
    next: 'Ask for a new subscription; its email will have a new link.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
