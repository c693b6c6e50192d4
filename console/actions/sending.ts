// When something is sent that a change causes: while the tenant is frozen it waits.

import { frozen_at } from '../text/time.ts'

/** `The call is made to api.example.com ${whenSent()}.` */
export function whenSent(): string {
  return frozen_at.value === null ? 'now' : 'once everything is resumed'
}

/** The same once the change was made: `said`, or that it is `sent again` after the resume. */
export function sentText(said: string, sent: string): string {
  return frozen_at.peek() === null ? said : `It is ${sent} once everything is resumed.`
}
