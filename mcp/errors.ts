// The answer to a refused call: the API's code and message, and the agent's next step.

/** The member `x-errors` of openapi.json. */
export type ErrorRows = Readonly<Record<string, { next: string }>>

export interface Failure {
  code: string
  message: string
  next_step: string
  /** The present time, of a tool that takes one. */
  now?: string
  details?: unknown
  request_id?: string
  retry_after_seconds?: number
}

/** No answer of the API: the service could not be reached, or something in front of it answered. */
export const local_errors = {
  UNREACHABLE: 'The service did not answer.',
  UNEXPECTED_ANSWER: 'What answered was not the service.',
} as const

const ask_operator = 'Stop and ask the operator; trying again will not help.'
const later = 'Wait for retry_after_seconds, or a second without it, then repeat the call.'

/** Next steps in the words of tools, where those of the contract speak of requests. */
export const own_next_steps: Readonly<Record<string, string>> = {
  UNAUTHORIZED: `The key is missing, wrong or revoked. ${ask_operator}`,
  FORBIDDEN: `This key may not do that; the tools need an agent key. ${ask_operator}`,
  VERSION_MISMATCH:
    'Somebody changed it. Read it with kv_get, decide again, and repeat with the version that you read.',
  IDEMPOTENCY_IN_PROGRESS: `The first call with this idempotency_key is still running. ${later}`,
  IDEMPOTENCY_KEY_REUSED:
    'This idempotency_key belongs to a call with other arguments. Use a new one for a new call.',
  EFFECT_APPROVAL_REQUIRED:
    'Call effect_begin with type, key and payload again, without the id: that asks for its approval.',
  RATE_LIMITED: later,
  UNAVAILABLE: later,
  INTERNAL:
    'Repeat the call once, with the same idempotency_key if you gave one. If it fails again, report the request_id to the operator.',
  OUTCOME_UNKNOWN:
    'It may or may not have happened. Repeat the call with the same idempotency_key if you gave one; otherwise read the current state first.',
}

const stays_away = 'If the service stays away, tell your operator.'

export const local_next_steps: Readonly<Record<string, string>> = {
  UNREACHABLE: `It may or may not have happened. Wait a moment and look, or repeat with the same idempotency_key if you gave one. ${stays_away}`,
  UNEXPECTED_ANSWER: `The address of the service may be wrong, or a proxy is in the way. ${ask_operator}`,
}

/** After no answer to a tool that only reads. */
export const read_next_step = `Nothing was changed. Wait a moment and repeat the call. ${stays_away}`

/**
 * True for a status with which a gateway says that the service did not answer it: the call may have arrived. Cloudflare has 520 to
 * 530 of its own.
 */
export function isOfGateway(status: number): boolean {
  return (status >= 502 && status <= 504) || (status >= 520 && status <= 530)
}

/** The agent's next step: for a code of the API, that of openapi.json, unless tools have other words for it. */
export function nextStep(errors: ErrorRows, code: string): string {
  return own_next_steps[code] ?? errors[code]?.next ?? local_next_steps[code] ?? ask_operator
}

/** The library of the protocol words what is wrong with a message at a length of its own, and repeats what was sent. */
const characters_max = 2_000

export function shortened(message: string): string {
  return message.length > characters_max ? `${message.slice(0, characters_max).toWellFormed()}…` : message
}
