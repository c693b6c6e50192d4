// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  DELETE_REQUIRES_CONFIRM: {
    status: 400,
    message: 'Send {"confirm": "DELETE ALL DATA"} to delete this tenant.',
    when: 'A request to delete a tenant came without the body `{"confirm": "DELETE ALL DATA"}`: there was no body, it is not JSON, or it says something else. Nothing was deleted.',
    next: 'Send exactly the body {"confirm": "DELETE ALL DATA"}.',
    exit: 'usage',
  },
  TENANT_FROZEN: {
    status: 403,
    message: 'This tenant is frozen: its agents may change nothing until its admin resumes it.',
    when: 'The admin has [frozen](freeze.md) the tenant. Its agents may read, and report the end of work that they hold a token for; every other request from them gets this answer. Nothing was changed. `details` holds `since` and `reason`.',
    next: 'Stop changing things and wait. The admin resumes the tenant; until then the same request fails again.',
    exit: 'forbidden',
  },
  TENANT_NAME_TAKEN: {
    status: 409,
    message: 'A tenant with this name already exists.',
    when: 'Another tenant has this name, ignoring case. One that is pending deletion still counts.',
    next: 'Choose another name.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
