// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  CLOCK_ADVANCING: {
    status: 409,
    message: 'The test clock is being advanced by another request.',
    when: 'Another `POST /v1/clock/advance` is under way: the [test clock](test-clock.md) of a service moves for only one request at a time. Nothing was moved.',
    next: 'Wait until the other request has ended. Tests that move the time in parallel each need their own service.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
