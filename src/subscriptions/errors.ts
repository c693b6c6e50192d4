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
    message: 'This link is not valid, or no longer.',
    when: 'No mail of a [subscription](subscriptions.md#mail) has this link, or the link can no longer be used to confirm.',
    next: 'Ask for a new subscription; its mail has a new link.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
