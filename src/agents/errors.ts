// The codes of this feature.

import { declareErrors } from '../base/errors.ts'

export const errors = declareErrors({
  AGENT_NOT_FOUND: {
    status: 404,
    message: 'There is no such agent.',
    when: 'The tenant has no agent with this name.',
    next: 'List the agents to find the right name.',
    exit: 'not_found',
  },
  AGENT_PAUSED: {
    status: 403,
    message: 'This agent is paused: it may change nothing until the admin resumes it.',
    when: 'The admin has [paused](freeze.md#pause-one-agent) this agent. It may read, and report the end of work that it holds a token for; every other request from it gets this answer. Nothing was changed. `details` holds `since` and `reason`.',
    next: 'Stop changing things and wait. The admin resumes the agent; until then the same request fails again.',
    exit: 'forbidden',
  },
  AGENT_READ_ONLY: {
    status: 403,
    message: 'This agent may only read.',
    when: 'The admin has set the [mode](freeze.md#modes-of-an-agent) of this agent to `read`, and the request would change something. Nothing was changed.',
    next: 'Only read, or ask the admin for another mode. The same request fails again.',
    exit: 'forbidden',
  },
  AGENT_ID_TAKEN: {
    status: 409,
    message: 'An agent with this name already exists.',
    when: 'The tenant already has an agent with this name.',
    next: 'Choose another name, or rotate the key of the existing agent.',
    exit: 'conflict',
  },
})

type Rows = typeof errors
declare module '../base/errors.ts' {
  interface ErrorRows extends Rows {}
}
