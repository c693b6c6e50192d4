// The answer to a refused call: the API's code and message, and the agent's next step.

/** The member `x-errors` of openapi.json. */
export type ErrorRows = Readonly<Record<string, { next: string }>>

export interface Failure {
  code: string
  message: string
  next_step: string
  details?: unknown
  request_id?: string
  retry_after_seconds?: number
}

/** No answer of the API: the service could not be reached, or something in front of it answered. */
export const local_errors = {
  UNREACHABLE: 'The service did not answer.',
  UNEXPECTED_ANSWER: 'What answered was not the service.',
} as const

const ask_operator = 'Stop and tell your operator; trying again will not help.'

const local_next_steps: Readonly<Record<string, string>> = {
  UNREACHABLE:
    'It may or may not have happened. Wait a moment and look, or repeat with the same idempotency_key if you gave one. If the service stays away, tell your operator.',
  UNEXPECTED_ANSWER: `The address of the service may be wrong, or a proxy is in the way. ${ask_operator}`,
}

/** The agent's next step: for a code of the API, that of openapi.json. */
export function nextStep(errors: ErrorRows, code: string): string {
  return errors[code]?.next ?? local_next_steps[code] ?? ask_operator
}
