// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  QUARANTINED: {
    status: 503,
    message: 'This service was restored from a backup and waits for its operator to release it.',
    when: 'The database is a [restored copy in quarantine](backup.md#quarantine): effects are neither claimed nor started, because the original may have carried them out since, and nothing due is sent. Everything else works. Nothing was changed. `details` holds `since`.',
    next: 'Wait until the operator has run `admin release`; until then the same request fails again.',
    exit: 'unavailable',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
