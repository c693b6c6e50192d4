// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  NAMESPACE_FORBIDDEN: {
    status: 403,
    message: 'This namespace or key is reserved.',
    when: "A namespace that begins with `__` and is not the agent's own `__agent.<agent_id>`, or a key (or list prefix) that begins with `__rl:`, was named. These are reserved, even for reading.",
    next: 'Choose a namespace or key that does not begin with __.',
    exit: 'forbidden',
  },
  KEY_NOT_FOUND: {
    status: 404,
    message: 'There is no such key.',
    when: 'The key was never put, was deleted, or has expired.',
    next: 'Treat the key as absent, put a first value, or list the keys that exist.',
    exit: 'not_found',
  },
  VERSION_MISMATCH: {
    status: 409,
    precondition_status: 412,
    message: 'The stored version is a different one.',
    when: 'The stored version is not the `cas_version` of a put. The status is 412 when an `If-Match` header does not name the stored version. `details.current_version` is the stored version, or null when the key is absent. Nothing was written.',
    next: 'Read the value again, decide by what it says now, and write with the version that you read.',
    exit: 'conflict',
  },
  TOO_MANY_NAMESPACES: {
    status: 409,
    message: 'A hundred namespaces already leave events.',
    when: 'The tenant already has as many namespaces that [leave events](kv.md#events) as are allowed.',
    next: 'Turn off the events of another namespace.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
