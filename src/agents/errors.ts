// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  AGENT_NOT_FOUND: {
    status: 404,
    message: 'There is no such agent.',
    when: 'The tenant has no agent of this name.',
    next: 'List the agents to find the right name.',
    exit: 'not_found',
  },
  AGENT_ID_TAKEN: {
    status: 409,
    message: 'An agent of this name exists.',
    when: 'The tenant has an agent of this name.',
    next: 'Choose another name, or rotate the key of the existing agent.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
