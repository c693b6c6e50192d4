// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  INBOX_NOT_FOUND: {
    status: 404,
    message: 'There is no such inbox.',
    when: 'The tenant has no inbox with this id, or it expired more than 24 hours ago. At `/hook`: no inbox has this token, it expired more than 7 days ago, or its tenant is pending deletion.',
    next: 'List the inboxes to find the right id, or create a new one.',
    exit: 'not_found',
  },
  MESSAGE_NOT_FOUND: {
    status: 404,
    message: 'There is no such message in this inbox.',
    when: 'The [inbox](inbox.md) has no message with this id. It may have been dropped to make room for a newer one.',
    next: 'List the messages of the inbox to find the right id.',
    exit: 'not_found',
  },
  INBOX_EXPIRED: {
    status: 410,
    message: 'This inbox has expired and accepts no more messages.',
    when: 'This [inbox](inbox.md) has expired and accepts no more messages. After 7 days its URL answers 404.',
    next: 'Create a new inbox, and send to its URL.',
    exit: 'not_found',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
